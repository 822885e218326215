/**
 * What to record about a schedule, given what is known of it and what time it is. Pure: every command answers with
 * the entries to append, none when there is nothing to do, so repeating one after a crash changes nothing.
 */
import type { ScheduleEvent } from "./events.ts"
import { evolveAll } from "./evolve.ts"
import { manualRunIdOf, type RunEnding, runIdOf, type ScheduleProgress, type SkipReason } from "./progress.ts"
import * as Slots from "./slots.ts"

export type Events = ReadonlyArray<ScheduleEvent>

/** What the host declares of a schedule, checked. */
export interface Declaration {
  readonly workflowId: string
  readonly cadence: Slots.Cadence
  readonly input: Extract<ScheduleProgress["pending"], { readonly _tag: "Run" }>["input"]
  readonly lateWithinMillis: number
  readonly failuresInARow: number
}

/** How late a slot may be taken up and still count as on time: the clock is looked at every 30 s. */
const onTimeMillis = 60_000

const sameCadence = (left: Slots.Cadence, right: Slots.Cadence) =>
  left.everySeconds === right.everySeconds &&
  left.cron?.expression === right.cron?.expression &&
  left.cron?.zone === right.cron?.zone

/** A skip is written before it is done, as a run is, and done in the same append: there is nothing to wait for. */
const skip = (
  { workflowId }: ScheduleProgress,
  slots: { readonly first: number; readonly last: number; readonly reason: SkipReason },
  nextAt: number,
  at: number
): Events => [
  { _tag: "SlotPending", workflowId, at, nextAt, plan: { _tag: "Skip", ...slots } },
  { _tag: "SlotsSkipped", workflowId, at, ...slots }
]

/**
 * Closes a grid: the slots due so far and not taken up are skipped, so that none of them is forgotten. A schedule that
 * rests or is not declared has no slots.
 */
const closeGrid = (progress: ScheduleProgress, reason: SkipReason, now: number): Events => {
  if (progress.state !== "active" || !progress.declared || progress.pending !== undefined) return []
  const due = Slots.due(progress, progress.nextAt, now)
  if (due === undefined) return []
  const slots = { first: progress.lastSlot + 1, last: progress.lastSlot + due.count, reason }
  return skip(progress, slots, due.nextAt, now)
}

const stop = (progress: ScheduleProgress, slot: number, now: number): Events => [
  ...closeGrid(progress, "stopped", now),
  { _tag: "ScheduleStopped", workflowId: progress.workflowId, at: now, slot }
]

// -----------------------------------------------------------------------------
// declarations
// -----------------------------------------------------------------------------

const begin = ({ workflowId, cadence, failuresInARow }: Declaration, now: number): ScheduleEvent => ({
  _tag: "ScheduleDeclared",
  workflowId,
  at: now,
  ...cadence,
  failuresInARow,
  nextAt: Slots.firstAfter(cadence, now)
})

/** A limit below the streak that is there stops the schedule at its last failure. */
const edit = (progress: ScheduleProgress, failuresInARow: number, now: number): Events => {
  if (progress.failuresInARow === failuresInARow) return []
  const edited: ScheduleEvent = { _tag: "ScheduleEdited", workflowId: progress.workflowId, at: now, failuresInARow }
  const isOver = progress.stoppedAt === undefined && progress.failuresInRow >= failuresInARow
  return isOver ? [...stop(progress, lastFailedSlot(progress), now), edited] : [edited]
}

const lastFailedSlot = ({ failedRunIds }: ScheduleProgress) => {
  const runId = failedRunIds.at(-1) ?? ""
  return Number(runId.slice(runId.lastIndexOf(".") + 1))
}

/**
 * Brings a schedule in line with what the host declares, `undefined` when it no longer does. A pending slot comes
 * first: until it is settled, the schedule stays as it was.
 */
export const declare = (
  progress: ScheduleProgress | undefined,
  declaration: Declaration | undefined,
  now: number
): Events => {
  if (progress === undefined) return declaration === undefined ? [] : [begin(declaration, now)]
  if (progress.pending !== undefined) return []
  if (declaration === undefined) {
    if (!progress.declared) return []
    return [
      ...closeGrid(progress, "removed", now),
      { _tag: "ScheduleRemoved", workflowId: progress.workflowId, at: now }
    ]
  }
  const edited = edit(progress, declaration.failuresInARow, now)
  if (progress.declared && sameCadence(progress, declaration.cadence)) return edited
  const before = evolveAll(progress, edited) ?? progress
  return [...edited, ...closeGrid(before, "missed", now), begin(declaration, now)]
}

// -----------------------------------------------------------------------------
// slots
// -----------------------------------------------------------------------------

/** The run of the newest slot that is due. */
const run = (
  progress: ScheduleProgress,
  slot: number,
  due: Slots.DueSlots,
  input: Declaration["input"],
  now: number
) => {
  const { workflowId, generation } = progress
  const runId = runIdOf(workflowId, generation, slot)
  const plan = { _tag: "Run" as const, slot, runId, dueAt: due.newestAt, input }
  return [{ _tag: "SlotPending" as const, workflowId, at: now, nextAt: due.nextAt, plan }]
}

/**
 * Takes up the slots that are due. At most the newest one is to run; those before it were missed and are one record.
 * While a run is active the newest one is skipped too: it never starts late because of it.
 */
export const takeUp = (progress: ScheduleProgress, declaration: Declaration, now: number): Events => {
  if (progress.state !== "active" || !progress.declared || progress.pending !== undefined) return []
  const due = Slots.due(progress, progress.nextAt, now)
  if (due === undefined) {
    const nextAt = Slots.nearer(progress, progress.nextAt, now)
    return nextAt === undefined ? [] : [{ _tag: "GridMoved", workflowId: progress.workflowId, at: now, nextAt }]
  }
  const first = progress.lastSlot + 1
  const newest = progress.lastSlot + due.count
  const isLate = now - due.newestAt > Math.max(onTimeMillis, declaration.lateWithinMillis)
  if (isLate) return skip(progress, { first, last: newest, reason: "missed" }, due.nextAt, now)
  const missed = due.count === 1 ? [] : skip(progress, { first, last: newest - 1, reason: "missed" }, due.newestAt, now)
  return [
    ...missed,
    ...(progress.activeRunId === undefined
      ? run(progress, newest, due, declaration.input, now)
      : skip(progress, { first: newest, last: newest, reason: "overlap" }, due.nextAt, now))
  ]
}

/** A run that a person asks for: off the grid, in any state, but not beside another run of the workflow. */
export const runNow = (progress: ScheduleProgress, input: Declaration["input"], now: number): Events => {
  if (progress.activeRunId !== undefined || progress.pending !== undefined) return []
  const { workflowId, manualRuns } = progress
  const runId = manualRunIdOf(workflowId, manualRuns + 1)
  const plan = { _tag: "Run" as const, slot: null, runId, dueAt: now, input }
  return [{ _tag: "SlotPending", workflowId, at: now, plan }]
}

/** Does a pending skip that was found: one written and not done. */
export const settleSkip = ({ workflowId, pending }: ScheduleProgress, now: number): Events =>
  pending?._tag === "Skip"
    ? [{ _tag: "SlotsSkipped", workflowId, at: now, first: pending.first, last: pending.last, reason: pending.reason }]
    : []

/** What the host said to a run handed to it. */
export type Answer =
  | { readonly _tag: "Accepted" }
  | { readonly _tag: "Refused"; readonly reason: "refused" | "removed"; readonly detail?: string }

/** Settles the pending run by the host's answer. */
export const settleRun = (progress: ScheduleProgress, runId: string, answer: Answer, now: number): Events => {
  const { workflowId, pending } = progress
  if (pending?._tag !== "Run" || pending.runId !== runId) return []
  if (answer._tag === "Accepted") return [{ _tag: "RunAccepted", workflowId, at: now, runId }]
  const { reason, detail } = answer
  return [{ _tag: "RunRefused", workflowId, at: now, runId, reason, ...(detail === undefined ? {} : { detail }) }]
}

/** Records how the active run ended. A failure too many stops the schedule. */
export const end = (progress: ScheduleProgress, runId: string, ending: RunEnding, now: number): Events => {
  if (progress.activeRunId !== runId) return []
  const ended: ScheduleEvent = { _tag: "RunEnded", workflowId: progress.workflowId, at: now, runId, ending }
  const after = evolveAll(progress, [ended]) ?? progress
  const isOver = after.stoppedAt === undefined && after.failuresInRow >= after.failuresInARow
  return isOver ? [ended, ...stop(after, lastFailedSlot(after), now)] : [ended]
}

// -----------------------------------------------------------------------------
// control
// -----------------------------------------------------------------------------

const said = (note: string | undefined) => (note === undefined ? {} : { note })

/** Nothing fires until it is resumed. Nothing changes when it is paused already. */
export const pause = (progress: ScheduleProgress, note: string | undefined, now: number): Events =>
  progress.state === "paused"
    ? []
    : [
        ...closeGrid(progress, "paused", now),
        { _tag: "SchedulePaused", workflowId: progress.workflowId, at: now, ...said(note) }
      ]

/** Begins a grid whose first slot is not due at once. Nothing changes when it is active already. */
export const resume = (progress: ScheduleProgress, note: string | undefined, now: number): Events =>
  progress.state === "active"
    ? []
    : [
        {
          _tag: "ScheduleResumed",
          workflowId: progress.workflowId,
          at: now,
          nextAt: Slots.firstAfter(progress, now),
          ...said(note)
        }
      ]
