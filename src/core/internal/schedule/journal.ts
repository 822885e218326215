/**
 * The journal of all schedules: their states, and the only way to change them.
 */
import { Effect } from "effect"
import { type Storage, typed } from "../../Storage.ts"
import type { Events } from "./decide.ts"
import { ScheduleEvent } from "./events.ts"
import { evolve, misfit } from "./evolve.ts"
import * as FoldedLog from "./foldedLog.ts"
import type { Notices } from "./notices.ts"
import { brokenRules, type ScheduleProgress } from "./progress.ts"

/** What the log of a journal holds, in this version. */
export const scheduleLog = { entry: ScheduleEvent, version: 1 }

export type Schedules = ReadonlyMap<string, ScheduleProgress>

const apply = (schedules: Map<string, ScheduleProgress>, event: ScheduleEvent) => {
  const after = evolve(schedules.get(event.workflowId), event)
  if (after !== undefined) schedules.set(event.workflowId, after)
}

const problem = (schedules: Schedules) => {
  for (const [workflowId, progress] of schedules) {
    const rule = brokenRules(progress)
    if (rule !== undefined) return `its entries leave the schedule "${workflowId}" breaking the rule that ${rule}`
  }
  return undefined
}

/** The last line of defence: an entry that does not fit, or leaves a schedule as it cannot be, is not written. */
const refuseBroken = (schedules: Schedules, events: Events) => {
  const after = new Map<string, ScheduleProgress>()
  for (const event of events) {
    const { workflowId } = event
    const before = after.get(workflowId) ?? schedules.get(workflowId)
    const found = misfit(before, event)
    if (found !== undefined) throw new Error(`an event of "${workflowId}" ${found}`)
    const progress = evolve(before, event)
    if (progress !== undefined) after.set(workflowId, progress)
  }
  for (const [workflowId, progress] of after) {
    const rule = brokenRules(progress)
    if (rule !== undefined) throw new Error(`an event would leave "${workflowId}" breaking the rule that ${rule}`)
  }
  return events
}

/** Opens the journal and holds it until the scope closes. What it records is told. */
export const make = Effect.fnUntraced(function* (storage: Storage["Service"], name: string, notices: Notices) {
  const log = yield* FoldedLog.make<Map<string, ScheduleProgress>, ScheduleEvent>({
    open: Effect.map(storage.open(name), (opened) => typed(opened, scheduleLog)),
    empty: () => new Map(),
    apply,
    misfit: (schedules, event) => misfit(schedules.get(event.workflowId), event),
    appended: (events) => Effect.forEach(events, notices.publish, { discard: true }),
    problem,
    size: (schedules) => schedules.size,
    snapshot: (schedules, now) =>
      Array.from(schedules.values(), (progress) => ({
        _tag: "ScheduleSaved" as const,
        workflowId: progress.workflowId,
        at: now,
        progress
      }))
  })
  return {
    schedules: (): Schedules => log.state(),
    refresh: log.refresh,
    commit: (decide: (schedules: Schedules) => Events) =>
      log.append((schedules) => refuseBroken(schedules, decide(schedules)))
  }
})

export type Journal = Effect.Success<ReturnType<typeof make>>
