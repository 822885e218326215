import { Clock, Effect } from "effect"

/** For measuring how long something takes: does not jump with the wall clock. */
export const monotonicMillis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))
