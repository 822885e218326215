/**
 * Kills the demo with SIGKILL at random moments, starts it again, and checks after each crash and at each end that nothing
 * acknowledged is lost, that no step that ended and no apply is repeated, and that no process is left behind.
 *
 *     npm run crash                                  200 kills
 *     npm run crash -- --kills N --minutes M         until N kills or M minutes, whichever comes first
 *     npm run crash -- --at-least N                  fails when there were fewer kills (default: --kills, or 1 with --minutes)
 *     npm run crash -- --cases N --seats N           of the demo (default: 32 cases, 4 seats)
 *     npm run crash -- --seed N                      draws the same moments again; what they meet depends on the machine
 *
 * Linux only: it finds processes in /proc.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { type Findings, type Loop, runLoop } from "./loop.ts"
import { makeMoments } from "./moments.ts"
import { makeRandom } from "./random.ts"

const { values: flags } = parseArgs({
  options: {
    kills: { type: "string" },
    minutes: { type: "string" },
    "at-least": { type: "string" },
    seed: { type: "string" },
    cases: { type: "string", default: "32" },
    seats: { type: "string", default: "4" }
  }
})

const numberOf = (flag: string, text: string): number => {
  const number = Number(text)
  if (Number.isFinite(number) && number > 0) return number
  throw new RangeError(`--${flag} has to be a number above zero, but is ${text}`)
}

const kills = numberOf("kills", flags.kills ?? (flags.minutes === undefined ? "200" : "1000000000"))
const minutes = flags.minutes === undefined ? Infinity : numberOf("minutes", flags.minutes)
const atLeast = numberOf("at-least", flags["at-least"] ?? (flags.minutes === undefined ? String(kills) : "1"))
const seed = Math.floor(numberOf("seed", flags.seed ?? String(1 + (Date.now() % 2 ** 31))))
const args = ["--cases", flags.cases, "--seats", flags.seats, "--pace", "0"]

const findings: Findings = { kills: [], problems: [], checks: 0, entries: 0, longestQuiet: 0 }
const moments = makeMoments(makeRandom(seed))
const folder = mkdtempSync(join(tmpdir(), "shiftboss-crash-"))
const demoIn = (name: string) => ({
  ...{ state: join(folder, name), args, cache: join(folder, "cache") },
  mark: `${process.pid}.${Date.now()}.${name}`
})

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130))

/** A log that cannot be read is a problem as any other. */
const run = (loop: Pick<Loop, "demo" | "expected" | "goOn">) =>
  runLoop({ ...loop, findings, moments }).catch((error: unknown) => {
    findings.problems.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
    return undefined
  })

console.log(`seed ${seed}`)
const undisturbed = demoIn("undisturbed")
const expected = await run({ demo: undisturbed, expected: undefined, goOn: () => false })

const begun = performance.now()
const seconds = () => (performance.now() - begun) / 1000
const isOver = () => findings.kills.length >= kills || seconds() >= minutes * 60
let loops = 0
while (findings.problems.length === 0 && !isOver()) {
  await run({ demo: demoIn(`loop-${++loops}`), expected, goOn: () => !isOver() })
}

const count = (label: string, choose: (kill: Findings["kills"][number]) => string) => {
  const counts = new Map<string, number>()
  for (const kill of findings.kills) counts.set(choose(kill), (counts.get(choose(kill)) ?? 0) + 1)
  const parts = [...counts].toSorted(([, one], [, other]) => other - one).map(([name, number]) => `${number} ${name}`)
  console.log(`  ${label}: ${parts.join(", ")}`)
}

/** Kills of processes that had lived for less, in milliseconds, are in quick succession. */
const succession = 150

const killed = findings.kills.length
const ends = findings.problems.length > 0 ? "" : ", each brought to its end"
console.log(`${killed} kills in ${seconds().toFixed(0)} s, ${loops} loops of the demo${ends}`)
count("aimed at", (kill) => kill.aim)
count("found it", (kill) => kill.where)
count("after it", (kill) => (kill.restartAtOnce ? "started again at once" : "looked at first"))
count("it had lived", (kill) => (kill.age < succession ? `less than ${succession} ms` : "longer"))
console.log(
  `  ${findings.checks} checks of ${findings.entries} entries; the last process was gone ${findings.longestQuiet.toFixed(0)} ms after its demo`
)

if (killed < atLeast) findings.problems.push(`${killed} kills are fewer than ${atLeast}: that shows too little`)
for (const problem of findings.problems) console.error(problem)
if (findings.problems.length > 0) {
  console.error(`failed with seed ${seed}; what it left is in ${folder}`)
  process.exitCode = 1
} else rmSync(folder, { recursive: true })
