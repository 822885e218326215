/**
 * The contract of `ScheduleJournal.Workflows` as a list of cases. They need no test framework: each is an effect that
 * fails when its rule is broken, to be run by whatever runs tests.
 */
import { Duration, Effect, Fiber, type Scope } from "effect"
import type { ScheduleJournal } from "shiftboss"
import { broken, type Case, check } from "./internal/conformance.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

export type { Case } from "./internal/conformance.ts"

/** What a workflow does in a case. */
export type Task =
  /** Succeed, soon. */
  | "succeed"
  /** Fail, soon. */
  | "fail"
  /** Go on for longer than the suite takes. */
  | "work"

type Workflows = ScheduleJournal.Workflows["Service"]

/** A host with nothing in it, and what lets the suite look into it. */
export interface Host {
  readonly workflows: Workflows
  /** Which workflow does that. */
  readonly workflowId: (task: Task) => string
  /** How often a run was begun, by looking. Without it only what the port tells is checked. */
  readonly starts?: ((runId: string) => Effect.Effect<number>) | undefined
  /** Ends the host in good order, and starts the next one over what it kept. Without it no restart is checked. */
  readonly restart?: Effect.Effect<Workflows, unknown> | undefined
  /** A workflow whose runs it refuses, when it refuses any. */
  readonly refused?: string | undefined
}

/** What the suite is run against. */
export interface Subject {
  /** Made anew for each case. */
  readonly host: Effect.Effect<Host, unknown, Scope.Scope>
  /** How long a request, and a run that is to end soon, may take. A case takes five times that at most. Default: 2 seconds. */
  readonly patience?: Duration.Input | undefined
}

/**
 * The cases for a host of workflows.
 *
 * ```ts
 * for (const { name, run } of workflowsConformance({ host: makeMine })) {
 *   test(name, () => Effect.runPromise(run))
 * }
 * ```
 */
export const workflowsConformance = (subject: Subject): ReadonlyArray<Case> => {
  const patience = Duration.fromInputUnsafe(subject.patience ?? "2 seconds")
  return rules.map(({ name, run }) => ({
    name,
    run: Effect.flatMap(subject.host, (host) => run(host, patience)).pipe(
      Effect.timeoutOrElse({
        duration: Duration.times(patience, 5),
        orElse: () => broken("it did not come to an end")
      }),
      Effect.scoped
    )
  }))
}

// -----------------------------------------------------------------------------
// rules
// -----------------------------------------------------------------------------

interface Rule {
  readonly name: string
  readonly run: (host: Host, patience: Duration.Duration) => Effect.Effect<void, unknown>
}

const telling: ReadonlyArray<Rule> = [
  {
    name: "knows nothing of a run that was never submitted",
    run: Effect.fnUntraced(function* ({ workflows, workflowId }) {
      yield* isOutcome(workflows, firing(workflowId("work")).runId, ["unknown"])
    })
  },
  {
    name: "takes a run without waiting for it, and says that it is running",
    run: Effect.fnUntraced(function* ({ workflows, workflowId }, patience) {
      const one = firing(workflowId("work"))
      yield* accepts(workflows, one).pipe(
        Effect.timeoutOrElse({ duration: patience, orElse: () => broken("submit waited for the run") })
      )
      yield* isOutcome(workflows, one.runId, ["running"])
    })
  },
  {
    name: "says how a run ended, whenever it is asked",
    run: Effect.fnUntraced(function* ({ workflows, workflowId }, patience) {
      const endings = { succeed: "succeeded", fail: "failed" } as const
      for (const task of ["succeed", "fail"] as const) {
        const one = firing(workflowId(task))
        yield* accepts(workflows, one)
        yield* awaitEnding(workflows, one.runId, patience)
        for (let i = 0; i < 3; i++) yield* isOutcome(workflows, one.runId, [endings[task]])
      }
    })
  },
  {
    name: "keeps runs apart: of two workflows, and of one",
    run: Effect.fnUntraced(function* ({ workflows, workflowId }, patience) {
      const ended = firing(workflowId("succeed"), 1)
      const going = firing(workflowId("work"), 1)
      for (const one of [ended, going]) yield* accepts(workflows, one)
      yield* awaitEnding(workflows, ended.runId, patience)
      yield* isOutcome(workflows, going.runId, ["running"])
      yield* isOutcome(workflows, firing(workflowId("succeed"), 2).runId, ["unknown"])
      yield* accepts(workflows, firing(workflowId("succeed"), 2))
      yield* awaitEnding(workflows, firing(workflowId("succeed"), 2).runId, patience)
      yield* isOutcome(workflows, ended.runId, ["succeeded"])
    })
  },
  {
    name: "never starts a run that it refused",
    run: Effect.fnUntraced(function* ({ workflows, refused, starts }) {
      if (refused === undefined) return
      const one = firing(refused)
      const answer = yield* workflows.submit(one)
      yield* check(answer._tag === "Refused" && typeof answer.reason === "string", `it answered ${shown(answer)}`)
      yield* isOutcome(workflows, one.runId, ["unknown"])
      yield* startedAtMost(starts, one.runId, 0)
    })
  }
]

const starting: ReadonlyArray<Rule> = [
  {
    name: "starts a run once that is submitted twice",
    run: Effect.fnUntraced(function* ({ workflows, workflowId, starts }) {
      const one = firing(workflowId("work"))
      for (let i = 0; i < 3; i++) yield* accepts(workflows, one)
      yield* isOutcome(workflows, one.runId, ["running"])
      yield* startedAtMost(starts, one.runId, 1)
    })
  },
  {
    name: "starts a run once that is submitted twice at the same time",
    run: Effect.fnUntraced(function* ({ workflows, workflowId, starts }, patience) {
      for (const task of ["succeed", "work"] as const) {
        const one = firing(workflowId(task))
        yield* Effect.all(
          Array.from({ length: 5 }, () => accepts(workflows, one)),
          { concurrency: "unbounded" }
        )
        if (task === "succeed") yield* awaitEnding(workflows, one.runId, patience)
        yield* startedAtMost(starts, one.runId, 1)
      }
    })
  },
  {
    name: "does not start a run again that has ended",
    run: Effect.fnUntraced(function* ({ workflows, workflowId, starts }, patience) {
      for (const task of ["succeed", "fail"] as const) {
        const one = firing(workflowId(task))
        yield* accepts(workflows, one)
        const ending = yield* awaitEnding(workflows, one.runId, patience)
        yield* accepts(workflows, one)
        yield* isOutcome(workflows, one.runId, [ending])
        yield* startedAtMost(starts, one.runId, 1)
      }
    })
  },
  {
    name: "starts a run once when the request for it was cut off and is made again",
    run: Effect.fnUntraced(function* ({ workflows, workflowId, starts }) {
      // Cut off after more and more turns, so that it happens in the middle of it somewhere.
      for (let turns = 0; turns < 8; turns++) {
        const one = firing(workflowId("work"), turns + 1)
        const request = yield* Effect.forkChild(workflows.submit(one), { startImmediately: true })
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        yield* Fiber.interrupt(request)
        const outcome = yield* workflows.outcome(one.runId)
        yield* check(outcome === "unknown" || outcome === "running", `the run was ${shown(outcome)} after that`)
        yield* accepts(workflows, one)
        yield* isOutcome(workflows, one.runId, ["running"])
        yield* startedAtMost(starts, one.runId, 1)
      }
    })
  }
]

const restarting: ReadonlyArray<Rule> = [
  {
    name: "knows after a restart how a run ended",
    run: Effect.fnUntraced(function* ({ workflows, workflowId, restart, starts }, patience) {
      if (restart === undefined) return
      const one = firing(workflowId("succeed"))
      yield* accepts(workflows, one)
      yield* awaitEnding(workflows, one.runId, patience)
      const next = yield* restart
      yield* isOutcome(next, one.runId, ["succeeded"])
      yield* accepts(next, one)
      yield* startedAtMost(starts, one.runId, 1)
    })
  },
  {
    name: "never forgets that it took a run, so that none is submitted to it anew",
    run: Effect.fnUntraced(function* ({ workflows, workflowId, restart }) {
      if (restart === undefined) return
      const one = firing(workflowId("work"))
      yield* accepts(workflows, one)
      yield* isOutcome(yield* restart, one.runId, ["running", "cancelled", "failed", "lost"])
    })
  }
]

const rules: ReadonlyArray<Rule> = [...telling, ...starting, ...restarting]

// -----------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------

const shown = (value: unknown) => JSON.stringify(value)

const firing = (workflowId: string, slot = 1): ScheduleJournal.Firing => ({
  workflowId,
  slot,
  runId: `${workflowId}@1.${slot}`,
  input: null,
  dueAt: 0,
  late: Duration.zero
})

const accepts = (workflows: Workflows, one: ScheduleJournal.Firing) =>
  Effect.flatMap(workflows.submit(one), (answer) => check(answer._tag === "Accepted", `it answered ${shown(answer)}`))

const isOutcome = (workflows: Workflows, runId: string, allowed: ReadonlyArray<ScheduleJournal.Outcome>) =>
  Effect.flatMap(workflows.outcome(runId), (outcome) =>
    check(allowed.includes(outcome), `it said that the run was ${shown(outcome)}, and not ${allowed.join(" or ")}`)
  )

const startedAtMost = (starts: Host["starts"], runId: string, most: number) =>
  starts === undefined
    ? Effect.void
    : Effect.flatMap(starts(runId), (count) => check(count <= most, `the run was started ${count} times`))

const awaitEnding = (workflows: Workflows, runId: string, patience: Duration.Duration) =>
  workflows.outcome(runId).pipe(
    Effect.tap((outcome) => (outcome === "running" ? Effect.sleep("10 millis") : Effect.void)),
    Effect.repeat({ until: (outcome) => outcome !== "running" }),
    Effect.timeoutOrElse({ duration: patience, orElse: () => broken("the run did not end") })
  )
