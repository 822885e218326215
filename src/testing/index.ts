export * as Advance from "./Advance.ts"
export { launcherConformance } from "./LauncherConformance.ts"
export * as ScriptedLauncher from "./ScriptedLauncher.ts"
