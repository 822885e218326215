/**
 * What people ask of the journal.
 */
import { Effect } from "effect"
import * as Decide from "./decide.ts"
import { InvalidRequest, SchedulesUnavailable, shown, UnknownSchedule } from "./errors.ts"
import { askAfterRun, catchUp, type Parts, record, settle } from "./look.ts"
import { manualRunIdOf, type ScheduleProgress } from "./progress.ts"
import * as View from "./view.ts"

const longestNote = 1000
const longestPreview = 1000

export interface Access {
  /** Runs a change of a schedule alone: serialized with every look at it. */
  readonly change: <A, E>(workflowId: string, effect: Effect.Effect<A, E>) => Effect.Effect<A, E | SchedulesUnavailable>
  readonly read: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E | SchedulesUnavailable>
}

const isWholeFrom = (minimum: number, maximum: number, value: number) =>
  Number.isSafeInteger(value) && value >= minimum && value <= maximum

const checkNote = (note: string | undefined) =>
  note === undefined || (typeof note === "string" && note.length <= longestNote)
    ? Effect.void
    : Effect.fail(
        new InvalidRequest({ field: "note", problem: `has to be a string of at most ${longestNote} characters` })
      )

const silent = Effect.suspend(() => Effect.fail(new SchedulesUnavailable({ reason: "HostSilent" })))

const known = ({ journal, declared }: Parts, workflowId: string): Effect.Effect<ScheduleProgress, UnknownSchedule> =>
  Effect.suspend(() => {
    const progress = declared.has(workflowId) ? journal.schedules().get(workflowId) : undefined
    return progress === undefined
      ? Effect.fail(
          new UnknownSchedule({
            workflowId: typeof workflowId === "string" ? workflowId : shown(workflowId),
            declared: [...declared.keys()]
          })
        )
      : Effect.succeed(progress)
  })

const pause = Effect.fnUntraced(function* (parts: Parts, workflowId: string, note: string | undefined) {
  const { state } = yield* known(parts, workflowId)
  // One that is paused or stopped has no slot pending, and needs no answer from the host.
  if (state === "active" && !(yield* catchUp(parts, workflowId))) return yield* silent
  yield* record(parts, workflowId, (progress, now) => Decide.pause(progress, note, now))
  return View.summary(yield* known(parts, workflowId))
})

const resume = Effect.fnUntraced(function* (parts: Parts, workflowId: string, note: string | undefined) {
  yield* known(parts, workflowId)
  yield* record(parts, workflowId, (progress, now) => Decide.resume(progress, note, now))
  return View.summary(yield* known(parts, workflowId))
})

const runNow = Effect.fnUntraced(function* (parts: Parts, workflowId: string) {
  const refused = (problem: string) => new InvalidRequest({ field: `schedule "${workflowId}"`, problem })
  yield* known(parts, workflowId)
  if (!(yield* catchUp(parts, workflowId)) || !(yield* askAfterRun(parts, workflowId))) return yield* silent
  const { activeRunId, manualRuns } = yield* known(parts, workflowId)
  if (activeRunId !== undefined) return yield* refused(`is running ${activeRunId}`)
  const input = parts.declared.get(workflowId)?.input ?? null
  yield* record(parts, workflowId, (progress, now) => Decide.runNow(progress, input, now))
  if (!(yield* settle(parts, workflowId, { fresh: true }))) return yield* silent
  const runId = manualRunIdOf(workflowId, manualRuns + 1)
  if ((yield* known(parts, workflowId)).activeRunId !== runId) return yield* refused("was refused by the host")
  return { runId }
})

export const makeControl = (parts: Parts, { change, read }: Access) => ({
  list: read(
    Effect.sync((): ReadonlyArray<View.Summary> => Array.from(parts.journal.schedules().values(), View.summary))
  ),

  pause: Effect.fn("ScheduleJournal.pause")(function* (workflowId: string, note?: string) {
    yield* checkNote(note)
    return yield* change(workflowId, pause(parts, workflowId, note))
  }),

  resume: Effect.fn("ScheduleJournal.resume")(function* (workflowId: string, note?: string) {
    yield* checkNote(note)
    return yield* change(workflowId, resume(parts, workflowId, note))
  }),

  runNow: Effect.fn("ScheduleJournal.runNow")(function* (workflowId: string) {
    return yield* change(workflowId, runNow(parts, workflowId))
  }),

  preview: Effect.fn("ScheduleJournal.preview")(function* (workflowId: string, count: number) {
    if (!isWholeFrom(1, longestPreview, count)) {
      return yield* new InvalidRequest({
        field: "count",
        problem: `has to be a whole number from 1 to ${longestPreview}`
      })
    }
    return View.preview(yield* read(known(parts, workflowId)), count)
  }),

  explain: Effect.fn("ScheduleJournal.explain")(function* (workflowId: string, slot: number) {
    if (!isWholeFrom(1, Number.MAX_SAFE_INTEGER, slot)) {
      return yield* new InvalidRequest({ field: "slot", problem: "has to be a whole number from 1 on" })
    }
    return View.explain(yield* read(known(parts, workflowId)), slot)
  })
})
