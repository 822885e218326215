/**
 * The slots of a cron expression in a time zone.
 *
 * Effect's `Cron` does the calendar, always in UTC on *wall time* (what the clock on the wall shows, written as if it
 * were UTC): there it has no daylight saving to get wrong. What a change of the zone's offset means is decided here:
 *
 * - A wall time that matches is one slot. Where a change repeats it, the slot is due the first time; where a change
 *   leaves it out, the slot is due at the change. So `30 2 * * *` fires once a day on every day.
 * - An expression that matches in every hour goes by elapsed time: a repeated hour has slots of its own, an hour left
 *   out has none. So `0,15,30,45 * * * *` fires every quarter of an hour, also in the hour that comes twice.
 *
 * Slots are counted day by day from the expression's fields, so the cost grows with the days looked over, not with the
 * slots in them.
 */
import { Cron, DateTime, Option, Result } from "effect"

const minuteMillis = 60_000
const dayMillis = 86_400_000
/** No zone repeats or leaves out more than a day. */
const longestChangeMillis = 26 * 3_600_000
/** No zone changes its offset twice within this. */
const strideMillis = 7 * dayMillis
/** 29 February is the rarest day, and eight years apart around 2100. */
const horizonMillis = 12 * 366 * dayMillis

interface Expression {
  readonly expression: string
  readonly zone: string
}

interface Compiled {
  readonly zone: DateTime.TimeZone
  /** The expression on wall time. */
  readonly times: Cron.Cron
  /** Midnight of the days it matches. */
  readonly days: Cron.Cron
  readonly byElapsedTime: boolean
}

/** Wall times after `after`, up to `until`; each is due at `wall - offset`, but not before `notBefore`. */
interface Stretch {
  readonly after: number
  readonly until: number
  readonly offset: number
  readonly notBefore: number
}

const dueAt = (stretch: Stretch, wall: number) => Math.max(wall - stretch.offset, stretch.notBefore)

// -----------------------------------------------------------------------------
// reading the expression
// -----------------------------------------------------------------------------

/** What is wrong with an expression or its zone, as the end of a sentence; `undefined` when nothing is. */
export const problem = ({ expression, zone }: Expression): string | undefined => {
  const fields = expression.trim().split(/\s+/)
  if (fields.length !== 5) return `has ${fields.length} fields instead of five (minute hour day month weekday)`
  const parsed = Cron.parse(fields.join(" "), "UTC")
  if (Result.isFailure(parsed)) return `cannot be read: ${parsed.failure.message}`
  if (Option.isNone(DateTime.zoneMakeNamed(zone))) return `is in the unknown time zone "${zone}"`
  const first = Result.try({ try: () => Cron.next(parsed.success, 0), catch: () => "never matches a day" })
  return Result.isFailure(first) ? first.failure : undefined
}

const compile = ({ expression, zone }: Expression): Compiled => {
  const fields = expression.trim().split(/\s+/)
  const times = Cron.parseUnsafe(fields.join(" "), "UTC")
  return {
    zone: DateTime.zoneMakeNamedUnsafe(zone),
    times,
    days: Cron.parseUnsafe(["0", "0", ...fields.slice(2)].join(" "), "UTC"),
    byElapsedTime: times.hours.size === 0 || times.hours.size === 24
  }
}

// -----------------------------------------------------------------------------
// the zone
// -----------------------------------------------------------------------------

const offsetAt = (zone: DateTime.TimeZone, instant: number) =>
  DateTime.zonedOffset(DateTime.makeZonedUnsafe(instant, { timeZone: zone }))

/** The first instant in `(from, to]` with another offset than at `from`, when the two ends differ. */
const changeBetween = (zone: DateTime.TimeZone, from: number, to: number): number => {
  const before = offsetAt(zone, from)
  let [same, other] = [from, to]
  while (other - same > 1) {
    const middle = Math.floor((same + other) / 2)
    if (offsetAt(zone, middle) === before) same = middle
    else other = middle
  }
  return other
}

/** The instants in `(from, to]` as stretches of wall time, in order. */
function* stretches({ zone, byElapsedTime }: Compiled, from: number, to: number): Generator<Stretch> {
  // A change shortly before `from` decides which wall times are left for after it.
  let start = from - longestChangeMillis
  let notBefore = start
  let offset = offsetAt(zone, start)
  let reached = start + offset
  for (;;) {
    const far = Math.min(to, start + strideMillis)
    const offsetFar = offsetAt(zone, far)
    const change = offsetFar === offset ? undefined : changeBetween(zone, start, far)
    const end = change === undefined ? far : change - 1
    const until = end + offset
    const after = from < start ? reached : Math.max(reached, from + offset)
    if (end > from && until > after) yield { after, until, offset, notBefore }
    reached = Math.max(reached, until)
    if (change === undefined) {
      if (far === to) return
      start = far
      continue
    }
    start = change
    notBefore = change
    offset = offsetAt(zone, change)
    if (byElapsedTime) reached = change - 1 + offset
  }
}

// -----------------------------------------------------------------------------
// slots
// -----------------------------------------------------------------------------

const countBelow = (values: ReadonlySet<number>, limit: number, size: number) => {
  if (values.size === 0) return Math.min(limit, size)
  let count = 0
  for (const value of values) if (value < limit) count++
  return count
}

/** How many times of day match up to this one, which is included. */
const timesUpTo = ({ times }: Compiled, timeOfDay: number) => {
  const minute = Math.floor(timeOfDay / minuteMillis)
  const hour = Math.floor(minute / 60)
  const isHour = countBelow(times.hours, hour + 1, 24) - countBelow(times.hours, hour, 24)
  return (
    countBelow(times.hours, hour, 24) * countBelow(times.minutes, 60, 60) +
    isHour * countBelow(times.minutes, (minute % 60) + 1, 60)
  )
}

/** How many wall times match in `(after, until]`. */
const countMatches = (compiled: Compiled, after: number, until: number): number => {
  const [firstDay, lastDay] = [Math.floor(after / dayMillis), Math.floor(until / dayMillis)]
  let count = 0
  for (let day = firstDay; day <= lastDay; day++) {
    if (!Cron.match(compiled.days, day * dayMillis)) continue
    const upTo = day === lastDay ? until - day * dayMillis : dayMillis - 1
    const already = day === firstDay ? timesUpTo(compiled, after - day * dayMillis) : 0
    count += timesUpTo(compiled, upTo) - already
  }
  return count
}

const nextOf = (compiled: Compiled, now: number): number => {
  for (let from = now; from < now + horizonMillis;) {
    const to = from + strideMillis
    let wall = from
    for (const stretch of stretches(compiled, from, to)) {
      wall = Cron.next(compiled.times, stretch.after).getTime()
      if (wall <= stretch.until) return dueAt(stretch, wall)
    }
    // Nothing matches before this wall time, which no zone is two days away from.
    from = Math.max(to, wall - 2 * dayMillis)
  }
  throw new Error("a cron expression that was accepted has no slot within twelve years")
}

/** When the first slot after `now` is due, in epoch milliseconds. */
export const next = (expression: Expression, now: number): number => nextOf(compile(expression), now)

/** The slots due from `nextAt` up to `now`, `nextAt` being the time of one. */
export const due = (expression: Expression, nextAt: number, now: number) => {
  const compiled = compile(expression)
  let count = 0
  let newestAt = nextAt
  for (const stretch of stretches(compiled, nextAt - 1, now)) {
    const matches = countMatches(compiled, stretch.after, stretch.until)
    if (matches === 0) continue
    count += matches
    newestAt = dueAt(stretch, Cron.prev(compiled.times, stretch.until + 1).getTime())
  }
  // The slot that was announced for `nextAt` is one, also when the rules of the zone have changed since then.
  return { count: Math.max(count, 1), newestAt, nextAt: nextOf(compiled, now) }
}
