/**
 * A wall: a failure that other turns would meet too, for as long as it is known to last.
 */
import type { Failure } from "../../Failure.ts"
import type { Wait } from "../../Turn.ts"

/** The rules of waits for a wall. */
export const wallRules = { met: "shared-cooldown", first: "first-launch-goes-alone" } as const

/** The wait ends early when a wall changes. */
export const isForWall = ({ rule }: Wait): boolean => rule === wallRules.met || rule === wallRules.first

export interface WallTimes {
  /** A probe that says nothing for this long is given up; milliseconds. */
  readonly probeMillis: number
  /** Between two turns that follow the probe, at least; at most twice that. Milliseconds. */
  readonly staggerMillis: number
  /** The first launch on an account goes alone for this long or until it is answered; milliseconds. */
  readonly firstMillis: number
}

/** When a turn asks to pass. */
export interface AskMoment {
  readonly now: number
  /** A number from 0 to below 1. */
  readonly jitter: number
  /** The turn has waited out its own failure: a wall that it raised itself is over with that. */
  readonly waited: boolean
}

export interface Wall {
  /** Who met it last. */
  readonly by: string
  /** `null`: nothing was met yet; the first launch on an account stands in for it. */
  readonly failure: Failure | null
  since: number
  until: number
  probe: { readonly turnId: string; since: number } | undefined
  /** Since the probe was answered: when the last one of those that follow may go. */
  released: number | undefined
  /** When each of those that follow may go. */
  readonly turns: Map<string, number>
  /** When it was looked at last. */
  seen: number
}

export const makeWall = (by: string, failure: Failure | null, since: number, until: number): Wall => ({
  ...{ by, failure, since, until, probe: undefined, released: undefined, turns: new Map(), seen: since }
})

/** The model answered the probe. */
export const release = (wall: Wall, now: number): void => {
  wall.probe = undefined
  wall.released = now
}

/** Nobody has to wait any more. After a first launch they need not even be staggered: nothing was met. */
export const isOver = ({ released, failure }: Wall, now: number, times: WallTimes): boolean =>
  released !== undefined && (failure === null || now > released + 2 * times.staggerMillis)

/** When nobody waits for an answer to the probe any more. */
const patienceEnds = ({ failure, since, probe }: Wall, times: WallTimes): number =>
  failure === null ? since + times.firstMillis : (probe?.since ?? since) + times.probeMillis

/** Brings the wall up to date before it is asked. */
export const settle = (wall: Wall, turnId: string, { now, waited }: AskMoment, times: WallTimes): void => {
  if (now < wall.seen) shift(wall, now - wall.seen)
  wall.seen = now
  if (waited && wall.by === turnId) wall.until = Math.min(wall.until, now)
  if (wall.failure === null && now >= patienceEnds(wall, times)) release(wall, now)
}

/** A clock that stepped back does not make a wall last longer than it was meant to. */
const shift = (wall: Wall, by: number): void => {
  wall.since += by
  wall.until += by
  if (wall.probe !== undefined) wall.probe.since += by
  if (wall.released !== undefined) wall.released += by
  for (const [turnId, at] of wall.turns) wall.turns.set(turnId, at + by)
}

/** When the turn may pass, in epoch milliseconds. `undefined`: now, and as the probe unless one was answered already. */
export const passAt = (wall: Wall, turnId: string, moment: AskMoment, times: WallTimes): number | undefined => {
  const { now, jitter } = moment
  if (wall.released !== undefined) {
    const next = Math.max(now, wall.released) + times.staggerMillis * (1 + jitter)
    const turn = wall.turns.get(turnId) ?? Math.ceil(next)
    if (now >= turn) return undefined
    wall.released = Math.max(wall.released, turn)
    wall.turns.set(turnId, turn)
    return turn
  }
  if (now < wall.until) return wall.until
  const patience = patienceEnds(wall, times)
  return wall.probe === undefined || wall.probe.turnId === turnId || now >= patience ? undefined : patience
}
