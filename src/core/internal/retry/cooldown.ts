/**
 * What turns share of the failures they meet: a limit of an account, a model without capacity, a network that is down.
 *
 * One turn that meets such a failure raises a wall; the others wait for its end. Then one of them goes first as a probe,
 * and the rest follow one after the other once it has been answered.
 */
import { Deferred, Effect } from "effect"
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
  /** Succeeds when any wall has changed since the turn last asked. */
  readonly changed: (turnId: string) => Effect.Effect<void>
}

export const makeCooldown = (times: WallTimes): Cooldown => {
  const walls = new Map<string, Wall>()
  const known = new Set<string>()
  const changes = makeChanges()

  const update = (concerns: (wall: Wall) => boolean, change: (wall: Wall) => void) => {
    const concerned = [...walls.values()].filter(concerns)
    concerned.forEach(change)
    if (concerned.length > 0) changes.publish()
  }

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
        changes.toldToWait(turnId)
        return { _tag: "Wait", rule: last.failure === null ? wallRules.first : wallRules.met, ...last }
      }
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
      changes.publish()
    },
    answered: (turnId, now) =>
      update(
        // An agent that gets through by its own retries has tried the wall just as a probe does.
        (wall) => wall.released === undefined && (wall.probe?.turnId === turnId || wall.by === turnId),
        (wall) => release(wall, now)
      ),
    left: (turnId) => {
      changes.forget(turnId)
      update(
        (wall) => wall.probe?.turnId === turnId,
        (wall) => void (wall.probe = undefined)
      )
    },
    changed: changes.sinceTold
  }
}

/** Changes of walls, as seen by each turn since it was told to wait: one between that answer and the wait is not missed. */
const makeChanges = () => {
  const told = new Map<string, Deferred.Deferred<void>>()
  let next = Deferred.makeUnsafe<void>()
  return {
    publish: () => {
      Deferred.doneUnsafe(next, Effect.void)
      next = Deferred.makeUnsafe()
    },
    toldToWait: (turnId: string) => void told.set(turnId, next),
    forget: (turnId: string) => void told.delete(turnId),
    sinceTold: (turnId: string) => Effect.suspend(() => Deferred.await(told.get(turnId) ?? next))
  }
}

const keys = ({ account, model }: Place) => ({
  machine: "machine",
  account: `account ${JSON.stringify(account)}`,
  model: `model ${JSON.stringify([account, model])}`
})
