/**
 * Walls that several turns would run into: a limit of an account, a model without capacity, a network that is down.
 *
 * One turn that meets it raises a wall; the others wait for its end. Then one of them goes first as a probe, and the
 * rest follow one after the other once it has been answered.
 */
import { Deferred, Effect } from "effect"
import type { Failure } from "../../Failure.ts"

/** What a launch may run into, from the failure's scope. */
export interface Place {
  readonly account: string
  readonly model: string | null
}

interface Wall {
  /** Who met it last. */
  readonly by: string
  since: number
  until: number
  failure: Failure | null
  probe: { readonly turnId: string; readonly since: number } | undefined
  /** Raised before the first launch on an account, of which nothing is known yet. */
  readonly first: boolean
  /** Since the probe was answered: when the last one of those that follow may go. */
  released: number | undefined
  readonly turns: Map<string, number>
}

export type Answer =
  | { readonly _tag: "Go" }
  | { readonly _tag: "Wait"; readonly rule: string; readonly until: number; readonly failure: Failure | null }

export interface CooldownOptions {
  /** A probe that says nothing for this long is given up; milliseconds. */
  readonly probeMillis: number
  /** Between two turns that follow the probe, at least; at most twice that. Milliseconds. */
  readonly staggerMillis: number
  /** The first launch on an account that is named goes alone for this long or until it is answered; milliseconds. */
  readonly firstMillis: number
}

export interface AskMoment {
  readonly now: number
  /** A number from 0 to below 1. */
  readonly jitter: number
  /** The turn has waited out its own failure: a wall that it raised itself is over with that. */
  readonly waited: boolean
}

export interface Cooldown {
  /** May the turn launch there now? A `Go` may make it the probe. `jitter` is a number from 0 to below 1. */
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

const keysOf = ({ account, model }: Place): ReadonlyArray<string> => [
  "machine",
  `account ${account}`,
  `model ${account} ${model ?? ""}`
]

const keyOf = (failure: Failure, place: Place): string | undefined => {
  const [machine, account, model] = keysOf(place)
  return { machine, account, model, session: undefined, request: undefined }[failure.scope]
}

const wall = (by: string, failure: Failure | null, since: number, until: number): Wall => ({
  ...{ by, failure, since, until, probe: undefined, first: false, released: undefined, turns: new Map() }
})

/** `named` accounts are those the host spoke of: only there it is known that turns share one. */
export const makeCooldown = (options: CooldownOptions, named: (account: string) => boolean): Cooldown => {
  const walls = new Map<string, Wall>()
  const known = new Set<string>()
  let change = Deferred.makeUnsafe<void>()
  // Noted when a turn is told to wait: a change between that answer and the wait itself must not be missed.
  const told = new Map<string, Deferred.Deferred<void>>()

  const changed = () => {
    Deferred.doneUnsafe(change, Effect.void)
    change = Deferred.makeUnsafe()
  }

  const patience = (wall: Wall) => (wall.first ? options.firstMillis : options.probeMillis)

  const open = (key: string, wall: Wall, now: number) => {
    if (wall.first) walls.delete(key)
    else wall.released = now
    wall.probe = undefined
    changed()
  }

  /** A clock that stepped back does not make a wall last longer than it was meant to. */
  const shift = (wall: Wall, now: number) => {
    wall.until = now + (wall.until - wall.since)
    wall.since = now
  }

  /** When the turn may pass this wall, milliseconds; `undefined`: now, as its probe unless it is released. */
  const due = (key: string, wall: Wall, turnId: string, now: number, jitter: number): number | undefined => {
    const silent = wall.probe !== undefined && now - wall.probe.since >= patience(wall)
    if (silent && wall.first) open(key, wall, now)
    if (!walls.has(key)) return undefined
    if (wall.released !== undefined) {
      if (now > wall.released + 2 * options.staggerMillis) walls.delete(key)
      const turn =
        wall.turns.get(turnId) ?? Math.ceil(Math.max(now, wall.released) + options.staggerMillis * (1 + jitter))
      if (now >= turn || !walls.has(key)) return undefined
      wall.released = Math.max(wall.released, turn)
      wall.turns.set(turnId, turn)
      return turn
    }
    if (now < wall.since) shift(wall, now)
    if (now < wall.until) return wall.until
    const free = wall.probe === undefined || wall.probe.turnId === turnId || silent
    return free ? undefined : (wall.probe?.since ?? now) + patience(wall)
  }

  const ask: Cooldown["ask"] = (turnId, place, { now, jitter, waited }) => {
    const account = `account ${place.account}`
    if (options.firstMillis > 0 && named(place.account) && !known.has(account)) {
      known.add(account)
      if (!walls.has(account)) walls.set(account, { ...wall(turnId, null, now, now), first: true })
    }
    const met = keysOf(place).flatMap((key) => {
      const wall = walls.get(key)
      if (waited && wall?.by === turnId) wall.until = Math.min(wall.until, now)
      return wall === undefined ? [] : [{ key, wall, until: due(key, wall, turnId, now, jitter) }]
    })
    const last = met.reduce<(typeof met)[number] | undefined>(
      (last, next) => ((next.until ?? 0) > (last?.until ?? 0) ? next : last),
      undefined
    )
    if (last?.until !== undefined) {
      told.set(turnId, change)
      const rule = last.wall.first ? "first-launch-goes-alone" : "shared-cooldown"
      return { _tag: "Wait", rule, until: last.until, failure: last.wall.failure }
    }
    for (const { wall } of met) {
      wall.turns.delete(turnId)
      if (wall.released === undefined) wall.probe = { turnId, since: now }
    }
    return { _tag: "Go" }
  }

  return {
    ask,
    raise: (turnId, place, failure, now, until) => {
      const key = keyOf(failure, place)
      if (key === undefined) return
      const before = walls.get(key)
      known.add(`account ${place.account}`)
      walls.set(key, wall(turnId, failure, now, Math.max(until, before?.until ?? 0)))
      changed()
    },
    answered: (turnId, now) => {
      for (const [key, wall] of walls) if (wall.probe?.turnId === turnId) open(key, wall, now)
    },
    left: (turnId) => {
      told.delete(turnId)
      for (const wall of walls.values()) {
        if (wall.probe?.turnId !== turnId) continue
        wall.probe = undefined
        changed()
      }
    },
    changed: (turnId) => Effect.suspend(() => Deferred.await(told.get(turnId) ?? change))
  }
}
