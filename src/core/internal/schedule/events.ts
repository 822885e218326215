/**
 * What the journal records of its schedules: one entry an event, and one `ScheduleSaved` a schedule after compaction.
 */
import { Schema } from "effect"
import {
  CronCadence,
  EverySeconds,
  FailuresInARow,
  PendingRun,
  PendingSkip,
  RunEnding,
  ScheduleProgress
} from "./progress.ts"

const about = { workflowId: Schema.String, /** Epoch milliseconds. */ at: Schema.Int }
const note = { note: Schema.optionalKey(Schema.String) }

/** It is declared for the first time, again, or with another interval: a generation begins. */
const ScheduleDeclared = Schema.TaggedStruct("ScheduleDeclared", {
  ...about,
  everySeconds: Schema.optionalKey(EverySeconds),
  cron: Schema.optionalKey(CronCadence),
  failuresInARow: FailuresInARow,
  nextAt: Schema.Int
})

/** Another number of failures stops it from now on. */
const ScheduleEdited = Schema.TaggedStruct("ScheduleEdited", { ...about, failuresInARow: FailuresInARow })

/** The host declares it no longer. */
const ScheduleRemoved = Schema.TaggedStruct("ScheduleRemoved", about)

const SchedulePaused = Schema.TaggedStruct("SchedulePaused", { ...about, ...note })

/** A generation begins, without the streak. */
const ScheduleResumed = Schema.TaggedStruct("ScheduleResumed", { ...about, ...note, nextAt: Schema.Int })

/** Too many runs in a row failed. */
const ScheduleStopped = Schema.TaggedStruct("ScheduleStopped", { ...about, slot: Schema.Int })

/** The clock was set far back: a generation begins, nearer. */
const GridMoved = Schema.TaggedStruct("GridMoved", { ...about, nextAt: Schema.Int })

/** What is about to be done about the next slots, or about a run that a person asked for (then without `nextAt`). */
const SlotPending = Schema.TaggedStruct("SlotPending", {
  ...about,
  plan: Schema.Union([PendingRun, PendingSkip]),
  nextAt: Schema.optionalKey(Schema.Int)
})

/** The host has the pending run. */
const RunAccepted = Schema.TaggedStruct("RunAccepted", { ...about, runId: Schema.String })

/** The host does not take the pending run, or it is not declared any more: it never runs. */
const RunRefused = Schema.TaggedStruct("RunRefused", {
  ...about,
  runId: Schema.String,
  reason: Schema.Literals(["refused", "removed"]),
  detail: Schema.optionalKey(Schema.String)
})

/** The pending skip is done. */
const SlotsSkipped = Schema.TaggedStruct("SlotsSkipped", {
  ...about,
  first: PendingSkip.fields.first,
  last: PendingSkip.fields.last,
  reason: PendingSkip.fields.reason
})

const RunEnded = Schema.TaggedStruct("RunEnded", { ...about, runId: Schema.String, ending: RunEnding })

/** All that is known of one schedule: what compaction leaves of its events. */
const ScheduleSaved = Schema.TaggedStruct("ScheduleSaved", { ...about, progress: ScheduleProgress })

/** An entry of the journal. */
export const ScheduleEvent = Schema.Union([
  ScheduleDeclared,
  ScheduleEdited,
  ScheduleRemoved,
  SchedulePaused,
  ScheduleResumed,
  ScheduleStopped,
  GridMoved,
  SlotPending,
  RunAccepted,
  RunRefused,
  SlotsSkipped,
  RunEnded,
  ScheduleSaved
])
export type ScheduleEvent = typeof ScheduleEvent.Type
