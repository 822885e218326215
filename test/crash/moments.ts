/**
 * When the demo is killed next: drawn from a seed, and further off when the last life came to nothing, so that it gets on.
 */
import type { Aim } from "./host.ts"
import type { Random } from "./random.ts"

export type Moment =
  /** So many milliseconds after the process was started. */
  | { readonly _tag: "SinceStart"; readonly millis: number }
  /** So many milliseconds after its log was open. */
  | { readonly _tag: "SinceOpen"; readonly millis: number }
  /** As soon as it has told so many things: in the middle of what it told last. */
  | { readonly _tag: "AtTold"; readonly count: number }
  /**
   * So many milliseconds after an apply was begun or made, which is seldom and soon over. When there is none, `atLatest`
   * after the log was open.
   */
  | {
      readonly _tag: "SinceApply"
      readonly told: "ApplyBegun" | "ApplyMade"
      readonly millis: number
      readonly atLatest: number
    }

export interface Plan {
  readonly moment: Moment
  readonly aim: Aim
  /** Whether the next one is started at once, while the children of this one may still live. */
  readonly restartAtOnce: boolean
}

/** What came of a plan. */
export interface Lived {
  /** Whether the kill came before the end. */
  readonly killed: boolean
  /** How long it took to open the log, in milliseconds. */
  readonly openedAfter: number | undefined
  /** Whether it got anything done. */
  readonly progress: boolean
}

export interface Moments {
  readonly next: () => Plan
  readonly learn: (plan: Plan, lived: Lived) => void
}

const shortest = 60
const longest = 20_000
/** Processes are started in at most this long at first, then in what was seen. */
const firstStart = 600

/** An apply of the demo takes up to this long, an append behind it up to that, on a machine that has nothing else to do. */
const longestApply = 100
const longestAppend = 3

export const makeMoments = (random: Random): Moments => {
  let patience = 300
  let startMillis = firstStart
  const draw = (): Moment => {
    const kind = random.number(1)
    // Two in quick succession: this one has hardly begun.
    if (kind < 0.1) return { _tag: "SinceStart", millis: random.number(60) }
    if (kind < 0.3) return { _tag: "SinceStart", millis: random.number(startMillis * 1.2) }
    // The first things told are those of the recovery.
    if (kind < 0.4) return { _tag: "AtTold", count: 1 + Math.floor(random.number(6)) }
    if (kind < 0.55) return { _tag: "AtTold", count: 1 + Math.floor(random.number(patience / 10)) }
    if (kind < 0.8) {
      const told = random.pick(["ApplyBegun", "ApplyMade"] as const)
      const millis = random.number(told === "ApplyBegun" ? longestApply : longestAppend)
      return { _tag: "SinceApply", told, millis, atLatest: 2 * patience }
    }
    return { _tag: "SinceOpen", millis: random.number(patience) }
  }
  return {
    next: () => ({
      moment: draw(),
      aim: random.pick(["host", "group", "everything"]),
      restartAtOnce: random.number(1) < 0.4
    }),
    learn: ({ moment }, { killed, openedAfter, progress }) => {
      if (openedAfter !== undefined) startMillis += (openedAfter - startMillis) / 8
      // That a kill at the start left no time for anything says nothing of how much time it takes.
      const factor = !killed ? 0.5 : moment._tag !== "SinceOpen" ? 1 : progress ? 0.85 : 1.3
      patience = Math.min(longest, Math.max(shortest, patience * factor))
    }
  }
}
