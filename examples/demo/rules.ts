/**
 * The rules file: what the agent reads timestamps by, and what an apply edits. `catalogue.txt` describes the notation.
 */

export interface Rule {
  readonly name: string
  readonly pattern: string
}

/** What a timestamp says, as UTC with milliseconds; `null` when no rule reads it, and then `because` says why. */
export interface Answer {
  readonly utc: string | null
  readonly rule: string | null
  readonly because: string
}

/** The rules of a file. Lines that are empty or begin with # say nothing. */
export const parseRules = (text: string): ReadonlyArray<Rule> =>
  text
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"))
    .map((line) => {
      const end = line.search(/\s/)
      return { name: line.slice(0, end), pattern: line.slice(end).trim() }
    })

/**
 * The rules with those of the catalogue of these names added, in its order. What stands before the place that it has in the
 * catalogue was put there by a repair, and stays.
 */
export const withRules = (
  rules: ReadonlyArray<Rule>,
  catalogue: ReadonlyArray<Rule>,
  added: ReadonlySet<string>
): ReadonlyArray<Rule> => {
  const place = (rule: Rule) => catalogue.findIndex(({ name }) => name === rule.name)
  const ahead = rules.filter((rule, index) => rules.slice(index + 1).some((later) => place(later) < place(rule)))
  const isAhead = (name: string) => ahead.some((rule) => rule.name === name)
  const known = new Set([...rules.map(({ name }) => name), ...added])
  return [...ahead, ...catalogue.filter(({ name }) => known.has(name) && !isAhead(name))]
}

/** The rules with these of them before all others. */
export const putFirst = (rules: ReadonlyArray<Rule>, names: ReadonlySet<string>): ReadonlyArray<Rule> => [
  ...rules.filter(({ name }) => names.has(name)),
  ...rules.filter(({ name }) => !names.has(name))
]

export const formatRules = (rules: ReadonlyArray<Rule>): string =>
  [
    "# What timestamps look like, as learned so far.",
    ...rules.map((rule) => rule.name.padEnd(15) + rule.pattern),
    ""
  ].join("\n")

/** Reads the text by the first rule that fits it and tells a moment. */
export const read = (rules: ReadonlyArray<Rule>, text: string): Answer => {
  let because = "no rule looks like it"
  for (const rule of rules) {
    const parts = compile(rule.pattern).exec(text)?.groups
    if (parts === undefined) continue
    const moment = momentOf(parts)
    if (moment !== undefined) return { utc: new Date(moment).toISOString(), rule: rule.name, because: rule.pattern }
    because = `the rule ${rule.name} looks like it, but there is no such moment`
  }
  return { utc: null, rule: null, because }
}

// -----------------------------------------------------------------------------
// patterns
// -----------------------------------------------------------------------------

const fields: Readonly<Record<string, string>> = {
  year: "\\d{4}",
  yy: "\\d{2}",
  month: "\\d{2}",
  mon: "[A-Za-z]{3}",
  day: "\\d{2}| ?\\d",
  yearday: "\\d{3}",
  weekday: "[A-Z][a-z]+",
  hour: "\\d{2}",
  minute: "\\d{2}",
  second: "\\d{2}",
  fraction: "\\d{1,9}",
  half: "AM|PM",
  offset: "[+-]\\d{2}(?:[:']?\\d{2})?",
  minutes: "[+-]\\d{3}",
  zone: "[A-Z]{1,4}",
  comment: "[^()]+",
  unix: "\\d{9,10}",
  millis: "\\d{13}",
  micros: "\\d{16}",
  filetime: "\\d{18}"
}

const compile = (pattern: string): RegExp => {
  const source = pattern.replace(/\{(\w+)\}|\[|\]|[^{}[\]]+/g, (part, field: string | undefined) => {
    if (part === "[") return "(?:"
    if (part === "]") return ")?"
    if (field === undefined) return part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")
    if (fields[field] === undefined) throw new Error(`the pattern "${pattern}" has an unknown field: ${part}`)
    return `(?<${field}>${fields[field]})`
  })
  return new RegExp(`^${source}$`)
}

// -----------------------------------------------------------------------------
// moments
// -----------------------------------------------------------------------------

type Parts = Readonly<Record<string, string | undefined>>

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

/** Hours ahead of UTC. */
const zones: Readonly<Record<string, number>> = {
  Z: 0,
  UTC: 0,
  GMT: 0,
  CET: 1,
  CEST: 2,
  EST: -5,
  EDT: -4,
  CST: -6,
  CDT: -5,
  MST: -7,
  MDT: -6,
  PST: -8,
  PDT: -7
}

/** From 1 January 1601, where Windows begins to count, to 1970. */
const filetimeOffsetMillis = 11_644_473_600_000

/** Epoch milliseconds; nothing when there is no such day, time or zone. */
const momentOf = (parts: Parts): number | undefined => {
  const fraction = Math.trunc(Number(`0.${parts.fraction ?? 0}`) * 1000)
  if (parts.unix !== undefined) return Number(parts.unix) * 1000 + fraction
  if (parts.millis !== undefined) return Number(parts.millis)
  if (parts.micros !== undefined) return Math.trunc(Number(parts.micros) / 1000)
  if (parts.filetime !== undefined) return Number(BigInt(parts.filetime) / 10_000n) - filetimeOffsetMillis
  const day = dayOf(parts)
  const time = timeOf(parts)
  const ahead = aheadOfUtc(parts)
  return day === undefined || time === undefined || ahead === undefined ? undefined : day + time + fraction - ahead
}

const dayOf = (parts: Parts): number | undefined => {
  const year = parts.year === undefined ? centuryOf(Number(parts.yy)) + Number(parts.yy) : Number(parts.year)
  if (parts.yearday !== undefined) return Date.UTC(year, 0, Number(parts.yearday))
  const month = parts.mon === undefined ? Number(parts.month) - 1 : months.indexOf(parts.mon.toLowerCase())
  const day = new Date(Date.UTC(year, month, Number(parts.day)))
  return day.getUTCMonth() === month && day.getUTCDate() === Number(parts.day) ? day.getTime() : undefined
}

/** As RFC 6265 reads two digits. */
const centuryOf = (year: number): number => (year < 70 ? 2000 : 1900)

const timeOf = (parts: Parts): number | undefined => {
  const written = Number(parts.hour)
  const hour = parts.half === undefined ? written : (written % 12) + (parts.half === "PM" ? 12 : 0)
  const minute = Number(parts.minute)
  const second = Number(parts.second ?? 0)
  return hour < 24 && minute < 60 && second < 60 ? ((hour * 60 + minute) * 60 + second) * 1000 : undefined
}

const aheadOfUtc = (parts: Parts): number | undefined => {
  const minuteMillis = 60_000
  if (parts.minutes !== undefined) return Number(parts.minutes) * minuteMillis
  if (parts.offset !== undefined) {
    const digits = parts.offset.replace(/\D/g, "").padEnd(4, "0")
    const ahead = (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))) * minuteMillis
    return parts.offset.startsWith("-") ? -ahead : ahead
  }
  const hours = parts.zone === undefined ? undefined : zones[parts.zone]
  return hours === undefined ? undefined : hours * 60 * minuteMillis
}
