/**
 * What people ask of the journal.
 */
import { Effect } from "effect"
import * as Decide from "./decide.ts"
import { InvalidRequest, SchedulesUnavailable, UnknownSchedule } from "./errors.ts"
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

export const makeControl = (parts: Parts, { change, read }: Access) => {
  const { journal, declared } = parts

  const known = (workflowId: string): Effect.Effect<ScheduleProgress, UnknownSchedule> =>
    Effect.suspend(() => {
      const progress = declared.has(workflowId) ? journal.schedules().get(workflowId) : undefined
      return progress === undefined
        ? Effect.fail(new UnknownSchedule({ workflowId, declared: [...declared.keys()] }))
        : Effect.succeed(progress)
    })
  const silent = Effect.suspend(() => Effect.fail(new SchedulesUnavailable({ reason: "HostSilent" })))
  const settled = Effect.fnUntraced(function* (workflowId: string) {
    if (!(yield* catchUp(parts, workflowId))) return yield* silent
  })

  const decideAlone = (workflowId: string, decide: (progress: ScheduleProgress, now: number) => Decide.Events) =>
    Effect.gen(function* () {
      const { state } = yield* known(workflowId)
      // One that stays as it is needs no answer from the host.
      if (state === "active") yield* settled(workflowId)
      yield* record(parts, workflowId, decide)
      return View.summary(yield* known(workflowId))
    })

  return {
    list: read(Effect.sync((): ReadonlyArray<View.Summary> => Array.from(journal.schedules().values(), View.summary))),

    pause: Effect.fn("ScheduleJournal.pause")(function* (workflowId: string, note?: string) {
      yield* checkNote(note)
      return yield* change(
        workflowId,
        decideAlone(workflowId, (progress, now) => Decide.pause(progress, note, now))
      )
    }),

    resume: Effect.fn("ScheduleJournal.resume")(function* (workflowId: string, note?: string) {
      yield* checkNote(note)
      return yield* change(
        workflowId,
        Effect.gen(function* () {
          yield* known(workflowId)
          yield* record(parts, workflowId, (progress, now) => Decide.resume(progress, note, now))
          return View.summary(yield* known(workflowId))
        })
      )
    }),

    runNow: Effect.fn("ScheduleJournal.runNow")(function* (workflowId: string) {
      return yield* change(
        workflowId,
        Effect.gen(function* () {
          yield* known(workflowId)
          yield* settled(workflowId)
          if (!(yield* askAfterRun(parts, workflowId))) return yield* silent
          const { activeRunId, manualRuns } = yield* known(workflowId)
          if (activeRunId !== undefined) {
            return yield* new InvalidRequest({
              field: `schedule "${workflowId}"`,
              problem: `is running ${activeRunId}`
            })
          }
          const declaration = declared.get(workflowId)
          if (declaration !== undefined) {
            yield* record(parts, workflowId, (progress, now) => Decide.runNow(progress, declaration, now))
          }
          if (!(yield* settle(parts, workflowId, { fresh: true }))) return yield* silent
          const runId = manualRunIdOf(workflowId, manualRuns + 1)
          if ((yield* known(workflowId)).activeRunId !== runId) {
            return yield* new InvalidRequest({ field: `schedule "${workflowId}"`, problem: "was refused by the host" })
          }
          return { runId }
        })
      )
    }),

    preview: Effect.fn("ScheduleJournal.preview")(function* (workflowId: string, count: number) {
      if (!isWholeFrom(1, longestPreview, count)) {
        return yield* new InvalidRequest({
          field: "count",
          problem: `has to be a whole number from 1 to ${longestPreview}`
        })
      }
      return View.preview(yield* read(known(workflowId)), count)
    }),

    explain: Effect.fn("ScheduleJournal.explain")(function* (workflowId: string, slot: number) {
      if (!isWholeFrom(1, Number.MAX_SAFE_INTEGER, slot)) {
        return yield* new InvalidRequest({ field: "slot", problem: "has to be a whole number from 1 on" })
      }
      return View.explain(yield* read(known(workflowId)), slot)
    })
  }
}
