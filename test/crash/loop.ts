/**
 * One loop of the demo from nothing to its end, killed and started again in between.
 */
import { type Aim, type Demo, type Host, start } from "./host.ts"
import { makeMarks } from "./rules.ts"
import type { Moment, Moments, Plan } from "./moments.ts"
import { commits, leftovers, quiet, readLogs, replay, resultOf } from "./outside.ts"
import type { Told } from "./told.ts"
import { makeWitness } from "./witness.ts"

/** Where a kill found the demo. */
export type Where = "starting" | "recovering" | "writing" | "applying" | "in steps" | "between"

export interface Killed {
  readonly aim: Aim
  readonly where: Where
  readonly restartedAtOnce: boolean
  readonly inSuccession: boolean
}

export interface Findings {
  readonly kills: Array<Killed>
  readonly problems: Array<string>
  /** How often logs were compared with what was told of them, and entries in them at that. */
  checks: number
  entries: number
  /** The longest that processes outlived their demo, in milliseconds. */
  longestQuiet: number
}

/** A life of the demo: one process of it. */
interface Life {
  readonly host: Host
  readonly startedAt: number
  told: number
  openedAt: number | undefined
  /** Attempts that nobody has acknowledged yet. */
  readonly writing: Set<number>
  readonly applying: Set<string>
  steps: number
  /** Whether anything but the start was journaled. */
  progress: boolean
}

/** Kills of processes that lived for less than this count as in quick succession. */
const succession = 150

const whereIs = ({ openedAt, applying, steps, progress, writing }: Life): Where => {
  if (openedAt === undefined) return "starting"
  if (writing.size > 0) return "writing"
  if (applying.size > 0) return "applying"
  if (!progress && steps === 0) return "recovering"
  return steps > 0 ? "in steps" : "between"
}

const follow = (life: Life, told: Told): void => {
  life.told++
  if (told._tag === "Opened") life.openedAt ??= performance.now()
  if (told._tag === "Attempted") life.writing.add(told.id)
  if (told._tag === "Acknowledged") {
    life.writing.delete(told.id)
    // The first is that of the start.
    life.progress ||= told.id > 1
  }
  if (told._tag === "StepBegun") life.steps++
  if (told._tag === "ApplyBegun") life.applying.add(told.apply)
  if (told._tag === "ApplyMade") life.applying.delete(told.apply)
}

const killAt = (
  life: Life,
  moment: Moment,
  kill: () => void
): { readonly look: () => void; readonly cancel: () => void } => {
  let timer: NodeJS.Timeout | undefined
  if (moment._tag === "SinceStart") timer = setTimeout(kill, moment.millis)
  return {
    look: () => {
      if (moment._tag === "AtTold" && life.told >= moment.count) kill()
      if (moment._tag === "SinceOpen" && life.openedAt !== undefined) timer ??= setTimeout(kill, moment.millis)
    },
    cancel: () => clearTimeout(timer)
  }
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

/** Runs the demo until it has ended by itself, and answers what it came to; undefined after a problem. */
export const runLoop = async ({ demo, findings, moments, expected, goOn }: Loop): Promise<string | undefined> => {
  const witness = makeWitness()
  const marks = makeMarks()
  const found = findings.problems.length
  const problem = (what: string | undefined) => void (what !== undefined && findings.problems.push(what))
  const isSound = () => findings.problems.length === found

  const live = async (plan: Plan | undefined): Promise<{ readonly life: Life; readonly end: number | string }> => {
    let where: Where | undefined
    let watch: ReturnType<typeof killAt> | undefined
    const hear = (told: Told) => {
      witness.hear(told)
      problem(marks.hear(told))
      follow(life, told)
      watch?.look()
    }
    const host = start(demo, hear)
    const life: Life = {
      ...{ host, startedAt: performance.now(), told: 0, openedAt: undefined, steps: 0, progress: false },
      ...{ writing: new Set(), applying: new Set() }
    }
    const kill = () => {
      if (where !== undefined || plan === undefined) return
      where = whereIs(life)
      host.kill(plan.aim)
    }
    if (plan !== undefined) watch = killAt(life, plan.moment, kill)
    const end = await host.ended
    watch?.cancel()
    witness.died()
    if (plan !== undefined && where !== undefined && end === "SIGKILL") {
      const inSuccession = performance.now() - life.startedAt < succession
      findings.kills.push({ aim: plan.aim, where, restartedAtOnce: plan.restartAtOnce, inSuccession })
    } else if (end !== 0) problem(`it ended with ${end} by itself:\n${host.output()}`)
    return { life, end }
  }

  const check = async () => {
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

  while (isSound()) {
    const plan = goOn() ? moments.next() : undefined
    const { life, end } = await live(plan)
    const opened = life.openedAt === undefined ? undefined : life.openedAt - life.startedAt
    if (plan !== undefined) moments.learn(opened, life.progress)
    if (end !== 0 && plan?.restartAtOnce === true) continue
    const events = await check()
    if (end !== 0 || !isSound()) continue
    const result = resultOf(demo.state, events)
    if (expected !== undefined && result !== expected)
      problem(`it came to something else:\n${result}\ninstead of:\n${expected}`)
    await live(undefined)
    if (
      (await check()).filter((event) => event._tag === "StepEnded").length >
      events.filter((event) => event._tag === "StepEnded").length
    )
      problem("it had ended, and ran a step when it was started once more")
    for (const file of leftovers(demo.state)) problem(`${file} was left behind`)
    return isSound() ? result : undefined
  }
  return undefined
}
