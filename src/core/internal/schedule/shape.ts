import type { Effect, Stream } from "effect"
import type { InvalidRequest, SchedulesUnavailable, UnknownSchedule } from "./errors.ts"
import type { LiveEvent } from "./notices.ts"
import type { Explanation, Summary } from "./view.ts"

/** What a journal of schedules can do. Times are epoch milliseconds. */
export interface ScheduleJournalShape {
  /**
   * Fires slots as they come due, until it is interrupted, the journal ends or another process takes it. It survives what goes wrong with a
   * schedule, the host or the storage, and says so in `events`.
   */
  readonly run: Effect.Effect<never, SchedulesUnavailable>
  /**
   * One step, for a host with a loop of its own: whatever is due is taken up. Nothing due costs the same with any
   * number of schedules. Fails when something could not be recorded; the next step takes it up again.
   *
   * *Gotcha*: a slot taken up more than a minute after it was due counts as missed, unless `lateWithin` allows it.
   */
  readonly tick: Effect.Effect<void, SchedulesUnavailable>
  /** Takes no more requests and waits for those under way. Runs of the host go on. */
  readonly drain: Effect.Effect<void>
  /** All schedules the journal knows, also those no longer declared. */
  readonly list: Effect.Effect<ReadonlyArray<Summary>, SchedulesUnavailable>
  /** Nothing fires until it is resumed. What is pending is settled first; pausing a paused one changes nothing. */
  readonly pause: (
    workflowId: string,
    note?: string
  ) => Effect.Effect<Summary, UnknownSchedule | InvalidRequest | SchedulesUnavailable>
  /** Begins a new grid: the first slot comes a whole interval from now. Resuming an active one changes nothing. */
  readonly resume: (
    workflowId: string,
    note?: string
  ) => Effect.Effect<Summary, UnknownSchedule | InvalidRequest | SchedulesUnavailable>
  /**
   * Runs the workflow now, beside its slots: neither the grid nor the streak changes. Works on a paused and on a stopped
   * one; an InvalidRequest while another run of it is active, or when the host refuses.
   */
  readonly runNow: (
    workflowId: string
  ) => Effect.Effect<{ readonly runId: string }, UnknownSchedule | InvalidRequest | SchedulesUnavailable>
  /** When the next slots are due, at most 1000; none unless the schedule is active. */
  readonly preview: (
    workflowId: string,
    count: number
  ) => Effect.Effect<ReadonlyArray<number>, UnknownSchedule | InvalidRequest | SchedulesUnavailable>
  /** What became of a slot, or becomes of it. */
  readonly explain: (
    workflowId: string,
    slot: number
  ) => Effect.Effect<Explanation, UnknownSchedule | InvalidRequest | SchedulesUnavailable>
  /** What happens from now on. A subscriber that is too slow is told how much it missed, and slows nothing down. */
  readonly events: Stream.Stream<LiveEvent, SchedulesUnavailable>
}
