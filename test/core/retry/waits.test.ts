/**
 * Waits under a clock whose wall time and running time move separately.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer } from "effect"
import { RetryPolicy, RetryRules, Storage } from "shiftboss"
import { WallClock } from "shiftboss/testing"
import { makeWaits } from "../../../src/core/internal/retry/waits.ts"
import { eventOf, journaled, makeAgent, policy, turn } from "./agent.ts"
import { hour, minute, second, start } from "./play.ts"

/** Turns that each meet a failure of their own once, and then succeed; `times` are their launches since the start. */
const waiting = Effect.fnUntraced(function* (
  ids: ReadonlyArray<string>,
  kind: "Capacity" | "Network" = "Capacity",
  options: RetryPolicy.Options = {}
) {
  const clock = yield* WallClock.make({ start })
  const met = new Set<string>()
  const agent = makeAgent(({ turnId }) => {
    if (met.has(turnId)) return {}
    met.add(turnId)
    return { fails: { kind, scope: "request" } }
  })
  const wait = (id: string) => Number(/\d+/.exec(id)?.[0] ?? 60_000)
  const run = (id: string) =>
    RetryPolicy.run(
      turn({ id, rules: kind === "Network" ? {} : { remedies: { Capacity: RetryRules.retry(wait(id)) } } })
    )
  const rules = Effect.map(journaled(), (entries) =>
    entries.map(eventOf).flatMap((event) => (event._tag === "WaitEnded" ? [event.rule] : []))
  )
  const fiber = yield* Effect.forkChild(
    Effect.all(ids.map(run), { concurrency: "unbounded" }).pipe(
      Effect.andThen(rules),
      Effect.provide(
        Layer.provideMerge(policy(agent, Storage.layerMemory, { firstLaunchAlone: 0, ...options }), clock.layer)
      )
    )
  )
  yield* clock.pass(0)
  assert.strictEqual(agent.launches.length, ids.length)
  const times = () => agent.launches.slice(ids.length).map(({ at, attempt }) => [attempt.turnId, at - start] as const)
  return { clock, times, rules: Fiber.join(fiber) }
})

describe("a wait", () => {
  it.effect("ends at its millisecond, whatever other turns wait for", () =>
    Effect.gen(function* () {
      const lengths = [60_000, 1, 59_999, 30_001, 61_234, 30_000, 2, 3_600_000, 60_001]
      const { clock, times, rules } = yield* waiting(lengths.map((millis) => `wait-${millis}`))
      yield* clock.pass(29_999)
      assert.deepStrictEqual(
        times().map(([, at]) => at),
        [1, 2]
      )
      yield* clock.pass(2 * hour)
      assert.deepStrictEqual(
        times(),
        lengths.toSorted((one, other) => one - other).map((millis) => [`wait-${millis}`, millis] as const)
      )
      assert.deepStrictEqual(yield* rules, [])
    })
  )

  it.effect("ends at its millisecond also when ten thousand turns wait for ten thousand others", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start })
      const ended: Array<number> = []
      const count = 10_000
      const all = Effect.gen(function* () {
        const waits = yield* makeWaits
        const one = Effect.fnUntraced(function* (after: number) {
          yield* waits.until(`${after}`, start + after + 1, hour)
          ended.push((yield* Clock.currentTimeMillis) === start + after + 1 ? after : Number.NaN)
        })
        const afters = Array.from({ length: count }, (_, index) => (index * 7919) % count)
        yield* Effect.forEach(afters, one, { concurrency: "unbounded", discard: true })
      })
      const fiber = yield* Effect.forkChild(Effect.provide(Effect.scoped(all), clock.layer))
      yield* clock.pass(0)
      yield* clock.pass(count)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        ended,
        Array.from({ length: count }, (_, index) => index)
      )
    })
  )

  it.effect("that was suspended with the machine ends within 30 seconds of its resuming", () =>
    Effect.gen(function* () {
      for (const passed of [10 * second, 45 * second]) {
        const { clock, times } = yield* waiting([`wait-${hour}`])
        yield* clock.pass(passed)
        yield* clock.suspend(2 * hour)
        yield* clock.pass(30 * second)
        assert.strictEqual(times().length, 1)
      }
    })
  )

  it.effect("is as long as planned when the clock is set back while it goes on, and the journal says so", () =>
    Effect.gen(function* () {
      const { clock, times, rules } = yield* waiting(["wait-60000"])
      yield* clock.pass(20 * second)
      yield* clock.set(start - 5 * hour)
      yield* clock.pass(40 * second - 1)
      assert.deepStrictEqual(times(), [])
      yield* clock.pass(1)
      assert.strictEqual(times().length, 1)
      assert.deepStrictEqual(yield* rules, ["clock-stepped-back"])
    })
  )

  it.effect(
    "for the network asks the probe every 30 seconds, and no longer than planned when the clock is set back",
    () =>
      Effect.gen(function* () {
        let asked = 0
        const networkProbe = Effect.sync(() => ++asked > 100)
        const { clock, times, rules } = yield* waiting(["t"], "Network", { networkProbe })
        yield* clock.pass(5 * minute)
        assert.strictEqual(asked, 10)
        yield* clock.set(start - 5 * hour)
        yield* clock.pass(5 * minute - 1)
        assert.deepStrictEqual(times(), [])
        yield* clock.pass(1)
        assert.strictEqual(times().length, 1)
        assert.strictEqual(asked, 19)
        assert.deepStrictEqual(yield* rules, ["clock-stepped-back"])
      })
  )
})
