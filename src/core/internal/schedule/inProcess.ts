/**
 * A host for runs that are effects of this process.
 */
import { Cause, type Context, Effect, Exit, FiberMap, Schema } from "effect"
import { type Storage, typed } from "../../Storage.ts"
import * as FoldedLog from "./foldedLog.ts"
import { RunEnding } from "./progress.ts"
import type { Firing, Outcome, Submitted } from "./workflows.ts"

/** The journal asks after its last run only; the others are kept for a person who looks. */
const keptRuns = 8

const RunStarted = Schema.TaggedStruct("RunStarted", { workflowId: Schema.String, runId: Schema.String })
const RunDone = Schema.TaggedStruct("RunDone", { workflowId: Schema.String, runId: Schema.String, ending: RunEnding })
const RunEntry = Schema.Union([RunStarted, RunDone])
type RunEntry = typeof RunEntry.Type

/** What the log of runs holds, in this version. */
export const runLog = { entry: RunEntry, version: 1 }

type Runs = Map<string, Map<string, RunEnding | "started">>

const apply = (runs: Runs, entry: RunEntry) => {
  const own = runs.get(entry.workflowId) ?? new Map<string, RunEnding | "started">()
  runs.set(entry.workflowId, own)
  own.set(entry.runId, entry._tag === "RunStarted" ? "started" : entry.ending)
  for (const runId of own.keys()) {
    if (own.size <= keptRuns) break
    own.delete(runId)
  }
}

const entriesOf = (workflowId: string, runId: string, ending: RunEnding | "started"): RunEntry =>
  ending === "started" ? { _tag: "RunStarted", workflowId, runId } : { _tag: "RunDone", workflowId, runId, ending }

const endingOf = (exit: Exit.Exit<unknown, unknown>): RunEnding => {
  if (Exit.isSuccess(exit)) return "succeeded"
  return Cause.hasInterruptsOnly(exit.cause) ? "cancelled" : "failed"
}

export const makeInProcess = Effect.fnUntraced(function* <R>(
  storage: Storage["Service"],
  name: string,
  runOf: (firing: Firing) => Effect.Effect<unknown, unknown, R>,
  context: Context.Context<R>
) {
  const log = yield* FoldedLog.make<Runs, RunEntry>({
    open: Effect.map(storage.open(name), (opened) => typed(opened, runLog)),
    empty: () => new Map(),
    apply,
    problem: () => undefined,
    size: (runs) => runs.size * keptRuns,
    snapshot: (runs) =>
      Array.from(runs).flatMap(([workflowId, own]) =>
        Array.from(own, ([runId, ending]) => entriesOf(workflowId, runId, ending))
      )
  })
  const fibers = yield* FiberMap.make<string>()
  /** How runs of this process ended, until the log has it. */
  const ended = new Map<string, RunEnding>()

  const workflowOf = (runId: string) => runId.slice(0, runId.lastIndexOf("@"))
  const known = (runId: string) => log.state().get(workflowOf(runId))?.get(runId)

  const finish = Effect.fnUntraced(function* ({ workflowId, runId }: Firing, exit: Exit.Exit<unknown, unknown>) {
    const ending = endingOf(exit)
    ended.set(runId, ending)
    yield* log.append(() => [{ _tag: "RunDone", workflowId, runId, ending }])
    ended.delete(runId)
  })

  const submit = Effect.fnUntraced(function* (firing: Firing): Effect.fn.Return<Submitted, unknown> {
    const { workflowId, runId } = firing
    if (known(runId) !== undefined) return { _tag: "Accepted" }
    // Written first: a crash right after it costs this run, and never runs it twice.
    yield* log.append(() => [{ _tag: "RunStarted", workflowId, runId }])
    yield* FiberMap.run(
      fibers,
      runId,
      // A run that throws instead of answering with an effect has failed as well.
      Effect.suspend(() => runOf(firing)).pipe(
        Effect.provideContext(context),
        Effect.onExit((exit) => Effect.ignore(finish(firing, exit)))
      ),
      { onlyIfMissing: true }
    )
    return { _tag: "Accepted" }
  }, Effect.uninterruptible)

  const outcome = (runId: string): Effect.Effect<Outcome> =>
    Effect.sync(() => {
      const ending = ended.get(runId)
      if (ending !== undefined) return ending
      const entry = known(runId)
      if (entry !== "started") return entry ?? "unknown"
      return FiberMap.hasUnsafe(fibers, runId) ? "running" : "lost"
    })

  return { submit, outcome }
})
