/**
 * Brings one schedule forward: settles what is pending, asks after its run, takes up what is due. Every step is
 * recorded before the next begins, and each can be repeated, so it may end anywhere.
 */
import { Duration, Effect } from "effect"
import * as Decide from "./decide.ts"
import { evolveAll } from "./evolve.ts"
import type { Host } from "./host.ts"
import type { Journal } from "./journal.ts"
import type { Notices } from "./notices.ts"
import { now as clockNow } from "./now.ts"
import type { PendingRun, ScheduleProgress } from "./progress.ts"

export interface Parts {
  readonly journal: Journal
  readonly host: Host
  readonly declared: ReadonlyMap<string, Decide.Declaration>
  readonly notices: Notices
}

/** A reason is kept with its slot, so it is cut to this length. */
const longestDetail = 1000

/** Records what follows for one schedule from its state at this moment. */
export const record = Effect.fnUntraced(function* (
  { journal }: Parts,
  workflowId: string,
  decide: (progress: ScheduleProgress, now: number) => Decide.Events
) {
  const now = yield* clockNow
  return yield* journal.commit((schedules) => {
    const progress = schedules.get(workflowId)
    return progress === undefined ? [] : decide(progress, now)
  })
})

const submit = Effect.fnUntraced(function* (parts: Parts, workflowId: string, run: PendingRun) {
  const now = yield* clockNow
  const { slot, runId, input, dueAt } = run
  const late = Duration.millis(Math.max(0, now - dueAt))
  const answer = yield* parts.host.submit({ workflowId, slot, runId, input, dueAt, late })
  if (answer === undefined) return undefined
  return answer._tag === "Accepted"
    ? answer
    : { _tag: "Refused" as const, reason: "refused" as const, detail: answer.reason.slice(0, longestDetail) }
})

/** What became of a run that may have been submitted before: only one the host never saw is submitted (again). */
const recoverRun = Effect.fnUntraced(function* (parts: Parts, workflowId: string, run: PendingRun) {
  const { runId } = run
  const outcome = yield* parts.host.outcome(workflowId, runId)
  if (outcome === undefined) return false
  if (outcome !== "unknown") {
    yield* record(parts, workflowId, (progress, now) => {
      const accepted = Decide.settleRun(progress, runId, { _tag: "Accepted" }, now)
      const after = evolveAll(progress, accepted)
      return outcome === "running" || after === undefined
        ? accepted
        : [...accepted, ...Decide.end(after, runId, outcome, now)]
    })
    return true
  }
  return yield* submitRun(parts, workflowId, run)
})

const submitRun = Effect.fnUntraced(function* (parts: Parts, workflowId: string, run: PendingRun) {
  const answer = parts.declared.has(workflowId)
    ? yield* submit(parts, workflowId, run)
    : ({ _tag: "Refused", reason: "removed" } as const)
  if (answer === undefined) return false
  yield* record(parts, workflowId, (progress, now) => Decide.settleRun(progress, run.runId, answer, now))
  return true
})

/** Settles what is pending; false when the host does not answer. `fresh`: nobody can have submitted it yet. */
export const settle = Effect.fnUntraced(function* (
  parts: Parts,
  workflowId: string,
  { fresh }: { readonly fresh: boolean }
) {
  const pending = parts.journal.schedules().get(workflowId)?.pending
  if (pending === undefined) return true
  if (pending._tag === "Skip") {
    yield* record(parts, workflowId, Decide.settleSkip)
    return true
  }
  return yield* fresh ? submitRun(parts, workflowId, pending) : recoverRun(parts, workflowId, pending)
})

/** Asks how the active run is doing; false when the host does not answer. */
export const askAfterRun = Effect.fnUntraced(function* (parts: Parts, workflowId: string) {
  const runId = parts.journal.schedules().get(workflowId)?.activeRunId
  if (runId === undefined) return true
  const outcome = yield* parts.host.outcome(workflowId, runId)
  if (outcome === undefined) return false
  if (outcome === "running") return true
  const ending = outcome === "unknown" ? "lost" : outcome
  yield* record(parts, workflowId, (progress, now) => Decide.end(progress, runId, ending, now))
  return true
})

/** Settles what is pending and then follows the declaration; false when the host does not answer. */
export const catchUp = Effect.fnUntraced(function* (parts: Parts, workflowId: string) {
  if (!(yield* settle(parts, workflowId, { fresh: false }))) return false
  const declaration = parts.declared.get(workflowId)
  yield* record(parts, workflowId, (progress, now) => Decide.declare(progress, declaration, now))
  return true
})

/** Brings the schedule forward as far as the host lets it. */
export const look = Effect.fnUntraced(function* (parts: Parts, workflowId: string) {
  if (!(yield* catchUp(parts, workflowId))) return
  if (!(yield* askAfterRun(parts, workflowId))) return
  const declaration = parts.declared.get(workflowId)
  if (declaration === undefined) return
  yield* record(parts, workflowId, (progress, now) => Decide.takeUp(progress, declaration, now))
  yield* settle(parts, workflowId, { fresh: true })
})
