export * as Advance from "./Advance.ts"
