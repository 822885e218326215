/**
 * The live events: what the journal records, and what happens to it.
 */
import { Effect, PubSub, Stream } from "effect"
import type { SchedulesUnavailable } from "./errors.ts"
import type { ScheduleEvent } from "./events.ts"

/** How many events wait for a subscriber that is slow. */
const waiting = 1024

/** What is not recorded, because it is no fact about a schedule. */
export type Notice =
  /** The wall clock moved against the time that passed: it was set, or the machine was asleep. Negative: back. */
  | { readonly _tag: "ClockStepped"; readonly at: number; readonly byMillis: number }
  /** The host did not answer about a run: it failed, died or took too long. It is asked again. */
  | { readonly _tag: "HostSilent"; readonly at: number; readonly workflowId: string; readonly cause: unknown }
  /** A schedule could not be brought forward; nothing of it has changed, and it is tried again. */
  | { readonly _tag: "LookFailed"; readonly at: number; readonly workflowId: string; readonly cause: unknown }

/** The subscriber was too slow: this many events are missing here. The journal has them. */
export interface EventsMissed {
  readonly _tag: "EventsMissed"
  readonly count: number
}

export type LiveEvent = ScheduleEvent | Notice | EventsMissed

/** Publishing never waits, whoever listens. */
export const make = Effect.gen(function* () {
  const events = yield* PubSub.sliding<{ readonly number: number; readonly event: ScheduleEvent | Notice }>(waiting)
  yield* Effect.addFinalizer(() => PubSub.shutdown(events))
  let count = 0
  return {
    publish: (event: ScheduleEvent | Notice) =>
      Effect.suspend(() => PubSub.publish(events, { number: ++count, event })),
    stream: Stream.fromPubSub(events).pipe(
      Stream.mapAccum(
        () => count,
        (last, { number, event }): readonly [number, ReadonlyArray<LiveEvent>] => [
          number,
          number === last + 1 ? [event] : [{ _tag: "EventsMissed", count: number - last - 1 }, event]
        ]
      )
    ) satisfies Stream.Stream<LiveEvent, SchedulesUnavailable>
  }
})

export type Notices = Effect.Success<typeof make>
