export * as FileStorage from "./FileStorage.ts"
export * as GitWorkspace from "./GitWorkspace.ts"
