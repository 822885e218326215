import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { ScheduleJournal } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { makeWorld, minute } from "./kit.ts"

const everyMinute = (workflowId: string): ScheduleJournal.Schedule => ({ workflowId, everySeconds: 60 })
const many = Array.from({ length: 5 }, (_, i) => everyMinute(`w${i}`))

describe("an interruption", () => {
  for (const what of ["tick", "run"] as const) {
    it.effect(`of ${what} leaves no schedule behind, also none it had not come to`, () =>
      Effect.gen(function* () {
        const { host, journal } = yield* makeWorld(many, { concurrency: 1 })
        host.manner = "hanging"
        yield* TestClock.adjust(minute)
        const fiber = yield* Effect.forkChild(Effect.ignore(journal[what]))
        yield* Advance.settle
        yield* Fiber.interrupt(fiber)
        host.manner = "accepting"
        yield* TestClock.adjust(2000)
        yield* journal.tick
        assert.sameMembers(
          host.submitted.map(({ runId }) => runId),
          many.map(({ workflowId }) => `${workflowId}@1.1`)
        )
      })
    )
  }

  it.effect("of a request, or a failed write that was written, still has the schedule looked at", () =>
    Effect.gen(function* () {
      const { disk, host, journal } = yield* makeWorld([everyMinute("a")])
      yield* journal.pause("a")
      disk.fault = { kind: "fail", written: true, after: 0 }
      yield* Effect.flip(journal.resume("a"))
      assert.deepInclude((yield* journal.list)[0], { state: "active" })
      yield* Effect.forkChild(journal.run)
      yield* Advance.advance("70 seconds", "5 seconds")
      assert.strictEqual(host.submitted.length, 1)
    })
  )
})
