export * as Advance from "./Advance.ts"
export * as ScriptedWorkflows from "./ScriptedWorkflows.ts"
