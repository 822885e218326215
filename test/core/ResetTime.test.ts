import { assert, describe, it } from "@effect/vitest"
import { ResetTime } from "shiftboss"

const at = (iso: string): number => Date.parse(iso)
const iso = (millis: number | null): string | null => (millis === null ? null : new Date(millis).toISOString())

interface Row {
  readonly text: string
  readonly now: string
  readonly zone?: string
  readonly expected: string | null
}

// 2026-11-30 is a Monday.
const rows: ReadonlyArray<Row> = [
  {
    text: "Claude AI usage limit reached|1762952400",
    now: "2025-11-12T10:00:00Z",
    expected: "2025-11-12T13:00:00.000Z"
  },
  {
    text: "You've hit your 5-hour limit · resets 1:15am (UTC)",
    now: "2026-11-30T23:15:00Z",
    expected: "2026-12-01T01:15:00.000Z"
  },
  { text: "resets 4:50am (Europe/Rome)", now: "2026-07-01T00:00:00Z", expected: "2026-07-01T02:50:00.000Z" },
  { text: "reset at 9am (America/Chicago)", now: "2026-12-01T14:00:00Z", expected: "2026-12-01T15:00:00.000Z" },
  { text: "resets 3:45pm", now: "2026-12-01T12:00:00Z", zone: "Asia/Tokyo", expected: "2026-12-02T06:45:00.000Z" },
  { text: "resets 3:45pm", now: "2026-12-01T06:54:00Z", zone: "Asia/Tokyo", expected: "2026-12-01T06:45:00.000Z" },
  { text: "resets 12am", now: "2026-12-01T00:30:00Z", expected: "2026-12-02T00:00:00.000Z" },
  { text: "resets 12:30pm (UTC)", now: "2026-12-01T00:30:00Z", expected: "2026-12-01T12:30:00.000Z" },
  { text: "resets Mon 12:00am", now: "2026-11-30T23:00:00Z", expected: "2026-12-07T00:00:00.000Z" },
  { text: "resets Monday, 11:30pm (UTC)", now: "2026-11-30T23:00:00Z", expected: "2026-11-30T23:30:00.000Z" },
  { text: "resets Thu 9am (UTC)", now: "2026-11-30T23:00:00Z", expected: "2026-12-03T09:00:00.000Z" },
  {
    text: "resets 2026-08-09 00:00 UTC",
    now: "2026-08-08T12:00:00Z",
    zone: "Asia/Tokyo",
    expected: "2026-08-09T00:00:00.000Z"
  },
  {
    text: "try again at 5:42 PM.",
    now: "2026-12-01T12:00:00Z",
    zone: "Europe/Berlin",
    expected: "2026-12-01T16:42:00.000Z"
  },
  { text: "try again at 5:42 PM.", now: "2026-12-01T19:00:00Z", expected: "2026-12-01T17:42:00.000Z" },
  { text: "try again at Dec 1st, 2026 1:08 AM.", now: "2026-11-30T23:00:00Z", expected: "2026-12-01T01:08:00.000Z" },
  {
    text: "try again at Dec 1, 2026 1:08 AM.",
    now: "2026-11-30T23:00:00Z",
    zone: "-05:00",
    expected: "2026-12-01T06:08:00.000Z"
  },
  { text: "resets Jan 2 at 5pm (UTC)", now: "2026-12-30T00:00:00Z", expected: "2027-01-02T17:00:00.000Z" },
  { text: "resets Nov 2 at 5pm (UTC)", now: "2026-06-15T00:00:00Z", expected: "2026-11-02T17:00:00.000Z" },
  { text: "resets Jan 2 at 5pm (UTC)", now: "2026-07-15T00:00:00Z", expected: "2026-01-02T17:00:00.000Z" },
  { text: "resets Jan 2 at 5pm (UTC)", now: "2026-08-15T00:00:00Z", expected: "2027-01-02T17:00:00.000Z" },
  { text: "resets at 23:59 (UTC)", now: "2026-12-01T12:00:00Z", expected: "2026-12-01T23:59:00.000Z" },
  { text: "resets at 0:10 ( UTC )", now: "2026-12-01T12:00:00Z", expected: "2026-12-02T00:10:00.000Z" },
  { text: "resets at 24:00", now: "2026-12-01T12:00:00Z", expected: null },
  { text: "resets at 0:30am", now: "2026-12-01T12:00:00Z", expected: null },
  { text: "reset on 2026-08-09T00:00:30Z", now: "2026-08-08T12:00:00Z", expected: "2026-08-09T00:00:30.000Z" },
  { text: "resets 11:50am (UTC)", now: "2026-12-01T12:00:00Z", expected: "2026-12-01T11:50:00.000Z" },
  { text: "limit reached|17629524001", now: "2025-11-12T10:00:00Z", expected: null },
  { text: "retry after: 5m", now: "2026-12-01T00:00:00Z", expected: "2026-12-01T00:05:00.000Z" },
  { text: "retry -  after  5 m", now: "2026-12-01T00:00:00Z", expected: "2026-12-01T00:05:00.000Z" },
  { text: "try again  in  2 d", now: "2026-12-01T00:00:00Z", expected: "2026-12-03T00:00:00.000Z" },
  { text: "retryDelay = 2s", now: "2026-12-01T00:00:00Z", expected: "2026-12-01T00:00:02.000Z" },
  { text: `retry in ${"9".repeat(30)}d`, now: "2026-12-01T00:00:00Z", expected: null },
  { text: "resets 2:30am (America/New_York)", now: "2026-03-08T05:00:00Z", expected: "2026-03-08T07:30:00.000Z" },
  { text: 'retryDelay: "34.07s"', now: "2026-12-01T00:00:00Z", expected: "2026-12-01T00:00:34.070Z" },
  { text: '"retryDelay":"900ms"', now: "2026-12-01T00:00:00Z", expected: "2026-12-01T00:00:00.900Z" },
  { text: "Please retry in 17s", now: "2026-12-01T00:00:00Z", expected: "2026-12-01T00:00:17.000Z" },
  {
    text: "Please retry in 3s.\nSuggested retry after 7200s.",
    now: "2026-12-01T00:00:00Z",
    expected: "2026-12-01T02:00:00.000Z"
  },
  { text: "Please retry in 1h2m3.5s.", now: "2026-12-01T00:00:00Z", expected: "2026-12-01T01:02:03.500Z" },
  { text: "Please try again in 6m0s.", now: "2026-12-01T00:00:00Z", expected: "2026-12-01T00:06:00.000Z" },
  { text: "try again later", now: "2026-12-01T00:00:00Z", expected: null },
  { text: "resets soon", now: "2026-12-01T00:00:00Z", expected: null },
  { text: "resets 5 times a day", now: "2026-12-01T00:00:00Z", expected: null },
  { text: "resets 3:45pm (your time)", now: "2026-12-01T00:00:00Z", expected: null },
  { text: "resets 13:75", now: "2026-12-01T00:00:00Z", expected: null },
  { text: "resets 14pm", now: "2026-12-01T00:00:00Z", expected: null }
]

describe("ResetTime", () => {
  for (const { text, now, zone, expected } of rows) {
    it(`reads ${JSON.stringify(text)} said at ${now}${zone === undefined ? "" : ` in ${zone}`}`, () => {
      assert.strictEqual(iso(ResetTime.fromText(text, { now: at(now), timeZone: zone ?? "UTC" })), expected)
    })
  }

  it("reads retry-after as seconds or as a date, and nothing else", () => {
    assert.strictEqual(ResetTime.fromRetryAfter("30", 1000), 31_000)
    assert.strictEqual(iso(ResetTime.fromRetryAfter("Wed, 21 Oct 2026 07:28:00 GMT", 0)), "2026-10-21T07:28:00.000Z")
    assert.strictEqual(ResetTime.fromRetryAfter("30s", 0), null)
    assert.strictEqual(ResetTime.fromRetryAfter("2026", 0), 2_026_000)
    assert.strictEqual(ResetTime.fromRetryAfter("-1", 0), null)
    assert.strictEqual(ResetTime.fromRetryAfter(" 1.25 ", 0), 1_250)
    assert.strictEqual(iso(ResetTime.fromRetryAfter(" Wed, 21 Oct 2026 07:28:00 GMT ", 0)), "2026-10-21T07:28:00.000Z")
    for (const odd of ["Wed, 99 Oct 2026 07:28:00 GMT", "on Wed, 21 Oct 2026 07:28:00 GMT", "30 or so", "1.x", ""]) {
      assert.strictEqual(ResetTime.fromRetryAfter(odd, 0), null, odd)
    }
    assert.strictEqual(ResetTime.fromRetryAfter("Wed, 21 Oct 2026 07:28:00 GMT+1", 0), null)
    assert.strictEqual(ResetTime.fromRetryAfter("9".repeat(300), 0), null)
  })

  it("reads durations that are nothing else", () => {
    assert.strictEqual(ResetTime.durationMillis(" 1h 2m 3.5s "), 3_723_500)
    assert.strictEqual(ResetTime.durationMillis("1D"), 86_400_000)
    for (const odd of ["", "soon", "in 5s", "5s ago", "5", "5 s x", "5x"]) {
      assert.strictEqual(ResetTime.durationMillis(odd), null, odd)
    }
  })

  it("reads retry-after-ms as milliseconds", () => {
    assert.strictEqual(ResetTime.fromRetryAfterMillis("30", 1000), 1030)
    assert.strictEqual(ResetTime.fromRetryAfterMillis("soon", 1000), null)
  })

  it("takes epoch seconds for seconds, and nothing that is no time", () => {
    assert.strictEqual(iso(ResetTime.fromEpochSeconds(1_796_087_725)), "2026-12-01T01:15:25.000Z")
    for (const value of [0, -1, Number.NaN, "1796087725", null, undefined]) {
      assert.strictEqual(ResetTime.fromEpochSeconds(value), null)
    }
  })
})
