import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { ScheduleJournal } from "shiftboss"
import { beginning, day, hour, makeWorld, minute } from "./kit.ts"

const everyMinute: ScheduleJournal.Schedule = { workflowId: "a", everySeconds: 60 }
const slotsOf = (firings: ReadonlyArray<ScheduleJournal.Firing>) => firings.map(({ slot }) => slot)

describe("overlap", () => {
  it.effect("skips the slot, moves on, and starts nothing late when the run ends", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary } = yield* makeWorld([everyMinute])
      yield* after(minute)
      // nobody can have submitted it before, so it is not asked after first
      assert.strictEqual(host.asked, 1)
      yield* after(minute)
      host.end("succeeded")
      yield* after(20_000)
      assert.deepStrictEqual(slotsOf(host.submitted), [1])
      assert.deepInclude(yield* journal.explain("a", 2), { _tag: "Skipped", reason: "overlap", first: 2, last: 2 })
      yield* after(40_000)
      assert.deepStrictEqual(slotsOf(host.submitted), [1, 3])
      const { ran, skipped, lastSlot } = yield* summary("a")
      assert.deepStrictEqual([ran, skipped.overlap, lastSlot], [2, 1, 3])
    })
  )

  it.effect("skips what the host refuses, with its reason", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      host.manner = "refusing"
      yield* after(minute)
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Skipped", reason: "refused", detail: "as scripted" })
    })
  )
})

describe("missed slots", () => {
  it.effect("are one record, and the newest runs late when it may, told how late it is", () =>
    Effect.gen(function* () {
      const schedule = { workflowId: "a", everySeconds: 3600, lateWithin: "30 minutes" } as const
      const world = yield* makeWorld([schedule])
      yield* TestClock.adjust(10 * hour + 20 * minute)
      yield* world.restart()
      const { host, journal, after } = world
      yield* after(0)
      assert.deepInclude(yield* journal.explain("a", 4), { _tag: "Skipped", reason: "missed", first: 1, last: 9 })
      assert.deepStrictEqual(slotsOf(host.submitted), [10])
      assert.strictEqual(host.submitted[0]?.dueAt, beginning + 10 * hour)
      assert.deepStrictEqual(
        host.submitted.map(({ late }) => Duration.toMinutes(late)),
        [20]
      )
      yield* after(hour + 11 * minute)
      assert.deepInclude(yield* journal.explain("a", 11), { _tag: "Skipped", reason: "missed" })
    })
  )

  it.effect("of ten years cost one record and no loop", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary, disk } = yield* makeWorld([
        everyMinute,
        { workflowId: "cron", cron: "*/5 * * * *", zone: "Europe/Berlin" }
      ])
      const before = disk.appends
      yield* after(3652 * day + 30_000)
      assert.strictEqual((yield* summary("a")).lastSlot, 3652 * 1440)
      assert.strictEqual((yield* summary("cron")).lastSlot, 3652 * 288)
      assert.isAtMost(disk.appends - before, 4)
      assert.isAtMost(host.submitted.length, 2)
      assert.deepInclude(yield* journal.explain("a", 1_000_000), { _tag: "Skipped", first: 1 })
    })
  )
})

describe("pause and resume", () => {
  it.effect("fires nothing at once after many slots, and begins a grid", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      yield* journal.pause("a", "the vendor is down")
      yield* after(7 * hour)
      const resumed = yield* journal.resume("a", "it is back")
      assert.deepInclude(resumed, {
        state: "active",
        lastSlot: 0,
        note: "it is back",
        nextAt: beginning + 7 * hour + minute
      })
      yield* after(minute - 1)
      assert.deepStrictEqual(host.submitted, [])
      yield* after(1)
      assert.deepStrictEqual(slotsOf(host.submitted), [1])
      yield* journal.pause("a", "again")
      assert.isUndefined((yield* journal.resume("a")).note)
    })
  )

  it.effect("answer and change nothing when there is nothing to change", () =>
    Effect.gen(function* () {
      const { journal, after, disk } = yield* makeWorld([everyMinute])
      yield* after(10_000)
      const active = yield* journal.list
      assert.deepStrictEqual(yield* journal.resume("a", "again"), active[0])
      const paused = yield* journal.pause("a", "first")
      assert.strictEqual(paused.nextAt, null)
      const before = disk.appends
      yield* after(hour)
      assert.deepStrictEqual(yield* journal.pause("a", "second"), paused)
      assert.strictEqual(disk.appends, before)
    })
  )

  it.effect("record slots that were due and not taken up as skipped by the pause", () =>
    Effect.gen(function* () {
      const { journal } = yield* makeWorld([everyMinute])
      yield* TestClock.adjust(3 * minute)
      assert.deepInclude(yield* journal.pause("a"), { lastSlot: 3, ran: 0 })
      assert.deepInclude(yield* journal.explain("a", 3), { _tag: "Skipped", reason: "paused", first: 1 })
    })
  )
})

describe("reading", () => {
  it.effect("changes nothing", () =>
    Effect.gen(function* () {
      const { journal, disk, host, summary } = yield* makeWorld([everyMinute])
      yield* TestClock.adjust(5 * minute)
      const before = [disk.appends, yield* summary("a")]
      yield* journal.list
      yield* journal.preview("a", 10)
      yield* journal.explain("a", 3)
      assert.deepStrictEqual([disk.appends, yield* summary("a")], before)
      assert.strictEqual(host.asked, 0)
    })
  )

  it.effect("previews the grid and explains what is to come", () =>
    Effect.gen(function* () {
      const { journal } = yield* makeWorld([everyMinute])
      assert.deepStrictEqual(
        yield* journal.preview("a", 3),
        [1, 2, 3].map((n) => beginning + n * minute)
      )
      assert.deepInclude(yield* journal.explain("a", 5), { _tag: "ToCome", dueAt: beginning + 5 * minute })
      yield* journal.pause("a")
      assert.deepStrictEqual(yield* journal.preview("a", 3), [])
      assert.deepInclude(yield* journal.explain("a", 5), { _tag: "ToCome", dueAt: null, state: "paused" })
    })
  )
})

describe("runNow", () => {
  it.effect("runs beside the grid: neither slots nor streak change", () =>
    Effect.gen(function* () {
      const { journal, host, after, summary } = yield* makeWorld([everyMinute])
      yield* after(10_000)
      const before = yield* summary("a")
      assert.deepStrictEqual(yield* journal.runNow("a"), { runId: "a@manual.1" })
      assert.strictEqual((yield* Effect.flip(journal.runNow("a")))._tag, "InvalidRequest")
      host.end("failed")
      yield* after(2000)
      const { nextAt, lastSlot, failuresInRow } = yield* summary("a")
      assert.deepStrictEqual([nextAt, lastSlot, failuresInRow], [before.nextAt, before.lastSlot, 0])
      assert.deepStrictEqual(slotsOf(host.submitted), [null])
      yield* journal.pause("a")
      assert.deepStrictEqual(yield* journal.runNow("a"), { runId: "a@manual.2" })
    })
  )

  it.effect("of a workflow that is not declared is an error that names the declared ones", () =>
    Effect.gen(function* () {
      const { journal } = yield* makeWorld([everyMinute])
      const error = yield* Effect.flip(journal.runNow("b"))
      assert.strictEqual(error._tag, "UnknownSchedule")
      assert.include(error.message, 'declared are: "a"')
      for (const id of [null, undefined, 5, {}]) {
        assert.strictEqual((yield* Effect.flip(journal.pause(id as never)))._tag, "UnknownSchedule")
      }
    })
  )
})

describe("requests that make no sense", () => {
  it.effect("are refused, and change nothing", () =>
    Effect.gen(function* () {
      const { journal, disk } = yield* makeWorld([everyMinute])
      const before = disk.appends
      for (const value of [
        null,
        {},
        [],
        Symbol("no"),
        () => 1,
        Object.create(null),
        0,
        -1,
        1.5,
        "1",
        Infinity,
        2 ** 53
      ]) {
        const odd = value as never
        const errors = [
          yield* Effect.flip(journal.preview("a", odd)),
          yield* Effect.flip(journal.explain("a", odd)),
          ...(typeof value === "string" ? [] : [yield* Effect.flip(journal.pause("a", odd))])
        ]
        for (const error of errors) assert.strictEqual(error._tag, "InvalidRequest")
        assert.strictEqual((yield* Effect.flip(journal.runNow(odd)))._tag, "UnknownSchedule")
      }
      assert.strictEqual((yield* Effect.flip(journal.preview("a", 1001)))._tag, "InvalidRequest")
      assert.strictEqual((yield* Effect.flip(journal.resume("a", "x".repeat(1001))))._tag, "InvalidRequest")
      assert.strictEqual(disk.appends, before)
    })
  )
})
