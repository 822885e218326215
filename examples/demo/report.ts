/**
 * What came of it, told from the log: so it is the same after any number of crashes.
 */
import { Effect, Stream } from "effect"
import { Dispatcher, Rechecks } from "shiftboss"
import type { Learned, Timestamp } from "./loop.ts"
import { Rulebook } from "./rulebook.ts"
import { read } from "./rules.ts"

type Summary = Dispatcher.Summary<Learned>

interface Tally {
  readonly tries: Map<string, number>
  applies: number
  commits: number
  starts: number
  /** From the first event of each start to its last: not the time between a crash and the next start. */
  workedMillis: number
  last: number
}

const add = (tally: Tally, { event }: Dispatcher.Entry): Tally => {
  if (event._tag === "RunStarted") tally.starts++
  else tally.workedMillis += event.at - tally.last
  tally.last = event.at
  if (event._tag === "StepEnded") tally.tries.set(event.case, (tally.tries.get(event.case) ?? 0) + 1)
  if (event._tag === "ApplyEnded") {
    tally.applies++
    if (event.applied._tag === "Changed") tally.commits++
  }
  return tally
}

const tallyOf = Effect.gen(function* () {
  const dispatcher = yield* Dispatcher.Dispatcher
  const none = { applies: 0, commits: 0, starts: 0, workedMillis: 0, last: 0 }
  return yield* Stream.runFold(dispatcher.history(), (): Tally => ({ tries: new Map(), ...none }), add)
})

type Cases = ReadonlyArray<{ readonly case: string }>

/** None when there are no such cases. */
const row = (label: string, cases: Cases, tries: (id: string) => number): ReadonlyArray<string> => {
  const sum = cases.reduce((total, one) => total + tries(one.case), 0)
  if (cases.length === 0) return []
  return [`${label.padEnd(32)}${String(cases.length).padStart(6)}${String(sum).padStart(8)}`]
}

/** The table of cases, tries, applies and time, and the line that sums it up. */
export const report = Effect.fn("demo.report")(function* (summary: Summary, timestamps: ReadonlyArray<Timestamp>) {
  const tally = yield* tallyOf
  const rechecks = yield* (yield* Rechecks.Rechecks).all
  const rules = yield* (yield* Rulebook).rules
  const tries = (id: string) => tally.tries.get(id) ?? 0
  const at = (number: number) => summary.completed.filter((one) => tries(one.case) === number)
  const starts = tally.starts === 1 ? "1 start" : `${tally.starts} starts`
  return [
    "",
    `${"".padEnd(32)}${"cases".padStart(6)}${"tries".padStart(8)}`,
    ...row("right at the first try", at(1), tries),
    ...row("right at the second", at(2), tries),
    ...row("right at the third", at(3), tries),
    ...row("difficult: a person has to look", summary.difficult, tries),
    ...row("together", [...summary.completed, ...summary.difficult], tries),
    "",
    ...recheckLines(rechecks),
    ...difficultLines(summary, timestamps),
    `${tally.commits} of ${tally.applies} applies changed the rules, which are ${rules.length} now. ` +
      `It took ${(tally.workedMillis / 1000).toFixed(1)} s in ${starts}.`,
    closingLine(summary, timestamps.length, tally.applies)
  ]
})

/** How many rechecks passed, and each regression with what became of it. */
const recheckLines = (rechecks: ReadonlyArray<Rechecks.Recheck>): ReadonlyArray<string> => {
  if (rechecks.length === 0) return []
  const of = (state: Rechecks.Recheck["state"]) => rechecks.filter((recheck) => recheck.state === state)
  const runs = rechecks.reduce((sum, { tries }) => sum + tries.length, 0)
  const voids = of("void").length === 0 ? "" : `, ${of("void").length} void`
  return [
    `${rechecks.length} rechecks in ${runs} runs: ${of("passed").length} passed, ${of("regressed").length} regressed${voids}`,
    ...of("regressed").map(({ case: id, apply }) => {
      const later = rechecks.find((one) => one.case === id && one.apply > apply && one.state === "passed")
      const then = later === undefined ? "not rechecked since" : `repaired: it passed again after apply ${later.apply}`
      return `  ${id.padEnd(34)}broken by apply ${apply}; ${then}`
    }),
    ""
  ]
}

const difficultLines = (summary: Summary, timestamps: ReadonlyArray<Timestamp>): ReadonlyArray<string> =>
  summary.difficult.length === 0
    ? []
    : [
        "Difficult:",
        ...timestamps
          .filter((timestamp) => summary.difficult.some((one) => one.case === timestamp.id))
          .map((timestamp) => `  ${timestamp.text.padEnd(34)}${timestamp.from}`),
        ""
      ]

const closingLine = (summary: Summary, total: number, applies: number): string =>
  `${total} cases: ${summary.completed.length} completed, ${summary.difficult.length} difficult, ${applies} applies`

/** What is wrong with the result, when something is: every case has to have ended, and the rules to read what they learned. */
export const check = Effect.fn("demo.check")(function* (summary: Summary, timestamps: ReadonlyArray<Timestamp>) {
  const rules = yield* (yield* Rulebook).rules
  const completed = new Map(summary.completed.map((one) => [one.case, one.value]))
  const difficult = new Set(summary.difficult.map((one) => one.case))
  return timestamps.flatMap(({ id, text, utc }) => {
    if (completed.has(id)) {
      const answer = read(rules, text)
      return answer.utc === utc ? [] : [`${id}: the rules read ${text} as ${answer.utc}, but it means ${utc}`]
    }
    return difficult.has(id) ? [] : [`${id}: it is neither completed nor difficult`]
  })
})
