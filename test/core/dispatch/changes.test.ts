import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Case, Dispatcher, Improvements } from "shiftboss"
import { cases, changes, completedIds, layer, minutes, Missing, notes, passing, restart } from "./support.ts"

describe("retry", () => {
  const workload = (note: (line: string) => Effect.Effect<void>, hard: () => boolean) => ({
    cases: cases("a"),
    train: (_: Case.Case, seat: Dispatcher.Seat) =>
      Effect.gen(function* () {
        yield* seat.step("s", note(seat.info.key))
        return hard() ? Case.difficult("three tries") : Case.completed()
      })
  })

  it.effect("gives a difficult case a new round, with steps of its own", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      yield* Dispatcher.run(workload(note, () => true))
      const { retry } = yield* Dispatcher.Dispatcher
      yield* retry("a")
      const summary = yield* restart(Dispatcher.run(workload(note, () => false)))
      assert.deepStrictEqual([log, completedIds(summary)], [["a/1", "a/1.2"], ["a"]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("works during a run, and the run takes the case again", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      let hard = true
      const { retry } = yield* Dispatcher.Dispatcher
      const both = workload(note, () => hard)
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a", "slow"),
          train: (c, seat) =>
            c.id === "a" ? both.train(c, seat) : Effect.as(seat.step("s", Effect.sleep("5 minutes")), Case.completed())
        })
      )
      yield* minutes(1)
      hard = false
      yield* retry("a")
      yield* minutes(5)
      assert.deepStrictEqual(completedIds(yield* Fiber.join(run)), ["a", "slow"])
      assert.deepStrictEqual(log, ["a/1", "a/1.2"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses what is not difficult, and what is not known", () =>
    Effect.gen(function* () {
      const { retry } = yield* Dispatcher.Dispatcher
      yield* Dispatcher.run(
        workload(
          () => Effect.void,
          () => false
        )
      )
      assert.match(
        (yield* Effect.flip(retry("a"))).message,
        /case "a" is completed; only a difficult case can be given a new round/
      )
      assert.strictEqual((yield* Effect.flip(retry("b")))._tag, "UnknownCase")
    }).pipe(Effect.provide(layer))
  )
})

describe("forget", () => {
  it.effect("makes a case new again: its steps are run anew, its request is gone", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const run = (fails: boolean) =>
        Dispatcher.run({
          cases: cases("a"),
          improve: {
            request: Missing,
            apply: (batch) =>
              fails
                ? Effect.fail("not now")
                : Effect.andThen(note(batch.requests.map((r) => r.id).join()), changes(batch))
          },
          train: (_, seat) =>
            Effect.gen(function* () {
              yield* seat.step("s", note(seat.info.key))
              yield* seat.park("p", { missing: "x" })
              return Case.completed()
            })
        })
      yield* Effect.flip(run(true))
      const { forget } = yield* Dispatcher.Dispatcher
      yield* forget("a")
      assert.deepStrictEqual(yield* Effect.flatMap(Improvements.Improvements, (i) => i.pending), [])
      assert.deepStrictEqual(completedIds(yield* restart(run(false))), ["a"])
      assert.deepStrictEqual(log, ["a/1", "a/1.2", "a/1.2/p"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses a case on a seat", () =>
    Effect.gen(function* () {
      const { forget } = yield* Dispatcher.Dispatcher
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a"),
          train: (_, seat) => Effect.as(seat.step("s", Effect.sleep("1 minute")), Case.completed())
        })
      )
      yield* minutes(0.5)
      const error = yield* Effect.flip(forget("a"))
      assert.match(error.message, /case "a" is on a seat; stop the run or wait/)
      yield* passing(Fiber.join(run))
      yield* forget("a")
    }).pipe(Effect.provide(layer))
  )

  it.effect("during an apply that has begun to take the request leaves the batch as it is, and wakes nobody", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const { forget } = yield* Dispatcher.Dispatcher
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a"),
          improve: {
            request: Missing,
            apply: (batch) =>
              Effect.andThen(note(batch.requests.map((r) => r.id).join()), Effect.delay(changes(batch), "5 minutes"))
          },
          train: (_, seat) => Effect.as(seat.park("p", { missing: "x" }), Case.completed(seat.info.key))
        })
      )
      yield* minutes(1)
      yield* forget("a")
      const summary = yield* passing(Fiber.join(run))
      assert.deepStrictEqual(log, ["a/1/p", "a/1.2/p"])
      assert.deepStrictEqual(summary.completed, [{ case: "a", value: "a/1.2" }])
    }).pipe(Effect.provide(layer))
  )
})

describe("cancel", () => {
  it.effect("wakes the case with a skipped apply, before and during a run", () =>
    Effect.gen(function* () {
      const { cancel, pending } = yield* Improvements.Improvements
      const run = (apply: (batch: Improvements.Batch<unknown>) => Effect.Effect<Improvements.Applied, string>) =>
        Dispatcher.run(
          {
            cases: cases("a", "b", "slow"),
            improve: { request: Missing, apply },
            train: (c, seat) =>
              Effect.gen(function* () {
                if (c.id === "slow") {
                  yield* seat.step("s", Effect.sleep("5 minutes"))
                  return Case.completed("slow")
                }
                const applied = yield* seat.park("p", { missing: c.id })
                return Case.completed(applied._tag === "Skipped" ? applied.reason : "taken")
              })
          },
          { applyAt: 9 }
        )
      yield* Effect.flip(passing(run(() => Effect.fail("not now"))))
      assert.deepStrictEqual(
        (yield* pending).map((r) => r.id),
        ["a/1/p", "b/1/p"]
      )
      yield* cancel("a/1/p")
      assert.strictEqual((yield* Effect.flip(cancel("a/1/p")))._tag, "UnknownRequest")
      const summary = yield* restart(passing(run(changes)))
      assert.deepStrictEqual(summary.completed.map((c) => [c.case, c.value]).toSorted(), [
        ["a", "the request was cancelled"],
        ["b", "taken"],
        ["slow", "slow"]
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("refuses a request that an apply has begun to take", () =>
    Effect.gen(function* () {
      const { cancel } = yield* Improvements.Improvements
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a"),
          improve: { request: Missing, apply: (batch) => Effect.delay(changes(batch), "5 minutes") },
          train: (_, seat) => Effect.as(seat.park("p", { missing: "x" }), Case.completed())
        })
      )
      yield* minutes(1)
      assert.match((yield* Effect.flip(cancel("a/1/p"))).message, /One that an apply has begun to take/)
      yield* passing(Fiber.join(run))
    }).pipe(Effect.provide(layer))
  )
})
