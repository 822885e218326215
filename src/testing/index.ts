export { storageConformance } from "./StorageConformance.ts"
