/**
 * What can be asked of a schedule. Reading changes nothing.
 */
import { Struct } from "effect"
import { firstOf, lastOf, type ScheduleProgress, type SkipReason } from "./progress.ts"
import * as Slots from "./slots.ts"

/** A schedule as it is, with the next time it fires: `null` unless it is active and declared. */
export interface Summary extends Omit<ScheduleProgress, "nextAt" | "recent"> {
  readonly nextAt: number | null
}

/** What became, or becomes, of a slot. Times in epoch milliseconds. */
export type Explanation =
  | {
      readonly _tag: "Ran"
      readonly slot: number
      readonly runId: string
      readonly at: number
      readonly ending: string
    }
  /** It was skipped as one of the slots from `first` to `last`. */
  | {
      readonly _tag: "Skipped"
      readonly slot: number
      readonly first: number
      readonly last: number
      readonly at: number
      readonly reason: SkipReason
      readonly detail?: string
    }
  | { readonly _tag: "Pending"; readonly slot: number; readonly plan: "Run" | "Skip" }
  /** It is to come; `null` when nothing fires as long as the schedule stays as it is, or when its time is not known yet. */
  | {
      readonly _tag: "ToCome"
      readonly slot: number
      readonly dueAt: number | null
      readonly state: ScheduleProgress["state"]
    }
  /** Longer ago than single slots are kept: the totals of the summary count it. */
  | { readonly _tag: "Forgotten"; readonly slot: number }

const isFiring = ({ state, declared }: ScheduleProgress) => state === "active" && declared

export const summary = (progress: ScheduleProgress): Summary => ({
  ...Struct.omit(progress, ["recent"]),
  nextAt: isFiring(progress) ? progress.nextAt : null
})

/** When the next slots are due; none unless it is active. */
export const preview = (progress: ScheduleProgress, count: number): ReadonlyArray<number> =>
  isFiring(progress) ? Slots.upcoming(progress, progress.nextAt, count) : []

/** How many slots ahead the time of a cron slot is looked up. */
const lookedUp = 1000

const toCome = (progress: ScheduleProgress, slot: number): Explanation => {
  const ahead = slot - progress.lastSlot - 1
  const isKnown = isFiring(progress) && (progress.cron === undefined || ahead < lookedUp)
  const dueAt = isKnown
    ? progress.everySeconds === undefined
      ? Slots.upcoming(progress, progress.nextAt, ahead + 1).at(-1)
      : progress.nextAt + ahead * progress.everySeconds * 1000
    : undefined
  return { _tag: "ToCome", slot, dueAt: dueAt ?? null, state: progress.state }
}

export const explain = (progress: ScheduleProgress, slot: number): Explanation => {
  if (slot > progress.lastSlot) return toCome(progress, slot)
  const record = progress.recent.find((one) => firstOf(one) <= slot && slot <= lastOf(one))
  if (record?._tag === "Ran") return record
  if (record !== undefined) return { ...record, slot }
  const { pending } = progress
  const isPending = pending?._tag === "Skip" ? pending.first <= slot && slot <= pending.last : pending?.slot === slot
  return pending !== undefined && isPending
    ? { _tag: "Pending", slot, plan: pending._tag }
    : { _tag: "Forgotten", slot }
}
