import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Schedule } from "effect"
import { WallClock } from "shiftboss/testing"

const start = Date.UTC(2026, 0, 1)

/** What a program sees of both clocks, as hours since the start. */
const hours = Effect.gen(function* () {
  const wall = yield* Clock.currentTimeMillis
  const monotonic = yield* Clock.monotonicTimeNanos
  return { wall: (wall - start) / 3_600_000, monotonic: Number(monotonic / 1_000_000n) / 3_600_000 }
})

const slept = (time: `${number} hours`) => Effect.andThen(Effect.sleep(time), hours)

describe("WallClock", () => {
  it.effect("passes for both clocks, and wakes each sleeper at its time", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const both = yield* Effect.forkChild(
        Effect.provide(Effect.all([slept("3 hours"), slept("1 hours")], { concurrency: 2 }), clock.layer)
      )
      yield* clock.pass("2 hours")
      assert.isUndefined(both.pollUnsafe())
      yield* clock.pass("4 hours")
      assert.deepStrictEqual(yield* Fiber.join(both), [
        { wall: 3, monotonic: 3 },
        { wall: 1, monotonic: 1 }
      ])
      assert.strictEqual(yield* clock.currentTimeMillis, start + 6 * 3_600_000)
    })
  )

  it.effect("wakes a sleeper late by the time the machine was suspended", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const timer = yield* Effect.forkChild(Effect.provide(slept("2 hours"), clock.layer))
      yield* clock.pass("1 hour")
      yield* clock.suspend("8 hours")
      assert.deepStrictEqual(yield* Effect.provide(hours, clock.layer), { wall: 9, monotonic: 1 })
      yield* clock.pass("59 minutes")
      assert.isUndefined(timer.pollUnsafe())
      yield* clock.pass("1 minute")
      assert.deepStrictEqual(yield* Fiber.join(timer), { wall: 10, monotonic: 2 })
    })
  )

  for (const [how, by] of [
    ["forward", 24],
    ["back", -24]
  ] as const) {
    it.effect(`can be set ${how} with no timer noticing`, () =>
      Effect.gen(function* () {
        const clock = yield* WallClock.make({ start })
        const timer = yield* Effect.forkChild(Effect.provide(slept("2 hours"), clock.layer))
        yield* clock.pass("1 hour")
        yield* clock.set((yield* clock.currentTimeMillis) + by * 3_600_000)
        assert.isUndefined(timer.pollUnsafe())
        yield* clock.pass("1 hour")
        assert.deepStrictEqual(yield* Fiber.join(timer), { wall: 2 + by, monotonic: 2 })
      })
    )
  }

  it.effect("lets a program of a year run at once, each timer at its time", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const ticks: Array<number> = []
      const tick = Effect.map(hours, ({ wall }) => ticks.push(wall))
      yield* clock.passWhile(Effect.repeat(tick, { schedule: Schedule.spaced("1 day"), times: 365 }))
      assert.deepStrictEqual(
        ticks,
        Array.from({ length: 366 }, (_, day) => day * 24)
      )
    })
  )

  it.effect("waits for what comes from outside when nothing sleeps", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const immediate = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
      const program = Effect.andThen(Effect.repeat(immediate, { times: 20 }), slept("1 hours"))
      assert.deepStrictEqual(yield* clock.passWhile(program), { wall: 1, monotonic: 1 })
    })
  )

  it.effect("ends with what the program ended with, and forgets the timers of whoever was interrupted", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      assert.strictEqual(yield* Effect.flip(clock.passWhile(Effect.fail("broken"))), "broken")
      const timedOut = clock.passWhile(Effect.timeoutOption(Effect.sleep("1 day"), "1 hour"))
      assert.strictEqual((yield* timedOut)._tag, "None")
      assert.strictEqual(yield* clock.currentTimeMillis, start + 3_600_000)
      yield* clock.pass("2 days")
      assert.strictEqual(yield* clock.currentTimeMillis, start + 49 * 3_600_000)
    })
  )

  it.effect("says so when the program never comes to rest", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start, mostTurns: 1_000 })
      yield* Effect.forkChild(Effect.provide(Effect.forever(Effect.yieldNow), clock.layer))
      const cause = yield* Effect.sandbox(clock.pass("1 hour")).pipe(Effect.flip)
      assert.include(String(cause), "never comes to rest")
    })
  )

  it.effect("refuses to pass backwards", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const cause = yield* Effect.sandbox(clock.pass("Infinity")).pipe(Effect.flip)
      assert.include(String(cause), "pass takes a finite duration")
    })
  )
})
