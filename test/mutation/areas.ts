/**
 * Parts of the core, each with the tests that look after it: a mutant is given only to those, or a run would take days. Tests
 * that measure memory and those that crash at every point are not among them: each takes seconds.
 */
export interface Area {
  readonly mutate: ReadonlyArray<string>
  readonly tests: ReadonlyArray<string>
}

export const areas: Readonly<Record<string, Area>> = {
  recheck: {
    mutate: ["src/core/RecheckRule.ts", "src/core/Verdict.ts", "src/core/internal/recheck/**/*.ts"],
    tests: [
      "test/core/Verdict.test.ts",
      "test/core/recheck/**/*.test.ts",
      "test/core/dispatch/recheck{,-faults}.test.ts"
    ]
  },
  retry: {
    mutate: [
      "src/core/{AgentLauncher,Counters,Failure,ResetTime,RetryPolicy,RetryRules,Silence,Turn,Usage}.ts",
      "src/core/internal/retry/**/*.ts"
    ],
    tests: ["test/core/{Counters,ResetTime,AgentLauncher}.test.ts", "test/core/retry/!(memory).test.ts"]
  },
  schedule: {
    mutate: ["src/core/ScheduleJournal.ts", "src/core/internal/schedule/**/*.ts"],
    tests: ["test/core/schedule/**/*.test.ts"]
  },
  storage: {
    mutate: ["src/core/{Storage,StorageError}.ts", "src/core/internal/{json,storage/**/*}.ts"],
    tests: ["test/core/{json,storage*}.test.ts", "test/core/storage/**/*.test.ts"]
  },
  dispatch: {
    mutate: [
      "src/core/{Case,Dispatcher,DispatcherError,Improvements}.ts",
      "src/core/internal/{Heap,escape,dispatch/**/*}.ts"
    ],
    tests: ["test/core/heap.test.ts", "test/core/dispatch/!(soak|crash|recheck-crash|recheck-storage).test.ts"]
  }
}

/** What only declares types, schemas and services: there is nothing in it to mutate but texts. */
export const declarations: ReadonlyArray<string> = [
  "DispatcherEvent",
  "DispatcherView",
  "RecheckEvent",
  "Rechecks",
  "Shiftboss",
  "Workspace",
  "index"
].map((name) => `src/core/${name}.ts`)
