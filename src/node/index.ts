export * as FileStorage from "./FileStorage.ts"
export * as NodeMain from "./NodeMain.ts"
