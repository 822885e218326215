import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Metric } from "effect"
import { Case, Dispatcher, Storage, Verdict } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { cases, changes, layer, Missing, passing } from "./support.ts"

/** What the metrics of the dispatcher stand at: `<name> <how>` for those that have a how. */
const standing = Effect.map(Metric.snapshot, (metrics) =>
  Object.fromEntries(
    metrics
      .filter(({ id }) => id.startsWith("shiftboss_"))
      .map(({ attributes, id, state }) => [
        [id.slice("shiftboss_".length), attributes?.["how"]].filter(Boolean).join(" "),
        "count" in state ? Number(state.count) : state
      ])
  )
)

/** With metrics of its own. */
const alone = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, Metric.MetricRegistry, new Map())

describe("metrics", () => {
  it.effect("count how cases left their seats, and what else ended", () =>
    Effect.gen(function* () {
      yield* passing(
        Dispatcher.run(
          {
            cases: cases("parks", "holds", "difficult", "fails", "completes"),
            improve: {
              request: Missing,
              apply: changes,
              recheck: () => Effect.succeed(Verdict.right())
            },
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* seat.step("s", Effect.void)
                if (c.id === "parks") yield* seat.park("p", { missing: "x" })
                if (c.id === "holds") yield* seat.hold("h", 3_600_000)
                if (c.id === "difficult") return Case.difficult("too hard")
                if (c.id === "fails") return yield* Effect.fail("broken")
                return Case.completed()
              })
          },
          { rechecks: 1, applyAt: 2 }
        ),
        "1 hours"
      )
      assert.deepStrictEqual(yield* standing, {
        steps: 5,
        "cases completed": 3,
        "cases difficult": 1,
        "cases failed": 1,
        "cases held": 1,
        "cases parked": 1,
        "applies Changed": 1,
        "rechecks Passed": 1
      })
    }).pipe(Effect.provide(layer), alone)
  )

  it.effect("count a case that a stop has taken off its seat", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(
        Dispatcher.run({ cases: cases("a"), train: () => Effect.as(Effect.never, Case.completed()) })
      )
      yield* Advance.settle
      yield* Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => dispatcher.stop)
      yield* Fiber.join(run)
      assert.deepStrictEqual(yield* standing, { "cases stopped": 1 })
    }).pipe(Effect.provide(layer), alone)
  )

  it.effect("count nothing that is not yet durable", () =>
    Effect.gen(function* () {
      const released = yield* Deferred.make<void>()
      const memory = Storage.makeMemory()
      const slow = Storage.fromEncoded({
        ...memory,
        append: (log, epoch, standing, lines) =>
          Effect.andThen(
            lines.some((line) => line.includes("CaseCompleted")) ? Deferred.await(released) : Effect.void,
            memory.append(log, epoch, standing, lines)
          )
      })
      const run = yield* Effect.forkChild(
        Dispatcher.run({ cases: cases("a"), train: () => Effect.succeed(Case.completed()) }).pipe(
          Effect.provide(Dispatcher.layer.pipe(Layer.provide(Layer.succeed(Storage.Storage, slow))))
        )
      )
      yield* Advance.settle
      assert.deepStrictEqual(yield* standing, {})
      yield* Deferred.succeed(released, undefined)
      yield* Fiber.join(run)
      assert.deepStrictEqual(yield* standing, { "cases completed": 1 })
    }).pipe(alone)
  )
})
