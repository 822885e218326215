export * as GitWorkspace from "./GitWorkspace.ts"
