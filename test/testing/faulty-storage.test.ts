import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Storage } from "shiftboss"
import { FaultyStorage } from "shiftboss/testing"

/** Appends 1, 2, 3, … one after the other, going on where the log ends. */
const countTo = (last: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const storage = yield* Storage.Storage
      const log = yield* storage.open("log")
      const done = yield* Stream.runCollect(log.replay)
      for (let number = done.length + 1; number <= last; number++) yield* log.append([number])
      return yield* Stream.runCollect(log.replay)
    })
  )

const kept = ({ storage }: FaultyStorage.FaultyStorage) => Stream.runCollect(storage.read("log"))

describe("FaultyStorage", () => {
  it.effect("works like any storage without a fault", () =>
    Effect.gen(function* () {
      const exit = yield* FaultyStorage.make().run(countTo(3))
      assert.deepStrictEqual(exit, Exit.succeed([1, 2, 3]))
    })
  )

  it.effect("fails at the n-th operation, with or without having done it, and goes on", () =>
    Effect.gen(function* () {
      const faulty = FaultyStorage.make([
        { on: "append", at: 2, wrong: "fail" },
        { on: "append", at: 3, wrong: "fail-after" }
      ])
      const exit = yield* faulty.run(
        Effect.scoped(
          Effect.gen(function* () {
            const log = yield* (yield* Storage.Storage).open("log")
            yield* log.append([1])
            for (const operation of [2, 3]) {
              const error = yield* Effect.flip(log.append([`failed ${operation}`]))
              assert(error._tag === "StorageError")
              assert.include(error.message, "the test let the append fail")
            }
            yield* log.append([2])
          })
        )
      )
      assert(exit !== undefined && Exit.isSuccess(exit))
      assert.deepStrictEqual(yield* kept(faulty), [1, 2])
    })
  )

  for (const [wrong, survives] of [
    ["crash", [1, 2]],
    ["crash-after", [1, 2, 3]],
    ["tear", [1, 2]]
  ] as const) {
    it.effect(`ends the process at "${wrong}", and lets the next one go on with what survived`, () =>
      Effect.gen(function* () {
        const faulty = FaultyStorage.make([{ on: "append", at: 3, wrong }])
        let finalized = 0
        const program = Effect.ensuring(
          countTo(5),
          Effect.sync(() => finalized++)
        )
        assert.isUndefined(yield* faulty.run(program))
        assert.strictEqual(finalized, 1)
        const next = faulty.restart()
        assert.deepStrictEqual(yield* kept(next), [...survives])
        assert.deepStrictEqual(yield* next.run(countTo(5)), Exit.succeed([1, 2, 3, 4, 5]))
      })
    )
  }

  it.effect("crashes at every single operation of a program without losing or repeating anything", () =>
    Effect.gen(function* () {
      const whole = FaultyStorage.make()
      yield* whole.run(countTo(4))
      const operations = yield* whole.operations
      assert.isAbove(operations, 6)
      for (let at = 1; at <= operations; at++) {
        for (const wrong of ["crash", "crash-after", "tear"] as const) {
          const faulty = FaultyStorage.make([{ at, wrong }])
          assert.isUndefined(yield* faulty.run(countTo(4)), `${wrong} at ${at}`)
          assert.deepStrictEqual(
            yield* faulty.restart().run(countTo(4)),
            Exit.succeed([1, 2, 3, 4]),
            `${wrong} at ${at}`
          )
        }
      }
    })
  )

  it.effect("hangs, and lets the program be interrupted within its bound", () =>
    Effect.gen(function* () {
      const faulty = FaultyStorage.make([{ on: "append", at: 2, wrong: "hang" }])
      const running = yield* Effect.forkChild(faulty.run(countTo(3)), { startImmediately: true })
      yield* TestClock.adjust("9 seconds")
      const stopping = yield* Effect.forkChild(Fiber.interrupt(running), { startImmediately: true })
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(stopping)
    })
  )

  it.effect("delays", () =>
    Effect.gen(function* () {
      const faulty = FaultyStorage.make([{ on: "append", at: 1, wrong: { delay: "3 seconds" } }])
      const running = yield* Effect.forkChild(faulty.run(countTo(1)), { startImmediately: true })
      // Up to the append, which reads its start off the clock.
      while ((yield* faulty.operations) < 2) yield* Effect.yieldNow
      yield* TestClock.adjust("2 seconds")
      assert.isUndefined(running.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(running), Exit.succeed([1]))
    })
  )
})
