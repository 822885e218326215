import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { TestClock } from "effect/testing"
import { beginning, makeDisk, makeWorld, minute, start } from "./kit.ts"
import { ScriptedWorkflows } from "shiftboss/testing"

const at = (iso: string) => DateTime.makeUnsafe(iso).epochMilliseconds
const iso = (millis: number) => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** What the clock on the wall shows, by the platform and not by the code under test. */
const wallOf = (zone: string) => {
  const format = new Intl.DateTimeFormat("en-GB", { timeZone: zone, dateStyle: "short", timeStyle: "short" })
  return (millis: number) => format.format(millis)
}

/** Ticks through a stretch of time, with runs that end at once. */
const run = Effect.fnUntraced(function* (
  cron: string,
  zone: string,
  from: number,
  to: number,
  everyMillis = 5 * minute
) {
  yield* TestClock.setTime(from)
  const host = ScriptedWorkflows.make()
  host.endsAtOnce = "succeeded"
  const { journal, stop } = yield* start(yield* makeDisk, host, [{ workflowId: "a", cron, zone }])
  const previewed = (yield* journal.preview("a", 400)).filter((dueAt) => dueAt <= to)
  for (let now = from; now < to; now += everyMillis) {
    yield* TestClock.adjust(everyMillis)
    yield* journal.tick
  }
  const summary = (yield* journal.list)[0]
  yield* stop
  return {
    due: host.submitted.map(({ dueAt }) => dueAt),
    slots: host.submitted.map(({ slot }) => slot),
    previewed,
    summary
  }
})

/** The days on which each zone changes: forward and back. */
const changes = [
  {
    zone: "Europe/Berlin",
    forward: "2026-03-28T20:00:00Z",
    back: "2026-10-24T20:00:00Z",
    gap: "30 2 * * *",
    gapMinutes: 60
  },
  {
    zone: "America/New_York",
    forward: "2026-03-08T02:00:00Z",
    back: "2026-11-01T02:00:00Z",
    gap: "30 2 * * *",
    gapMinutes: 60
  },
  {
    zone: "Australia/Lord_Howe",
    forward: "2026-10-03T10:00:00Z",
    back: "2026-04-04T10:00:00Z",
    gap: "15 2 * * *",
    gapMinutes: 30
  }
]
const length = 14 * 60 * minute

for (const { zone, forward, back, gap, gapMinutes } of changes) {
  describe(`in ${zone}`, () => {
    it.effect("fires every quarter of an hour through both changes, without a hole and not twice", () =>
      Effect.gen(function* () {
        for (const begin of [forward, back]) {
          const { due, slots, previewed, summary } = yield* run("*/15 * * * *", zone, at(begin), at(begin) + length)
          assert.deepStrictEqual(due, previewed)
          assert.strictEqual(new Set(due).size, due.length)
          assert.deepStrictEqual(
            slots,
            due.map((_, i) => i + 1)
          )
          assert.deepStrictEqual([summary?.ran, summary?.lastSlot], [due.length, due.length])
          for (let i = 1; i < due.length; i++) assert.strictEqual((due[i] ?? 0) - (due[i - 1] ?? 0), 15 * minute)
        }
      })
    )

    it.effect("fires a time that comes twice once, the first time", () =>
      Effect.gen(function* () {
        // the last quarter of an hour before the clock goes back shows a time that comes again
        const wall = wallOf(zone)
        const { due } = yield* run("45 1,2 * * *", zone, at(back), at(back) + length)
        const shown = due.map(wall)
        assert.strictEqual(due.length, 2)
        assert.strictEqual(new Set(shown).size, 2)
      })
    )

    it.effect("fires a time that does not come at the change, and the next day at its time", () =>
      Effect.gen(function* () {
        const { due, summary } = yield* run(gap, zone, at(forward), at(forward) + 2 * 24 * 60 * minute, 5 * minute)
        assert.strictEqual(due.length, 2)
        assert.deepStrictEqual([summary?.ran, summary?.lastSlot], [2, 2])
        const [first = 0, second = 0] = due
        const wall = wallOf(zone)
        assert.notStrictEqual(wall(first).slice(-5), wall(second).slice(-5))
        const before = wall(first - minute).slice(-5)
        assert.strictEqual(before, "01:59")
        assert.include(gapMinutes === 60 ? "03:00" : "02:30", wall(first).slice(-5))
      })
    )
  })
}

describe("several times that a change leaves out", () => {
  it.effect("are due together: the newest runs, the others are recorded as missed", () =>
    Effect.gen(function* () {
      const begin = at("2026-03-28T20:00:00Z")
      const { due, slots, summary, previewed } = yield* run("15,30,45 2 * * *", "Europe/Berlin", begin, begin + length)
      assert.deepStrictEqual(
        previewed.map(iso),
        [1, 2, 3].map(() => "2026-03-29T01:00:00.000Z")
      )
      assert.deepStrictEqual(due.map(iso), ["2026-03-29T01:00:00.000Z"])
      assert.deepStrictEqual(slots, [3])
      assert.deepStrictEqual([summary?.lastSlot, summary?.skipped.missed], [3, 2])
    })
  )
})

describe("what the clock on the wall shows", () => {
  const expressions = [
    { cron: "20,50 1-3 * * *", shows: /0[123]:[25]0$/, isElapsed: false },
    { cron: "*/10 * * * *", shows: /0$/, isElapsed: true }
  ]
  for (const { zone, back } of changes) {
    it.effect(`is what was asked for, also where it comes twice (${zone})`, () =>
      Effect.gen(function* () {
        const wall = wallOf(zone)
        for (const { cron, shows, isElapsed } of expressions) {
          const [from, to] = [at(back) - length, at(back) + 2 * length]
          const seen = new Set<string>()
          const expected: Array<number> = []
          for (let now = from + minute; now <= to; now += minute) {
            const shown = wall(now)
            if (shows.test(shown) && (isElapsed || !seen.has(shown))) expected.push(now)
            seen.add(shown)
          }
          yield* TestClock.setTime(from)
          const host = ScriptedWorkflows.make()
          const { journal, stop } = yield* start(yield* makeDisk, host, [{ workflowId: "a", cron, zone }])
          assert.deepStrictEqual((yield* journal.preview("a", expected.length)).map(iso), expected.map(iso))
          yield* stop
        }
      })
    )
  }
})

describe("missed slots of a cron expression", () => {
  const expressions = ["0 9 * * 1-5", "*/7 * * * *", "30 2 * * *", "15,45 1-3 1,15 * 0", "0 0 29 2 *"]
  const days = 24 * 60 * minute
  const from = at("2027-01-01T00:00:00Z")
  const to = from + 280 * days

  /** What the journal says after ticks so far apart, and when the first slots were to be due. */
  const skipThrough = Effect.fnUntraced(function* (cron: string, zone: string, step: number) {
    yield* TestClock.setTime(from)
    const host = ScriptedWorkflows.make()
    host.endsAtOnce = "succeeded"
    const { journal, stop } = yield* start(yield* makeDisk, host, [{ workflowId: "a", cron, zone }])
    const times = yield* journal.preview("a", 300)
    for (let now = from; now < to; now += step) {
      yield* TestClock.adjust(step)
      yield* journal.tick
    }
    const [summary] = yield* journal.list
    yield* stop
    return { lastSlot: summary?.lastSlot, nextAt: summary?.nextAt, times }
  })

  for (const { zone } of changes) {
    it.effect(`are as many at once as in pieces and one by one (${zone})`, () =>
      Effect.gen(function* () {
        for (const cron of expressions) {
          const atOnce = yield* skipThrough(cron, zone, to - from)
          const inPieces = yield* skipThrough(cron, zone, 5 * days)
          assert.deepStrictEqual(atOnce, inPieces)
          const oneByOne = atOnce.times.filter((time) => time <= to).length
          if (oneByOne < atOnce.times.length) assert.strictEqual(atOnce.lastSlot, oneByOne)
        }
      })
    )
  }
})

describe("a slot that newer rules of the zone put elsewhere", () => {
  it.effect("is due when it was announced, once", () =>
    Effect.gen(function* () {
      const cron = { expression: "0 0 * * *", zone: "UTC" }
      const world = yield* makeWorld([{ workflowId: "a", cron: cron.expression }])
      const nextAt = beginning + 60 * minute
      const declared = { _tag: "ScheduleDeclared", workflowId: "a", at: beginning, cron, failuresInARow: 3 } as const
      yield* world.disk.write([{ ...declared, nextAt }])
      yield* world.restart()
      yield* world.after(60 * minute)
      assert.deepStrictEqual(
        world.host.submitted.map(({ runId, dueAt }) => [runId, dueAt]),
        [["a@2.1", nextAt]]
      )
      assert.deepInclude(yield* world.summary("a"), { ran: 1, lastSlot: 1, nextAt: beginning + 24 * 60 * minute })
    })
  )
})

describe("a clock set back by days", () => {
  it.effect("moves a cron schedule to the second slot from then on, and repeats none", () =>
    Effect.gen(function* () {
      const begin = at("2026-06-10T00:00Z")
      yield* TestClock.setTime(begin)
      const host = ScriptedWorkflows.make()
      const cron = { workflowId: "a", cron: "0 2 * * *", zone: "Europe/Berlin" }
      const disk = yield* makeDisk
      const first = yield* start(disk, host, [cron])
      assert.deepStrictEqual((yield* first.journal.preview("a", 1)).map(iso), ["2026-06-11T00:00:00.000Z"])
      yield* first.stop
      yield* TestClock.setTime(begin - 10 * 1440 * minute + minute)
      const second = yield* start(disk, host, [cron])
      yield* second.journal.tick
      assert.deepStrictEqual((yield* second.journal.preview("a", 2)).map(iso), [
        "2026-06-02T00:00:00.000Z",
        "2026-06-03T00:00:00.000Z"
      ])
      yield* second.stop
    })
  )
})
