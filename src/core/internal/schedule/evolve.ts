/**
 * What an entry of the journal makes of a schedule. Total and pure: the state is the fold of the entries.
 */
import { Struct } from "effect"
import type { ScheduleEvent } from "./events.ts"
import { noneSkipped, type ScheduleProgress, type SkipReason, type SlotRecord } from "./progress.ts"

/** How many stops and how many records of slots a schedule keeps. Totals are kept of all. */
const keptStops = 20
const keptRecords = 32

type EventOf<Tag extends ScheduleEvent["_tag"]> = Extract<ScheduleEvent, { readonly _tag: Tag }>

const declared = (before: ScheduleProgress | undefined, event: EventOf<"ScheduleDeclared">): ScheduleProgress => {
  const { everySeconds, cron, failuresInARow, nextAt } = event
  const kept: Omit<ScheduleProgress, "everySeconds" | "cron"> =
    before === undefined
      ? {
          workflowId: event.workflowId,
          generation: 0,
          nextAt,
          lastSlot: 0,
          state: "active",
          declared: true,
          ran: 0,
          skipped: noneSkipped,
          failuresInARow,
          failuresInRow: 0,
          failedRunIds: [],
          stops: [],
          manualRuns: 0,
          recent: []
        }
      : Struct.omit(before, ["everySeconds", "cron"])
  return {
    ...kept,
    ...(everySeconds === undefined ? {} : { everySeconds }),
    ...(cron === undefined ? {} : { cron }),
    generation: kept.generation + 1,
    declared: true,
    failuresInARow,
    nextAt
  }
}

const remember = (progress: ScheduleProgress, record: SlotRecord): ScheduleProgress => ({
  ...progress,
  recent: [...progress.recent, record].slice(-keptRecords)
})

const skipped = (progress: ScheduleProgress, reason: SkipReason, count: number): ScheduleProgress => ({
  ...progress,
  skipped: { ...progress.skipped, [reason]: progress.skipped[reason] + count }
})

const paused = (progress: ScheduleProgress, event: EventOf<"SchedulePaused">): ScheduleProgress => ({
  ...Struct.omit(progress, ["note"]),
  state: "paused",
  ...(event.note === undefined ? {} : { note: event.note })
})

const resumed = (progress: ScheduleProgress, event: EventOf<"ScheduleResumed">): ScheduleProgress => ({
  ...Struct.omit(progress, ["note", "stoppedAt", "stoppedSlot"]),
  state: "active",
  generation: progress.generation + 1,
  nextAt: event.nextAt,
  failuresInRow: 0,
  failedRunIds: [],
  ...(event.note === undefined ? {} : { note: event.note })
})

const stopped = (progress: ScheduleProgress, event: EventOf<"ScheduleStopped">): ScheduleProgress => ({
  ...progress,
  // one that a person paused stays so: both have to be resumed
  state: progress.state === "paused" ? "paused" : "stopped",
  stoppedAt: event.at,
  stoppedSlot: event.slot,
  stops: [...progress.stops, { at: event.at, slot: event.slot, runIds: progress.failedRunIds }].slice(-keptStops)
})

const pending = (progress: ScheduleProgress, { plan, nextAt }: EventOf<"SlotPending">): ScheduleProgress => {
  if (plan._tag === "Run" && plan.slot === null) {
    return { ...progress, pending: plan, manualRuns: progress.manualRuns + 1 }
  }
  return {
    ...progress,
    pending: plan,
    lastSlot: plan._tag === "Run" ? (plan.slot ?? progress.lastSlot) : plan.last,
    nextAt: nextAt ?? progress.nextAt
  }
}

const accepted = (progress: ScheduleProgress, { at, runId }: EventOf<"RunAccepted">): ScheduleProgress => {
  if (progress.pending?._tag !== "Run") return progress
  const { slot } = progress.pending
  const active: ScheduleProgress = { ...Struct.omit(progress, ["pending"]), activeRunId: runId, activeSince: at }
  if (slot === null) return active
  return remember(
    { ...active, activeSlot: slot, ran: active.ran + 1 },
    { _tag: "Ran", slot, runId, at, ending: "running" }
  )
}

const refused = (progress: ScheduleProgress, event: EventOf<"RunRefused">): ScheduleProgress => {
  if (progress.pending?._tag !== "Run") return progress
  const { slot } = progress.pending
  const idle = Struct.omit(progress, ["pending"])
  if (slot === null) return idle
  const { at, reason, detail } = event
  return remember(skipped(idle, reason, 1), {
    _tag: "Skipped",
    first: slot,
    last: slot,
    at,
    reason,
    ...(detail === undefined ? {} : { detail })
  })
}

const ended = (progress: ScheduleProgress, { runId, ending }: EventOf<"RunEnded">): ScheduleProgress => {
  if (progress.activeRunId !== runId) return progress
  const idle: ScheduleProgress = {
    ...Struct.omit(progress, ["activeRunId", "activeSlot", "activeSince"]),
    recent: progress.recent.map((record) =>
      record._tag === "Ran" && record.runId === runId ? { ...record, ending } : record
    )
  }
  // a run that a person asked for says nothing about the grid
  if (progress.activeSlot === undefined) return idle
  if (ending === "succeeded") {
    // the runs of a stop stay with it until it is resumed
    return idle.stoppedAt === undefined ? { ...idle, failuresInRow: 0, failedRunIds: [] } : idle
  }
  if (ending !== "failed" || idle.stoppedAt !== undefined) return idle
  return { ...idle, failuresInRow: idle.failuresInRow + 1, failedRunIds: [...idle.failedRunIds, runId] }
}

const apply = (progress: ScheduleProgress, event: ScheduleEvent): ScheduleProgress => {
  switch (event._tag) {
    case "ScheduleDeclared":
      return declared(progress, event)
    case "ScheduleSaved":
      return event.progress
    case "ScheduleEdited":
      return { ...progress, failuresInARow: event.failuresInARow }
    case "ScheduleRemoved":
      return { ...progress, declared: false }
    case "SchedulePaused":
      return paused(progress, event)
    case "ScheduleResumed":
      return resumed(progress, event)
    case "ScheduleStopped":
      return stopped(progress, event)
    case "GridMoved":
      return { ...progress, generation: progress.generation + 1, nextAt: event.nextAt }
    case "SlotPending":
      return pending(progress, event)
    case "RunAccepted":
      return accepted(progress, event)
    case "RunRefused":
      return refused(progress, event)
    case "SlotsSkipped": {
      const { first, last, at, reason } = event
      const settled = skipped(Struct.omit(progress, ["pending"]), reason, last - first + 1)
      return remember(settled, { _tag: "Skipped", first, last, at, reason })
    }
    case "RunEnded":
      return ended(progress, event)
  }
}

/** Why an entry cannot come next, as the end of a sentence that begins with it; `undefined` when it can. */
export const misfit = (progress: ScheduleProgress | undefined, event: ScheduleEvent): string | undefined => {
  if (event._tag === "ScheduleSaved") {
    return event.workflowId === event.progress.workflowId ? undefined : "keeps the state of another schedule"
  }
  if (progress === undefined) {
    return event._tag === "ScheduleDeclared" ? undefined : "is about a schedule that was not declared before"
  }
  const { pending, activeRunId } = progress
  switch (event._tag) {
    case "SlotPending":
      return pending === undefined ? undefined : "comes while something else is pending"
    case "RunAccepted":
    case "RunRefused":
      return pending?._tag === "Run" && pending.runId === event.runId ? undefined : "answers a run that is not pending"
    case "SlotsSkipped": {
      const isPending = pending?._tag === "Skip" && pending.first === event.first && pending.last === event.last
      return isPending && pending.reason === event.reason ? undefined : "skips slots that are not pending"
    }
    case "RunEnded":
      return activeRunId === event.runId ? undefined : "ends a run that is not active"
    default:
      return undefined
  }
}

/** The schedule after an entry; `undefined` stays so until it is declared or was saved. */
export const evolve = (progress: ScheduleProgress | undefined, event: ScheduleEvent): ScheduleProgress | undefined => {
  if (progress !== undefined) return apply(progress, event)
  if (event._tag === "ScheduleDeclared") return declared(undefined, event)
  return event._tag === "ScheduleSaved" ? event.progress : undefined
}

/** The schedule after some entries. */
export const evolveAll = (progress: ScheduleProgress | undefined, events: ReadonlyArray<ScheduleEvent>) =>
  events.reduce(evolve, progress)
