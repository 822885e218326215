import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Storage } from "shiftboss"
import { clearRequests, requested, requestStop } from "../../../src/core/internal/dispatch/control.ts"

/** A store in memory that other processes share, and how often each log was read and written. */
const shared = () => {
  const memory = Storage.makeMemory()
  const counts = { reads: 0, writes: 0 }
  let isBroken = false
  const storage = Storage.fromEncoded({
    ...memory,
    append: (...lines) => {
      counts.writes++
      return memory.append(...lines)
    },
    replace: (...lines) => {
      counts.writes++
      return memory.replace(...lines)
    },
    lines: (log) =>
      Stream.suspend(() => {
        counts.reads++
        return isBroken ? Stream.fail("no answer") : memory.lines(log)
      })
  })
  return { storage, counts, breaks: (broken: boolean) => void (isBroken = broken) }
}

const begun = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("a request to stop", () => {
  it.effect("is in a log of its own, with its time, and seen within a second", () =>
    Effect.gen(function* () {
      const { storage } = shared()
      yield* TestClock.adjust("5 seconds")
      const seen = yield* begun(requested(storage, "cases"))
      yield* TestClock.adjust("10 seconds")
      assert.isUndefined(seen.pollUnsafe())
      yield* requestStop(storage, "cases")
      yield* TestClock.adjust("1 second")
      assert.isDefined(seen.pollUnsafe())
      assert.deepStrictEqual(yield* Stream.runCollect(storage.list()), ["cases.control"])
      assert.deepStrictEqual(yield* Stream.runCollect(storage.read("cases.control")), [
        { version: 1, value: { _tag: "StopRequested", at: 15_000 } }
      ])
    })
  )

  it.effect("is looked for each second, also while the storage does not answer", () =>
    Effect.gen(function* () {
      const { storage, counts, breaks } = shared()
      yield* requestStop(storage, "cases")
      breaks(true)
      counts.reads = 0
      const seen = yield* begun(requested(storage, "cases"))
      yield* TestClock.adjust(999)
      assert.strictEqual(counts.reads, 0)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([counts.reads, seen.pollUnsafe()], [5, undefined])
      breaks(false)
      yield* TestClock.adjust("1 second")
      assert.isDefined(seen.pollUnsafe())
    })
  )

  it.effect("waits for another who writes at that moment, but not for ever", () =>
    Effect.gen(function* () {
      const { storage } = shared()
      const scope = yield* Scope.make()
      yield* Scope.provide(storage.open("cases.control"), scope)
      const waiting = yield* begun(requestStop(storage, "cases"))
      yield* TestClock.adjust("900 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("50 millis")
      yield* Fiber.join(waiting)
      yield* storage.open("cases.control")
      const never = yield* begun(Effect.flip(requestStop(storage, "cases")))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* Fiber.join(never))._tag, "LogHeld")
    }).pipe(Effect.scoped)
  )

  it.effect("of before a start is cleared, and nothing is written where there is none", () =>
    Effect.gen(function* () {
      const { storage, counts } = shared()
      yield* clearRequests(storage, "cases")
      assert.strictEqual(counts.writes, 0)
      yield* requestStop(storage, "cases")
      yield* clearRequests(storage, "cases")
      assert.deepStrictEqual(yield* Stream.runCollect(storage.read("cases.control")), [])
      const seen = yield* begun(requested(storage, "cases"))
      yield* TestClock.adjust("3 seconds")
      assert.isUndefined(seen.pollUnsafe())
    })
  )
})
