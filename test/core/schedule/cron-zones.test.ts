/**
 * Cron slots in zones whose clocks did odd things, beside a walk over every minute that asks the platform.
 */
import { assert, describe, it } from "@effect/vitest"
import * as CronSlots from "../../../src/core/internal/schedule/cron.ts"

const minute = 60_000
const day = 1440 * minute

const oddities = [
  { zone: "Pacific/Apia", from: "2011-12-28", days: 5, what: "left a whole day out" },
  { zone: "Pacific/Kwajalein", from: "1993-08-19", days: 4, what: "left a whole day out when it was far behind" },
  { zone: "America/Sao_Paulo", from: "2018-11-03", days: 2, what: "left midnight out" },
  { zone: "America/Havana", from: "2026-10-31", days: 2, what: "repeats midnight" },
  { zone: "Antarctica/Troll", from: "2026-10-24", days: 2, what: "repeats two hours" },
  { zone: "Asia/Pyongyang", from: "2018-05-04", days: 2, what: "went half an hour forward for good" }
]

const expressions = [
  { minutes: [30], hours: [0, 1, 2, 3] },
  { minutes: [0, 59], hours: [0, 12, 23] },
  { minutes: [5], hours: undefined }
]

/** Every minute with what the clock on the wall shows, as if that were UTC. */
const walls = (zone: string, from: number, to: number) => {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" })
  return Array.from({ length: (to - from) / minute + 1 }, (_, i) => {
    const at = from + i * minute
    return { at, wall: Date.parse(`${format.format(at).replace(" ", "T")}Z`) }
  })
}

/** When the slots are due: each wall time once, at the change when it is left out; or every one there is. */
const expected = (
  minutes: ReadonlyArray<number>,
  hours: ReadonlyArray<number> | undefined,
  seen: ReturnType<typeof walls>
) => {
  const matches = (wall: number) =>
    minutes.includes(Math.floor(wall / minute) % 60) && (hours?.includes(Math.floor(wall / (60 * minute)) % 24) ?? true)
  const slots: Array<number> = []
  let reached = (seen[0]?.wall ?? 0) - minute
  for (const { at, wall } of seen) {
    if (hours === undefined) {
      if (matches(wall)) slots.push(at)
      continue
    }
    for (; reached < wall; reached += minute) if (matches(reached + minute)) slots.push(at)
  }
  return slots
}

describe("a zone that", () => {
  for (const { zone, from: date, days, what } of oddities) {
    it(`${what} has each slot once (${zone})`, () => {
      const from = Date.parse(`${date}T00:00Z`)
      const seen = walls(zone, from - day, from + days * day)
      for (const { minutes, hours } of expressions) {
        const cron = { expression: `${minutes.join(",")} ${hours?.join(",") ?? "*"} * * *`, zone }
        const slots = expected(minutes, hours, seen).filter((at) => at > from)
        const found: Array<number> = []
        for (let at = CronSlots.next(cron, from); at <= from + days * day; at = CronSlots.next(cron, at)) {
          for (let i = 0; i < CronSlots.due(cron, at, at).count; i++) found.push(at)
        }
        assert.deepStrictEqual(found, slots)
        // from any moment on, also one between the two times that a wall time is shown
        for (let at = from; at < from + days * day; at += 17 * minute) {
          const upcoming = slots.find((slot) => slot > at)
          if (upcoming !== undefined) assert.strictEqual(CronSlots.next(cron, at), upcoming)
        }
        assert.strictEqual(CronSlots.due(cron, slots[0] ?? 0, from + days * day).count, slots.length)
      }
    })
  }
})

describe("an expression", () => {
  it("that names every hour goes by elapsed time, as one that matches every hour does", () => {
    const [zone, from] = ["America/Havana", Date.parse("2026-11-01T02:00Z")]
    const found = ["*", "0-23", Array.from({ length: 24 }, (_, hour) => hour).join(",")].map((hours) => {
      const slots: Array<number> = []
      for (let at = from; slots.length < 6;) {
        slots.push((at = CronSlots.next({ expression: `5 ${hours} * * *`, zone }, at)))
      }
      return slots
    })
    const hourly = Array.from({ length: 6 }, (_, i) => from + 5 * minute + i * 60 * minute)
    assert.deepStrictEqual(found, [hourly, hourly, hourly])
  })

  it("costs by the weeks it looks over, not by its slots, and skips the weeks without any", () => {
    const { formatToParts } = Intl.DateTimeFormat.prototype
    let asked = 0
    const count = (look: () => unknown) => {
      asked = 0
      look()
      return asked
    }
    Intl.DateTimeFormat.prototype.formatToParts = function (date) {
      asked++
      return formatToParts.call(this, date)
    }
    try {
      const zone = "Europe/Berlin"
      const [from, to] = [Date.parse("2028-03-01"), Date.parse("2038-03-01")]
      assert.isAtMost(
        count(() => CronSlots.next({ expression: "0 0 29 2 *", zone }, from)),
        200
      )
      const few = count(() => CronSlots.due({ expression: "0 0 1 1 *", zone }, from, to))
      assert.isAbove(few, 500)
      assert.isAtMost(
        count(() => CronSlots.due({ expression: "* * * * *", zone }, from, to)),
        2 * few
      )
    } finally {
      Intl.DateTimeFormat.prototype.formatToParts = formatToParts
    }
  })

  it("that matches days far apart is found, also over a century without a leap day", () => {
    const cron = { expression: "0 0 29 2 *", zone: "Europe/Berlin" }
    assert.strictEqual(CronSlots.next(cron, Date.parse("2096-03-01")), Date.parse("2104-02-28T23:00Z"))
  })

  it("begins anew in each hour when its step does not divide it", () => {
    const found: Array<number> = []
    for (let at = 0; found.length < 10;)
      found.push((at = CronSlots.next({ expression: "*/7 * * * *", zone: "UTC" }, at)))
    assert.deepStrictEqual(
      found.map((at) => (at / minute) % 60),
      [7, 14, 21, 28, 35, 42, 49, 56, 0, 7]
    )
  })

  const wrong = [
    "0 0 30 2 *",
    "0 0 31 2,4,6,9,11 *",
    "@daily",
    "0 0 L * *",
    "5-2 * * * *",
    "*/0 * * * *",
    "*/-1 * * * *"
  ]
  const more = [
    "60 * * * *",
    "0 24 * * *",
    "23:59:60 * * * *",
    "0 0 0 * *",
    "1e1 * * * *",
    "0,, * * * *",
    "* * * * * *",
    ""
  ]
  it("that never matches, or is none, is told so", () => {
    for (const expression of [...wrong, ...more]) {
      assert.isString(CronSlots.problem({ expression, zone: "UTC" }), expression)
    }
    for (const zone of ["", "Mars/Olympus", "GMT+1", "utc ", "../UTC"]) {
      assert.include(CronSlots.problem({ expression: "0 0 * * *", zone }) ?? "", "unknown time zone")
    }
  })
})
