export * as FaultyStorage from "./FaultyStorage.ts"
export { storageConformance } from "./StorageConformance.ts"
