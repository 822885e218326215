/**
 * A host for runs that are effects of this process.
 */
import { Cause, type Context, Duration, Effect, Exit, FiberMap, Schema, type Scope } from "effect"
import { type OpenError, type Storage, typed } from "../../Storage.ts"
import { SchedulesUnavailable } from "./errors.ts"
import * as FoldedLog from "./foldedLog.ts"
import * as KeyedLock from "./keyedLock.ts"
import { now as clockNow } from "./now.ts"
import { PendingRun, RunEnding } from "./progress.ts"
import type { Firing, Outcome, Submitted, Workflows } from "./workflows.ts"

/** The journal asks after its last run only; the others are kept for a person who looks. */
const keptRuns = 8
/** A run that goes down with its process each time is given up, so that the others get on. */
const mostCrashes = 3

/** What a run is told: whether an earlier process began it. */
export interface EffectFiring extends Firing {
  readonly again: boolean
}

/** What a workflow is to this host. */
export interface Workflow<R> {
  readonly run: (firing: EffectFiring) => Effect.Effect<unknown, unknown, R>
  readonly resumable: boolean
}

const about = { workflowId: Schema.String, runId: Schema.String }
const unended = {
  ...about,
  slot: PendingRun.fields.slot,
  dueAt: PendingRun.fields.dueAt,
  input: PendingRun.fields.input,
  /** How many processes went down with it. */
  crashes: Schema.Int
}
const RunStarted = Schema.TaggedStruct("RunStarted", unended)
/** The process ended in good order, and the next one takes the run up. */
const RunSuspended = Schema.TaggedStruct("RunSuspended", unended)
const RunDone = Schema.TaggedStruct("RunDone", { ...about, ending: RunEnding })
const RunEntry = Schema.Union([RunStarted, RunSuspended, RunDone])
type RunEntry = typeof RunEntry.Type
type RunDone = typeof RunDone.Type
type Unended = Exclude<RunEntry, RunDone>

/** What the log of runs holds, in this version. */
export const runLog = { entry: RunEntry, version: 1 }

/** The newest entry of each run, by workflow. */
type Runs = Map<string, Map<string, RunEntry>>

const apply = (runs: Runs, entry: RunEntry) => {
  const own = runs.get(entry.workflowId) ?? new Map<string, RunEntry>()
  runs.set(entry.workflowId, own)
  own.set(entry.runId, entry)
  for (const runId of own.keys()) {
    if (own.size <= keptRuns) break
    own.delete(runId)
  }
}

const endingOf = (exit: Exit.Exit<unknown, unknown>): RunEnding => {
  if (Exit.isSuccess(exit)) return "succeeded"
  return Cause.hasInterruptsOnly(exit.cause) ? "cancelled" : "failed"
}

const workflowOf = (runId: string) => runId.slice(0, runId.lastIndexOf("@"))

/** What is known of the runs, by this process and by its log. */
const makeRecords = Effect.fnUntraced(function* (storage: Storage["Service"], name: string) {
  const log = yield* FoldedLog.make<Runs, RunEntry>({
    open: Effect.map(storage.open(name), (opened) => typed(opened, runLog)),
    empty: () => new Map(),
    apply,
    misfit: () => undefined,
    appended: () => Effect.void,
    problem: () => undefined,
    size: (runs) => runs.size * keptRuns,
    snapshot: (runs) => Array.from(runs.values()).flatMap((own) => [...own.values()])
  })
  /** How runs of this process ended, until the log has it. */
  const unrecorded = new Map<string, RunDone>()
  /** What was known of runs that the log may hold as started since, and that are not: the append failed. */
  const unstarted = new Map<string, RunEntry | undefined>()
  const known = (runId: string) =>
    unstarted.has(runId) ? unstarted.get(runId) : log.state().get(workflowOf(runId))?.get(runId)

  const recordEndings = Effect.suspend(() => {
    const endings = [...unrecorded.values()]
    return Effect.tap(
      log.append(() => endings),
      () => Effect.sync(() => endings.forEach(({ runId }) => unrecorded.delete(runId)))
    )
  })
  return {
    started: Effect.fnUntraced(function* (begun: Unended) {
      unstarted.set(begun.runId, known(begun.runId))
      yield* log.append(() => [{ ...begun, _tag: "RunStarted" }])
      unstarted.delete(begun.runId)
    }),
    suspended: (begun: Unended) => log.append(() => [{ ...begun, _tag: "RunSuspended" }]),
    ended: ({ workflowId, runId }: Unended, ending: RunEnding) =>
      Effect.suspend(() => {
        unrecorded.set(runId, { _tag: "RunDone", workflowId, runId, ending })
        return recordEndings
      }),
    /** The newest entry of a run. One that could not be written is tried again. */
    find: Effect.fnUntraced(function* (runId: string) {
      const ended = unrecorded.get(runId)
      if (ended !== undefined) {
        yield* Effect.ignore(recordEndings)
        return ended
      }
      return known(runId)
    })
  }
})

export const makeInProcess = Effect.fnUntraced(function* <R>(
  storage: Storage["Service"],
  name: string,
  workflows: ReadonlyMap<string, Workflow<R>>,
  context: Context.Context<R>
): Effect.fn.Return<Workflows["Service"], OpenError | SchedulesUnavailable, Scope.Scope> {
  const records = yield* makeRecords(storage, name)
  const fibers = yield* FiberMap.make<string>()
  // Set before the fibers are interrupted.
  let isEnding = false
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isEnding = true
    })
  )
  const locked = KeyedLock.make()

  const finish = (begun: Unended, exit: Exit.Exit<unknown, unknown>) =>
    isEnding && Exit.isFailure(exit) && workflows.get(begun.workflowId)?.resumable === true
      ? records.suspended(begun)
      : records.ended(begun, endingOf(exit))

  /** Written first: a crash right after it costs this start, and never makes two of it. */
  const start = Effect.fnUntraced(function* (begun: Unended, again: boolean) {
    const { workflowId, runId, slot, input, dueAt } = begun
    // What would be begun now is cut off at once: the next process is to begin it.
    if (isEnding) return yield* new SchedulesUnavailable({ reason: "Ended" })
    yield* records.started(begun)
    const late = Duration.millis(Math.max(0, (yield* clockNow) - dueAt))
    // A run that throws instead of answering with an effect has failed as well.
    const run = Effect.suspend(() => {
      const effect = workflows.get(workflowId)?.run({ workflowId, runId, slot, input, dueAt, late, again })
      return Effect.isEffect(effect) ? effect : Effect.die(`the run of "${workflowId}" is no effect`)
    })
    yield* FiberMap.run(
      fibers,
      runId,
      Effect.onExit(Effect.provideContext(run, context), (exit) => Effect.ignore(finish(begun, exit)))
    )
  })

  const submit = Effect.fnUntraced(
    function* ({ workflowId, runId, slot, input, dueAt }: Firing): Effect.fn.Return<Submitted, unknown> {
      if ((yield* records.find(runId)) === undefined) {
        yield* start({ _tag: "RunStarted", workflowId, runId, slot, input, dueAt, crashes: 0 }, false)
      }
      return { _tag: "Accepted" }
    },
    (effect, { runId }) => Effect.uninterruptible(locked(runId)(effect))
  )

  const outcome = Effect.fnUntraced(
    function* (runId: string): Effect.fn.Return<Outcome, unknown> {
      const entry = yield* records.find(runId)
      if (entry === undefined) return "unknown"
      if (entry._tag === "RunDone") return entry.ending
      if (FiberMap.hasUnsafe(fibers, runId)) return "running"
      const crashes = entry.crashes + (entry._tag === "RunStarted" ? 1 : 0)
      if (workflows.get(entry.workflowId)?.resumable !== true || crashes === mostCrashes) return "lost"
      yield* start({ ...entry, crashes }, true)
      return "running"
    },
    (effect, runId) => Effect.uninterruptible(locked(runId)(effect))
  )

  return { submit, outcome }
})
