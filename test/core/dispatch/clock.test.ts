import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer } from "effect"
import { Case, Dispatcher } from "shiftboss"
import { WallClock } from "shiftboss/testing"
import { completedIds, layer } from "./support.ts"

const hour = 3_600_000
const start = Date.UTC(2026, 5, 1, 18)

/** A case that holds for an hour, beside one that keeps the only seat for two; when each was done, in hours. */
const holding = (clock: WallClock.WallClock, beside: boolean) => {
  const done: Record<string, number> = {}
  const run = Dispatcher.run(
    {
      cases: Effect.succeed([{ id: "holds" }, ...(beside ? [{ id: "keeps" }] : [])]),
      train: (c, seat) =>
        Effect.gen(function* () {
          if (c.id === "holds") yield* seat.hold("h", start + hour)
          else yield* seat.step("s", Effect.sleep("2 hours"))
          done[c.id] = ((yield* Clock.currentTimeMillis) - start) / hour
          return Case.completed()
        })
    },
    { seats: 1 }
  )
  return { done, run: Effect.provide(run, layer.pipe(Layer.provideMerge(clock.layer))) }
}

describe("a hold, by a wall clock that", () => {
  it.live("jumps over its end, is over within half a minute", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const { done, run } = holding(clock, false)
      const fiber = yield* Effect.forkChild(run)
      yield* clock.pass("1 minute")
      yield* clock.suspend("12 hours")
      yield* clock.pass("30 seconds")
      assert.deepStrictEqual(completedIds(yield* Fiber.join(fiber)), ["holds"])
      assert.isAtMost(done["holds"]!, 12.1)
    })
  )

  it.live("is set back, ends when the clock says so and not before", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const { done, run } = holding(clock, false)
      const fiber = yield* Effect.forkChild(run)
      yield* clock.pass("50 minutes")
      yield* clock.set(start)
      yield* clock.pass("50 minutes")
      assert.isUndefined(fiber.pollUnsafe())
      yield* clock.pass("11 minutes")
      assert.deepStrictEqual(completedIds(yield* Fiber.join(fiber)), ["holds"])
      assert.isAtLeast(done["holds"]!, 1)
    })
  )

  it.live("is set back after its end, while no seat was free, is waited for again and not lost", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const { done, run } = holding(clock, true)
      const fiber = yield* Effect.forkChild(run)
      yield* clock.pass("90 minutes") // the hold is over, the seat is taken
      yield* clock.set(start)
      yield* clock.pass("40 minutes") // the seat is free again
      assert.isUndefined(fiber.pollUnsafe())
      yield* clock.pass("21 minutes")
      assert.deepStrictEqual(completedIds(yield* Fiber.join(fiber)), ["keeps", "holds"])
      assert.isAtLeast(done["holds"]!, 1)
    })
  )
})
