/**
 * One process of the demo, from its start to its end.
 */
import { type Aim, type Demo, type Host, start } from "./host.ts"
import type { Moment, Plan } from "./moments.ts"
import type { Told } from "./told.ts"

/** What a kill found the demo at. */
export type Where = "starting" | "recovering" | "writing" | "applying" | "in steps" | "between steps"

/** A kill that ended the process. */
export interface Kill {
  readonly aim: Aim
  readonly where: Where
  /** How long it had lived, in milliseconds. */
  readonly age: number
}

/** What is known of the process from what it has told. */
interface Course {
  told: number
  openedAt: number | undefined
  /** Attempts that nobody has acknowledged yet. */
  readonly writing: Set<number>
  readonly applying: Set<string>
  steps: number
  /** Whether anything but the start was journaled. */
  progress: boolean
}

export interface Life {
  /** The exit code, or the signal that ended it. */
  readonly end: number | NodeJS.Signals
  /** Unless it ended by itself. */
  readonly kill: Kill | undefined
  /** After how many milliseconds its log was open. */
  readonly openedAfter: number | undefined
  readonly progress: boolean
  readonly output: string
}

const whereIn = ({ openedAt, applying, steps, progress, writing }: Course): Where => {
  if (openedAt === undefined) return "starting"
  if (writing.size > 0) return "writing"
  if (applying.size > 0) return "applying"
  if (steps > 0) return "in steps"
  return progress ? "between steps" : "recovering"
}

const follow = (course: Course, told: Told): void => {
  course.told++
  if (told._tag === "Opened") course.openedAt ??= performance.now()
  if (told._tag === "Attempted") course.writing.add(told.id)
  if (told._tag === "Acknowledged") {
    course.writing.delete(told.id)
    // The first is that of the start.
    course.progress ||= told.id > 1
  }
  if (told._tag === "StepBegun") course.steps++
  if (told._tag === "StepDone") course.steps--
  if (told._tag === "ApplyBegun") course.applying.add(told.apply)
  if (told._tag === "ApplyMade") course.applying.delete(told.apply)
}

/** Calls back when the moment has come. `look` is called with all that is told. */
const awaiting = (moment: Moment, course: Course, kill: () => void) => {
  let timer: NodeJS.Timeout | undefined
  const killIn = (millis: number) => {
    clearTimeout(timer)
    timer = setTimeout(kill, millis)
  }
  if (moment._tag === "SinceStart") killIn(moment.millis)
  return {
    look: ({ _tag }: Told) => {
      if (moment._tag === "AtTold" && course.told >= moment.count) kill()
      if (moment._tag === "SinceOpen" && _tag === "Opened") killIn(moment.millis)
      if (moment._tag === "SinceApply" && _tag === "Opened") killIn(moment.atLatest)
      if (moment._tag === "SinceApply" && _tag === moment.told) killIn(moment.millis)
    },
    cancel: () => clearTimeout(timer)
  }
}

const killing = (host: Host, course: Course, { aim, moment }: Plan) => {
  const startedAt = performance.now()
  let kill: Kill | undefined
  const watch = awaiting(moment, course, () => {
    if (kill !== undefined) return
    kill = { aim, where: whereIn(course), age: performance.now() - startedAt }
    host.kill(aim)
  })
  return { ...watch, kill: () => kill }
}

/** Runs a process of the demo until it ends: by itself without a plan, and by the plan if it still lives then. */
export const live = async (demo: Demo, plan: Plan | undefined, hear: (told: Told) => void): Promise<Life> => {
  const course: Course = {
    ...{ told: 0, openedAt: undefined, steps: 0, progress: false },
    ...{ writing: new Set<number>(), applying: new Set<string>() }
  }
  const startedAt = performance.now()
  const host = start(demo, (told) => {
    hear(told)
    follow(course, told)
    plot?.look(told)
  })
  const plot = plan && killing(host, course, plan)
  const end = await host.ended
  plot?.cancel()
  return {
    end,
    kill: end === "SIGKILL" ? plot?.kill() : undefined,
    openedAfter: course.openedAt === undefined ? undefined : course.openedAt - startedAt,
    progress: course.progress,
    output: host.output()
  }
}
