export * as FileStorage from "./FileStorage.ts"
export * as GitWorkspace from "./GitWorkspace.ts"
export * as NodeMain from "./NodeMain.ts"
