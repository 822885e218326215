import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { ScheduleJournal } from "shiftboss"
import { makeWorld, minute } from "./kit.ts"

const a: ScheduleJournal.Schedule = { workflowId: "a", everySeconds: 60 }

describe("a request that is made again and again", () => {
  it.effect("and fails puts off no slot: one that overlaps is recorded as that, in time", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary } = yield* makeWorld([a])
      yield* after(minute)
      for (let second = 0; second < 70; second += 2) {
        yield* Effect.flip(journal.runNow("a"))
        yield* after(2000)
      }
      assert.deepInclude(yield* summary("a"), { lastSlot: 2, ran: 1 })
      assert.strictEqual((yield* summary("a")).skipped.overlap, 1)
      host.manner = "silent"
      for (let second = 0; second < 120; second += 2) {
        yield* Effect.flip(journal.pause("missing"))
        yield* Effect.flip(journal.runNow("a"))
        yield* after(2000)
      }
      host.manner = "accepting"
      host.end("succeeded")
      for (let second = 0; second < 40; second += 4) {
        yield* Effect.exit(journal.runNow("a"))
        yield* after(4000)
      }
      assert.isAbove((yield* summary("a")).lastSlot, 3)
    })
  )

  it.effect("and changes nothing does not hide how a run ended", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary } = yield* makeWorld([{ ...a, everySeconds: 86_400 }])
      yield* journal.runNow("a")
      yield* after(10 * minute)
      host.end("succeeded")
      for (let second = 0; second < 60; second += 10) {
        yield* journal.resume("a")
        yield* after(10_000)
      }
      assert.isUndefined((yield* summary("a")).activeRunId)
    })
  )

  it.effect("and changes nothing does not keep a slot pending", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary } = yield* makeWorld([{ ...a, everySeconds: 86_400 }])
      host.manner = "silent"
      yield* after(24 * 60 * minute)
      yield* after(10 * minute)
      host.manner = "accepting"
      for (let second = 0; second < 60; second += 10) {
        yield* journal.resume("a")
        yield* after(10_000)
      }
      assert.deepInclude(yield* summary("a"), { ran: 1, lastSlot: 1 })
    })
  )

  it.effect("about a schedule that is not there has nothing looked at", () =>
    Effect.gen(function* () {
      const { host, journal } = yield* makeWorld([a])
      for (const workflowId of ["b", "", "__proto__", 7 as never, null as never, Symbol("no") as never]) {
        assert.strictEqual((yield* Effect.flip(journal.resume(workflowId)))._tag, "UnknownSchedule")
      }
      yield* TestClock.adjust(5000)
      yield* journal.tick
      assert.strictEqual(host.asked, 0)
    })
  )
})
