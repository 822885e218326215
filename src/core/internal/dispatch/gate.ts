/**
 * Keeps steps that read the shared system and applies that edit it apart, phase-fair: once an apply waits no reader
 * starts, those inside finish, and all readers that wait behind it are let in before the next apply.
 */
import { Effect, Semaphore } from "effect"

/** More readers than there can be. */
const ROOM = 2 ** 30

export interface Gate {
  readonly read: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly write: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * A turnstile in front of a room. The turnstile is first come, first served: an apply holds it while it waits for the
 * room to empty, so no reader passes it. One semaphore alone would starve the apply: each new reader finds a permit.
 */
export const make = (): Gate => {
  const turnstile = Semaphore.makeUnsafe(1)
  const room = Semaphore.makeUnsafe(ROOM)
  return {
    read: (effect) => Effect.andThen(turnstile.withPermit(Effect.void), room.withPermit(effect)),
    write: (effect) => turnstile.withPermit(room.withPermits(ROOM)(effect))
  }
}
