/**
 * What turns share of the failures they meet: a limit of an account, a model without capacity, a network that is down.
 *
 * One turn that meets such a failure raises a wall; the others wait for its end. Then one of them goes first as a probe,
 * and the rest follow one after the other once it has been answered.
 */
import type { Failure } from "../../Failure.ts"
import {
  type AskMoment,
  isOver,
  makeWall,
  passAt,
  release,
  settle,
  type Wall,
  wallRules,
  type WallTimes
} from "./wall.ts"
import { makeWaiters } from "./waiters.ts"

/** Where an attempt is launched. */
export interface Place {
  readonly account: string
  readonly model: string | null
}

export type Answer =
  | { readonly _tag: "Go" }
  | { readonly _tag: "Wait"; readonly rule: string; readonly until: number; readonly failure: Failure | null }

export interface Cooldown {
  /** May the turn launch there now? A `Go` may make it the probe. */
  readonly ask: (turnId: string, place: Place, moment: AskMoment) => Answer
  /** The turn met a failure there: others of its scope would meet it too until then. */
  readonly raise: (turnId: string, place: Place, failure: Failure, now: number, until: number) => void
  /** The model answered this turn. */
  readonly answered: (turnId: string, now: number) => void
  /** The turn is not under way any more. */
  readonly left: (turnId: string) => void
  /** Has a wall changed since the turn was told to wait? */
  readonly changed: (turnId: string) => boolean
}

/** `wake` is told of each turn that waits for a wall when one has changed. */
export const makeCooldown = (times: WallTimes, wake: (turnId: string) => void): Cooldown => {
  const walls = new Map<string, Wall>()
  const known = new Set<string>()
  const waiters = makeWaiters(wake)

  const expectFirst = (turnId: string, place: Place, now: number) => {
    const key = keys(place).account
    if (times.firstMillis <= 0 || known.has(key)) return
    known.add(key)
    if (!walls.has(key)) walls.set(key, makeWall(turnId, null, now, now))
  }

  const standing = (turnId: string, place: Place, moment: AskMoment): ReadonlyArray<Wall> =>
    Object.values(keys(place)).flatMap((key) => {
      const wall = walls.get(key)
      if (wall === undefined) return []
      settle(wall, turnId, moment, times)
      if (!isOver(wall, moment.now, times)) return [wall]
      walls.delete(key)
      return []
    })

  return {
    ask: (turnId, place, moment) => {
      expectFirst(turnId, place, moment.now)
      const met = standing(turnId, place, moment)
      const waits = met.flatMap((wall) => {
        const until = passAt(wall, turnId, moment, times)
        return until === undefined ? [] : [{ until, failure: wall.failure }]
      })
      const last = waits.toSorted((one, other) => other.until - one.until)[0]
      if (last !== undefined) {
        waiters.add(turnId, Object.values(keys(place)))
        return { _tag: "Wait", rule: last.failure === null ? wallRules.first : wallRules.met, ...last }
      }
      waiters.remove(turnId)
      for (const wall of met) {
        wall.turns.delete(turnId)
        if (wall.released === undefined) wall.probe = { turnId, since: moment.now }
      }
      return { _tag: "Go" }
    },
    raise: (turnId, place, failure, now, until) => {
      const key = { ...keys(place), session: undefined, request: undefined }[failure.scope]
      if (key === undefined) return
      known.add(keys(place).account)
      walls.set(key, makeWall(turnId, failure, now, Math.max(until, walls.get(key)?.until ?? 0)))
      waiters.wakeAll()
    },
    answered: (turnId, now) => {
      // An agent that gets through by its own retries has tried the wall just as a probe does.
      const tried = [...walls.values()].filter(
        (wall) => wall.released === undefined && (wall.probe?.turnId === turnId || wall.by === turnId)
      )
      for (const wall of tried) release(wall, now)
      if (tried.length > 0) waiters.wakeAll()
    },
    left: (turnId) => {
      // One that was woken to be the probe, and leaves instead of asking, passes it on.
      const passed = waiters.remove(turnId)
      for (const [key, wall] of walls) {
        const probed = wall.probe?.turnId === turnId
        if (probed) wall.probe = undefined
        if (probed || (wall.probe === undefined && passed.includes(key))) waiters.wakeNext(key)
      }
    },
    changed: waiters.isWoken
  }
}

const keys = ({ account, model }: Place) => ({
  machine: "machine",
  account: `account ${JSON.stringify(account)}`,
  model: `model ${JSON.stringify([account, model])}`
})
