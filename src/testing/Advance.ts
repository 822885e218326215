/**
 * Moves the test clock while a program runs.
 */
import { Duration, Effect } from "effect"
import * as TestClock from "effect/testing/TestClock"

/** More turns of the scheduler than any chain of fibers that wake each other takes. */
const turns = 200

/** Lets everything that can run, run, without moving the clock. `TestClock.adjust` gives one turn, which is too few. */
export const settle: Effect.Effect<void> = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: turns }))

/**
 * Moves the clock by `duration` in steps of `by` (default: in one), and lets everything settle before each step and
 * after the last.
 */
export const advance = Effect.fnUntraced(function* (duration: Duration.Input, by: Duration.Input = duration) {
  const step = Duration.toMillis(by)
  yield* settle
  for (let left = Duration.toMillis(duration); left > 0; left -= step) {
    yield* TestClock.adjust(Math.min(step, left))
    yield* settle
  }
})
