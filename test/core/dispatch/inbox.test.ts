import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Scheduler } from "effect"
import * as Inbox from "../../../src/core/internal/dispatch/inbox.ts"

describe("an inbox", () => {
  it.effect.each([3, 4, 5, 6, 7])("loses nothing when its worker is pre-empted every $0 operations", (operations) =>
    Effect.gen(function* () {
      const done: Array<number> = []
      const inbox = Inbox.make<number>((batch) => Effect.sync(() => void done.push(...batch)))
      const worker = yield* Effect.forkChild(
        Effect.provideService(inbox.worker, Scheduler.MaxOpsBeforeYield, operations)
      )
      // The second one at every distance from the first; nothing comes after it that would wake the worker.
      for (let distance = 0; distance < 40; distance++) {
        inbox.hand(2 * distance)
        for (let turns = 0; turns < distance; turns++) yield* Effect.yieldNow
        inbox.hand(2 * distance + 1)
        for (let turns = 0; turns < 50; turns++) yield* Effect.yieldNow
        assert.lengthOf(done, 2 * distance + 2)
      }
      assert.deepStrictEqual(
        done,
        Array.from({ length: 80 }, (_, item) => item)
      )
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("works in the call that hands over, where nothing has to be waited for", () =>
    Effect.gen(function* () {
      const done: Array<number> = []
      const inbox = Inbox.make<number>((batch) => Effect.sync(() => void done.push(...batch)))
      const worker = yield* Effect.forkChild(inbox.worker, { startImmediately: true })
      inbox.hand(1)
      assert.deepStrictEqual(done, [1])
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("ends nothing in the middle", () =>
    Effect.gen(function* () {
      const done: Array<number> = []
      const inbox = Inbox.make<number>((batch) =>
        Effect.andThen(
          Effect.yieldNow,
          Effect.sync(() => void done.push(...batch))
        )
      )
      const worker = yield* Effect.forkChild(inbox.worker, { startImmediately: true })
      inbox.hand(1)
      yield* Fiber.interrupt(worker)
      assert.deepStrictEqual(done, [1])
    })
  )
})
