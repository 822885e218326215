export * as FileStorage from "./FileStorage.ts"
