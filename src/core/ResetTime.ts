/**
 * When a limit ends, read from what agents and servers print.
 *
 * All results are epoch milliseconds. `null` means that the text names no time that can be read: a caller then waits by
 * its own rules and never guesses one.
 */
import { DateTime, Option } from "effect"

/** Where and when the text was printed: most forms leave out the day or the zone. */
export interface Printed {
  /** Epoch milliseconds. */
  readonly now: number
  /** The zone of the process that printed it: an IANA name such as `Europe/Rome`, or an offset such as `+02:00`. */
  readonly timeZone: string
}

// -----------------------------------------------------------------------------
// Typed values
// -----------------------------------------------------------------------------

/** A time in epoch seconds, as `resetsAt` and `resets_at` are. */
export const fromEpochSeconds = (seconds: unknown): number | null =>
  typeof seconds === "number" && seconds > 0 ? readable(seconds * 1000) : null

/** The header `retry-after`: seconds, or an HTTP date (RFC 9110, 10.2.3). */
export const fromRetryAfter = (value: string, now: number): number | null => {
  const seconds = decimal(value)
  if (seconds !== null) return readable(now + seconds * 1000)
  return /^[A-Za-z]{3}, \d{2} [A-Za-z]{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value.trim())
    ? Option.match(DateTime.make(value.trim()), { onNone: () => null, onSome: DateTime.toEpochMillis })
    : null
}

/** The header `retry-after-ms`: milliseconds. */
export const fromRetryAfterMillis = (value: string, now: number): number | null => {
  const millis = decimal(value)
  return millis === null ? null : readable(now + millis)
}

/** A duration with its units, in milliseconds: `34.07s`, `900ms`, `1h 2m 3s`. */
export const durationMillis = (text: string): number | null => {
  if (!/^\s*(?:\d+(?:\.\d+)?\s*(?:ms|[smhd])\s*)+$/i.test(text)) return null
  let sum = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|[smhd])/gi)) {
    sum += Number(amount) * (unitMillis[(unit ?? "").toLowerCase()] ?? 0)
  }
  return sum
}

// -----------------------------------------------------------------------------
// Text
// -----------------------------------------------------------------------------

/**
 * The time named by an error message. Where it names several, the latest: waking late costs time, waking early meets the
 * limit again.
 *
 * **Gotchas**
 *
 * `try again at 5:42 PM` means today, so when that is past the limit is over and a past time is returned. `resets 1:15am`
 * means the next 1:15, so shortly before midnight it is tomorrow's; up to ten minutes past it is still today's.
 */
export const fromText = (text: string, printed: Printed): number | null => {
  const found = [...epochs(text), ...durations(text, printed.now), ...dates(text), ...clocks(text, printed)].filter(
    (time) => readable(time) !== null
  )
  return found.length === 0 ? null : Math.max(...found)
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

/** The last time there is (ECMA-262, 21.4.1.1). What is beyond it says nothing. */
const last = 8.64e15

const readable = (time: number): number | null => (time <= last ? time : null)

const unitMillis: { readonly [unit: string]: number } = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const stillToday = 10 * 60_000
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

const decimal = (value: string): number | null => (/^\s*\d+(?:\.\d+)?\s*$/.test(value) ? Number(value) : null)

const epochs = (text: string): Array<number> =>
  [...text.matchAll(/limit reached\|(\d{10})(?!\d)/gi)].map(([, seconds]) => Number(seconds) * 1000)

const durations = (text: string, now: number): Array<number> => {
  const pattern =
    /(?:retry|try again)(?:delay["']?\s*[:=]\s*["']?|\s+in\s+|[\s-]+after:?\s+)((?:\d+(?:\.\d+)?\s*(?:ms|[smhd])(?![a-z])\s*)+)/gi
  return [...text.matchAll(pattern)].flatMap(([, duration]) => {
    const millis = durationMillis(duration ?? "")
    return millis === null ? [] : [now + millis]
  })
}

const dates = (text: string): Array<number> =>
  [...text.matchAll(/resets?(?: at| on)? (\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2})(:\d{2})?\s?(?:UTC|Z)/gi)].flatMap(
    ([, day, minute, second]) =>
      Option.toArray(DateTime.make(`${day}T${minute}${second ?? ":00"}Z`)).map(DateTime.toEpochMillis)
  )

const lead = /(?<lead>try again at|resets?(?: at| on)?)\s+/.source
const weekday = /(?<weekday>sun|mon|tue|wed|thu|fri|sat)[a-z]*,?\s+(?:at\s+)?/.source
const month = /(?<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+/.source
const day = /(?<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?<year>\d{4}),?\s+)?(?:at\s+)?/.source
const time = /(?<hour>\d{1,2})(?=:|\s*[ap]m)(?::(?<minute>\d{2}))?(?:\s*(?<half>[ap])m\b)?/.source
const zone = /(?:\s*\((?<zone>[^)]*)\))?/.source
const clockPattern = new RegExp(`${lead}(?:${weekday}|${month}${day})?${time}${zone}`, "gi")

const clocks = (text: string, printed: Printed): Array<number> =>
  [...text.matchAll(clockPattern)].flatMap(({ groups }) => {
    const at = groups === undefined ? null : clock(groups, printed)
    return at === null ? [] : [at]
  })

type Groups = { readonly [name: string]: string | undefined }

const clock = (groups: Groups, { now, timeZone }: Printed): number | null => {
  const hour = hourOf(Number(groups["hour"]), groups["half"])
  const minute = Number(groups["minute"] ?? 0)
  const here = DateTime.makeZoned(now, { timeZone: groups["zone"]?.trim() ?? timeZone })
  if (hour === null || minute > 59 || Option.isNone(here)) return null
  const today = DateTime.toParts(here.value)
  const on = (year: number, month: number, dayOfMonth: number): number | null =>
    Option.match(
      DateTime.makeZoned(
        { year, month, day: dayOfMonth, hour, minute, second: 0, millisecond: 0 },
        { timeZone: here.value.zone, adjustForTimeZone: true }
      ),
      { onNone: () => null, onSome: DateTime.toEpochMillis }
    )
  const inDays = (days: number): number | null => on(today.year, today.month, today.day + days)

  if (groups["month"] !== undefined) {
    const named = months.indexOf(groups["month"].toLowerCase()) + 1
    // A day without its year, said in December, may be one in January.
    const nearest = named < today.month - 6 ? today.year + 1 : today.year
    return on(Number(groups["year"] ?? nearest), named, Number(groups["day"]))
  }
  if (groups["weekday"] !== undefined) {
    const days = (weekdays.indexOf(groups["weekday"].toLowerCase()) - today.weekDay + 7) % 7
    return unlessPast(inDays(days), now) ?? inDays(days + 7)
  }
  if (groups["lead"]?.toLowerCase() === "try again at") return inDays(0)
  return unlessPast(inDays(0), now) ?? inDays(1)
}

const hourOf = (hour: number, half: string | undefined): number | null => {
  if (half === undefined) return hour > 23 ? null : hour
  if (hour < 1 || hour > 12) return null
  return (hour % 12) + (half.toLowerCase() === "p" ? 12 : 0)
}

const unlessPast = (time: number | null, now: number): number | null =>
  time !== null && time >= now - stillToday ? time : null
