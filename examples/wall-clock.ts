/**
 * What a nightly job does when the laptop it runs on is closed and its clock is set, shown in no time.
 *
 *     node examples/wall-clock.ts
 */
import { Clock, Console, Effect, Fiber } from "effect"
import { WallClock } from "shiftboss/testing"

const hour = 3_600_000
const clockFace = Effect.map(Clock.currentTimeMillis, (now) => new Date(now).toISOString().slice(0, 16))

/** Sleeps until the time, re-reading the wall clock at least every half minute. */
const until = (time: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    now >= time ? Effect.void : Effect.andThen(Effect.sleep(Math.min(time - now, 30_000)), until(time))
  )

const careless = (time: number) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.andThen(Effect.sleep(time - now), clockFace))
const careful = (time: number) => Effect.andThen(until(time), clockFace)

const program = Effect.gen(function* () {
  const clock = yield* WallClock.make({ start: Date.UTC(2026, 5, 1, 18) })
  const due = Date.UTC(2026, 5, 2, 2)
  const under = Effect.provide(clock.layer)
  const one = yield* Effect.forkChild(under(careless(due)))
  const other = yield* Effect.forkChild(under(careful(due)))

  yield* clock.pass("1 hour")
  yield* clock.suspend("12 hours") // closed at seven, opened at seven in the morning
  yield* Console.log(`the machine wakes at         ${yield* under(clockFace)}; the job was due at 02:00`)
  yield* clock.pass("7 hours")
  yield* Console.log(`read the clock again, it ran ${yield* Fiber.join(other)}`)
  yield* Console.log(`slept through, it ran        ${yield* Fiber.join(one)}`)

  yield* clock.set((yield* clock.currentTimeMillis) - hour)
  yield* Console.log(`set back, the clock shows    ${yield* under(clockFace)}`)
  const late = Effect.andThen(Effect.sleep("365 days"), clockFace)
  yield* Console.log(`a year passes by itself:     ${yield* clock.passWhile(late)}`)
})

await Effect.runPromise(program)
