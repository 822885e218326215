export * as Advance from "./Advance.ts"
export * as CrashEverywhere from "./CrashEverywhere.ts"
export * as FaultyStorage from "./FaultyStorage.ts"
export * as ScriptedWorkflows from "./ScriptedWorkflows.ts"
export {
  type Case as LauncherCase,
  launcherConformance,
  type Subject as LauncherSubject
} from "./LauncherConformance.ts"
export * as ScriptedLauncher from "./ScriptedLauncher.ts"
export { type Case as StorageCase, storageConformance, type Subject as StorageSubject } from "./StorageConformance.ts"
export * as Simulation from "./Simulation.ts"
export * as WallClock from "./WallClock.ts"
export {
  type Case as WorkflowsCase,
  type Subject as WorkflowsSubject,
  workflowsConformance
} from "./WorkflowsConformance.ts"
