/**
 * One loop of the demo from nothing to its end, killed and started again in between.
 */
import type { DispatcherEvent } from "shiftboss"
import type { Demo } from "./host.ts"
import { type Kill, live } from "./life.ts"
import type { Moments, Plan } from "./moments.ts"
import { commits, leftovers, quiet, readLogs, replay, resultOf } from "./outside.ts"
import { makeMarks } from "./rules.ts"
import type { Told } from "./told.ts"
import { makeWitness } from "./witness.ts"

export interface Findings {
  readonly kills: Array<Kill & Pick<Plan, "restartAtOnce">>
  readonly problems: Array<string>
  /** How often logs were compared with what was told of them, and entries in them at that. */
  checks: number
  entries: number
  /** The longest that processes outlived their demo, in milliseconds. */
  longestQuiet: number
}

export interface Loop {
  readonly demo: Demo
  readonly findings: Findings
  readonly moments: Moments
  /** What a loop that nobody killed came to; undefined when this is that loop. */
  readonly expected: string | undefined
  /** Whether to kill it once more. */
  readonly goOn: () => boolean
}

/** All that is held against a demo, from process to process. */
const makeChecks = (demo: Demo, findings: Findings) => {
  const witness = makeWitness()
  const marks = makeMarks()
  const problem = (what: string | undefined) => void (what !== undefined && findings.problems.push(what))
  return {
    problem,
    hear: (told: Told) => {
      witness.hear(told)
      problem(marks.hear(told))
    },
    died: witness.died,
    /** Looks at all that a process left, and answers what its log says. */
    look: async (): Promise<ReadonlyArray<DispatcherEvent.DispatcherEvent>> => {
      const gone = await quiet(demo.mark)
      if (typeof gone === "number") findings.longestQuiet = Math.max(findings.longestQuiet, gone)
      else for (const left of gone) problem(left)
      const logs = await readLogs(demo.state)
      for (const log of new Set([...witness.logs(), ...logs.keys()])) {
        const wrong = witness.compare(log, logs.get(log) ?? [])
        problem(wrong && `the log ${log}: ${wrong}`)
        findings.entries += logs.get(log)?.length ?? 0
      }
      findings.checks++
      const events = await replay(demo.state)
      for (const wrong of marks.check(events, commits(demo.state))) problem(wrong)
      return events
    }
  }
}

type Checks = ReturnType<typeof makeChecks>

const stepsIn = (events: ReadonlyArray<DispatcherEvent.DispatcherEvent>) =>
  events.filter((event) => event._tag === "StepEnded").length

/** A demo that has ended comes to what it should, and does nothing when it is started once more. */
const checkEnd = async ({ demo, expected }: Loop, checks: Checks): Promise<string> => {
  const events = await checks.look()
  const result = resultOf(demo.state, events)
  if (expected !== undefined && result !== expected) {
    checks.problem(`it came to something else:\n${result}\ninstead of:\n${expected}`)
  }
  const { end, output } = await live(demo, undefined, checks.hear)
  checks.died()
  if (end !== 0) checks.problem(`it had ended, and came to ${end} when it was started once more:\n${output}`)
  const more = stepsIn(await checks.look()) - stepsIn(events)
  if (more > 0) checks.problem(`it had ended, and ran ${more} steps when it was started once more`)
  for (const file of leftovers(demo.state)) checks.problem(`${file} was left behind`)
  return result
}

/** Runs the demo until it has ended by itself, and answers what it came to; nothing after a problem. */
export const runLoop = async (loop: Loop): Promise<string | undefined> => {
  const { demo, findings, moments, goOn } = loop
  const checks = makeChecks(demo, findings)
  while (findings.problems.length === 0) {
    const plan = goOn() ? moments.next() : undefined
    const life = await live(demo, plan, checks.hear)
    const { end, kill } = life
    checks.died()
    if (plan !== undefined) moments.learn(plan, { ...life, killed: kill !== undefined })
    if (plan !== undefined && kill !== undefined) {
      findings.kills.push({ ...kill, restartAtOnce: plan.restartAtOnce })
      if (!plan.restartAtOnce) await checks.look()
    } else if (end === 0) return checkEnd(loop, checks)
    else checks.problem(`it ended with ${end} by itself:\n${life.output}`)
  }
  return undefined
}
