/** Hosts that answer with what nobody should: whatever it is, the seat is free again and the run ends. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Case, Dispatcher } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { cases, changes, completedIds, layer, minutes, Missing, passing } from "./support.ts"

const unspeakable = {
  toString() {
    throw new Error("no")
  },
  toJSON() {
    throw new Error("no")
  }
}

const trains: Record<string, () => unknown> = {
  "an object without a prototype": () => Effect.succeed(Object.create(null)),
  "a result that cannot be shown": () => Effect.succeed(unspeakable),
  "a failure that cannot be shown": () => Effect.fail(unspeakable),
  "a defect that cannot be shown": () => Effect.die(unspeakable),
  "a difficulty whose reason cannot be shown": () => Effect.succeed({ _tag: "Difficult", reason: unspeakable }),
  "a value that cannot be shown": () => Effect.succeed({ _tag: "Completed", value: unspeakable }),
  "a cyclic value": () => {
    const value: Record<string, unknown> = {}
    value["self"] = value
    return Effect.succeed({ _tag: "Completed", value })
  },
  "no effect at all": () => undefined,
  "a promise": () => Promise.resolve(Case.completed()),
  "a throw": () => {
    throw new Error("thrown")
  }
}

describe("a train that answers with", () => {
  for (const [what, train] of Object.entries(trains)) {
    it.effect(`${what} fails its case and no other`, () =>
      Effect.gen(function* () {
        const summary = yield* Dispatcher.run(
          {
            cases: cases("odd", "even"),
            train: (c) =>
              c.id === "odd" ? (train() as Effect.Effect<Case.CaseResult>) : Effect.succeed(Case.completed())
          },
          { seats: 1 }
        )
        assert.deepStrictEqual([completedIds(summary), summary.failed.map((f) => f.case)], [["even"], ["odd"]])
      }).pipe(Effect.provide(layer))
    )
  }
})

describe("an apply or a selection that fails with what cannot be shown", () => {
  it.effect("ends the run with a reason all the same", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Dispatcher.run({
          cases: cases("a"),
          improve: { request: Missing, apply: () => Effect.fail(unspeakable) },
          train: (_, seat) => Effect.as(seat.park("p", { missing: "x" }), Case.completed())
        })
      )
      assert.strictEqual(error._tag, "ApplyFailed")
      assert.strictEqual(
        yield* Effect.flip(Dispatcher.run({ cases: Effect.fail(unspeakable), train: () => Effect.die("") })),
        unspeakable
      )
    }).pipe(Effect.provide(layer))
  )
})

describe("a seat that was taken back", () => {
  it.effect("answers nobody who kept it, nor does a second case notice", () =>
    Effect.gen(function* () {
      let kept: Dispatcher.Seat | undefined
      const log: Array<string> = []
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases("a", "b"),
            train: (c, seat) =>
              Effect.gen(function* () {
                if (c.id === "a") {
                  kept = seat
                  return Case.completed()
                }
                const stale = kept!.step(
                  "late",
                  Effect.sync(() => void log.push("late"))
                )
                yield* Effect.forkDetach(stale)
                yield* seat.step("s", Effect.sleep("1 minute"))
                return Case.completed()
              })
          },
          { seats: 1 }
        )
      )
      yield* minutes(2)
      assert.deepStrictEqual(completedIds(yield* Fiber.join(run)), ["a", "b"])
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(layer))
  )
})

describe("re-entrancy:", () => {
  it.effect("a step may ask for anything, and is answered", () =>
    Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      const summary = yield* passing(
        Dispatcher.run({
          cases: cases("a", "b"),
          train: (c, seat) =>
            Effect.gen(function* () {
              const seen = yield* seat.step(
                "look",
                Effect.gen(function* () {
                  yield* Effect.flip(dispatcher.retry("a"))
                  const { run } = yield* dispatcher.snapshot
                  const explained = yield* dispatcher.explain(c.id)
                  const again = yield* Effect.flip(Dispatcher.run({ cases: cases("x"), train: () => Effect.die("") }))
                  return `${run} ${explained._tag} ${again._tag}`
                })
              )
              return Case.completed(seen)
            })
        })
      )
      assert.deepStrictEqual(
        summary.completed.map((c) => c.value),
        ["running Running LogHeld", "running Running LogHeld"]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("a stop asked for from inside a step, and not waited for, lets that step end", () =>
    Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      const run = (stops: boolean) =>
        Dispatcher.run({
          cases: cases("a"),
          train: (_, seat) =>
            Effect.as(
              seat.step(
                "s",
                stops
                  ? Effect.asVoid(Effect.forkDetach(dispatcher.stop, { startImmediately: true }))
                  : Effect.die("again")
              ),
              Case.completed()
            )
        })
      assert.strictEqual((yield* run(true)).end._tag, "Stopped")
      assert.deepStrictEqual(completedIds(yield* run(false)), ["a"])
    }).pipe(Effect.provide(layer))
  )
})

describe("a run", () => {
  it.effect("interrupted at any moment leaves the log free for the next at once", () =>
    Effect.gen(function* () {
      const workload = {
        cases: cases("a", "b"),
        improve: {
          request: Missing,
          apply: (batch: Parameters<typeof changes>[0]) => Effect.delay(changes(batch), "1 minute")
        },
        train: (_: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
          Effect.gen(function* () {
            yield* seat.step("s", Effect.sleep("1 minute"))
            yield* seat.park("p", { missing: "x" })
            return Case.completed()
          })
      }
      for (let turns = 0; turns < 40; turns++) {
        const fiber = yield* Effect.forkChild(Dispatcher.run(workload))
        for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
        if (turns % 5 === 0) yield* Advance.advance("20 seconds")
        yield* Fiber.interrupt(fiber)
      }
      assert.deepStrictEqual(completedIds(yield* passing(Dispatcher.run(workload))), ["a", "b"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("stopped twice, before and while it opens, ends once", () =>
    Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      const began = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        Dispatcher.run({
          cases: Effect.as(Deferred.succeed(began, undefined), [{ id: "a" }]),
          train: () => Effect.as(Effect.sleep("1 hour"), Case.completed())
        })
      )
      yield* Effect.yieldNow
      yield* Effect.all([dispatcher.stop, dispatcher.stop], { concurrency: 2 })
      assert.strictEqual((yield* Fiber.join(fiber)).end._tag, "Stopped")
    }).pipe(Effect.provide(layer))
  )
})
