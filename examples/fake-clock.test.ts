/**
 * A host's unit test of its own loop: a week of work, under a clock that passes by itself.
 *
 * Every night at two the run is stopped, and started again at six by a new process. In between agents work for hours,
 * wait for quotas to be reset, and ask for edits of the rules they work by.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Schema } from "effect"
import { Case, Dispatcher, Improvements, Storage } from "shiftboss"
import { WallClock } from "shiftboss/testing"

const hour = 3_600_000
const monday = Date.UTC(2026, 5, 1)
const ids = Array.from({ length: 60 }, (_, index) => `case-${index + 1}`)

/** The loop under test, and what it did. */
const makeLoop = () => {
  const did = { runs: 0, taken: [] as Array<string> }
  const workload = Dispatcher.run(
    {
      cases: Effect.succeed(ids.map((id) => ({ id }))),
      train: (case_, seat) =>
        Effect.gen(function* () {
          const number = Number(case_.id.slice("case-".length))
          const work = Effect.andThen(
            Effect.sleep(`${1 + (number % 5)} hours`),
            Effect.sync(() => void did.runs++)
          )
          yield* seat.step("run", work)
          if (number % 6 === 0) yield* seat.hold("quota", (yield* Clock.currentTimeMillis) + 5 * hour)
          if (number % 4 === 0) {
            yield* seat.park("rule", case_.id)
            yield* seat.step("run on the new rules", work)
          }
          return Case.completed()
        }),
      improve: {
        request: Schema.String,
        apply: (batch) =>
          Effect.sync(() => {
            did.taken.push(...batch.requests.map((request) => request.case))
            return Improvements.changed(batch.version ?? "v0", `v${batch.name}`)
          }).pipe(Effect.delay("20 minutes"))
      }
    },
    { seats: 2, stopWithin: "6 hours" }
  )
  return { did, workload }
}

/** One day of a process: from six until it is asked to stop at two the next night, or until there is nothing left. */
const day = <A, E>(run: Effect.Effect<A, E, Dispatcher.Dispatcher>) =>
  Effect.gen(function* () {
    const running = yield* Effect.forkChild(run)
    yield* Effect.raceFirst(Fiber.await(running), Effect.andThen(Effect.sleep("20 hours"), Dispatcher.stop))
    return yield* Fiber.join(running)
  }).pipe(Effect.provide(Layer.fresh(Dispatcher.layer)))

/** Starts at six each morning until the run ends by itself. */
const week = Effect.fnUntraced(function* (run: ReturnType<typeof makeLoop>["workload"]) {
  for (let morning = monday + 6 * hour; ; morning += 24 * hour) {
    yield* Effect.sleep(Math.max(0, morning - (yield* Clock.currentTimeMillis)))
    const summary = yield* day(run)
    if (summary.end._tag === "Finished") return summary
  }
})

describe("my loop", () => {
  it.live("works through a week of agent work, stopped every night, without doing anything twice", () =>
    Effect.gen(function* () {
      const { did, workload } = makeLoop()
      const clock = yield* WallClock.make({ start: monday })
      const summary = yield* clock.passWhile(Effect.provide(week(workload), Storage.layerMemory))

      assert.strictEqual(summary.completed.length, 60)
      assert.strictEqual(did.runs, 60 + 15)
      assert.strictEqual(did.taken.length, 15)
      assert.strictEqual(new Set(did.taken).size, 15)
      const days = ((yield* clock.currentTimeMillis) - monday) / (24 * hour)
      assert.isAbove(days, 5)
      assert.isBelow(days, 8)
    })
  )

  it.live("waits out a quota that all cases run into, and charges nobody", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start: monday })
      const reset = monday + 5 * hour
      const run = Dispatcher.run(
        {
          cases: Effect.succeed([{ id: "a" }, { id: "b" }]),
          train: (_, seat) => Effect.as(seat.hold("quota", reset), Case.completed())
        },
        { failuresInARow: 1 }
      )
      const layer = Dispatcher.layer.pipe(Layer.provide(Storage.layerMemory))
      const summary = yield* clock.passWhile(Effect.provide(run, Layer.fresh(layer)))
      assert.deepStrictEqual([summary.completed.length, summary.failed], [2, []])
      assert.strictEqual(yield* clock.currentTimeMillis, reset)
    })
  )
})
