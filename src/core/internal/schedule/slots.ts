/**
 * When the slots of a schedule are due. Never walks over slots: a clock that jumps by ten years costs as much as one
 * that does not (an interval), or some tens of milliseconds (a cron expression, see `cron.ts`).
 */
import * as CronSlots from "./cron.ts"
import type { ScheduleProgress } from "./progress.ts"

/** An interval in seconds, or a cron expression in a zone. */
export type Cadence = Pick<ScheduleProgress, "everySeconds" | "cron">

/** The slots due at an instant, of which there is at least one. */
export interface DueSlots {
  readonly count: number
  /** When the newest of them was due, in epoch milliseconds. */
  readonly newestAt: number
  /** When the first one after them is due. */
  readonly nextAt: number
}

const intervalMillis = (cadence: Cadence) => {
  if (cadence.everySeconds === undefined) throw new Error("a schedule has either an interval or a cron expression")
  return cadence.everySeconds * 1000
}

/** When the first slot of a grid that begins at `now` is due: after it, never at once. */
export const firstAfter = (cadence: Cadence, now: number): number =>
  cadence.cron === undefined ? now + intervalMillis(cadence) : CronSlots.next(cadence.cron, now)

/** The slots due from `nextAt` up to `now`. */
export const due = (cadence: Cadence, nextAt: number, now: number): DueSlots | undefined => {
  if (now < nextAt) return undefined
  if (cadence.cron !== undefined) return CronSlots.due(cadence.cron, nextAt, now)
  const every = intervalMillis(cadence)
  const further = Math.floor((now - nextAt) / every)
  const newestAt = nextAt + further * every
  return { count: further + 1, newestAt, nextAt: newestAt + every }
}

/**
 * Where the next slot moves when the clock was set so far back that more than two slots would pass before it: to the
 * second one from now, on the same grid. So no schedule sleeps through the hours that come again, and none fires
 * sooner after the last time than it does with a clock that is right.
 */
export const nearer = (cadence: Cadence, nextAt: number, now: number): number | undefined => {
  if (cadence.cron !== undefined) {
    const second = CronSlots.next(cadence.cron, CronSlots.next(cadence.cron, now))
    return second < nextAt ? second : undefined
  }
  const every = intervalMillis(cadence)
  const wait = nextAt - now
  return wait <= 2 * every ? undefined : nextAt - (Math.ceil(wait / every) - 2) * every
}

/** When the next slots are due, from `nextAt` on. */
export const upcoming = (cadence: Cadence, nextAt: number, count: number): ReadonlyArray<number> => {
  const cron = cadence.cron
  if (cron === undefined) {
    return Array.from({ length: count }, (_, i) => nextAt + i * intervalMillis(cadence))
  }
  const found: Array<number> = []
  for (let at = nextAt; found.length < count;) {
    // Slots that a change of the zone leaves out are due together.
    const together = CronSlots.due(cron, at, at)
    for (let i = 0; i < together.count && found.length < count; i++) found.push(at)
    at = together.nextAt
  }
  return found
}
