/**
 * A run as the rest of its process sees it: to ask, to watch, to stop.
 */
import { Deferred, Effect, PubSub } from "effect"
import type { Entry } from "../../Dispatcher.ts"
import type { Run } from "./run.ts"

/** So many events a subscriber may fall behind before it gets a gap. */
const buffered = 1024

/** From the moment `run` is called until its log is released. */
export interface Session {
  /** Set when the log is open. */
  run: Run | undefined
  readonly stopAsked: Deferred.Deferred<void>
  readonly ended: Deferred.Deferred<void>
}

export const make = (): Session => ({ run: undefined, stopAsked: Deferred.makeUnsafe(), ended: Deferred.makeUnsafe() })

/** A run's events have ended; `cursor` is that of the last. */
export interface Ended {
  readonly _tag: "Ended"
  readonly cursor: number
}

/**
 * Where a dispatcher tells what happens. Both slide: a slow subscriber loses the oldest and never slows a run. The
 * last message of a run is its end, which is so never lost.
 *
 * `publishUnsafe` does not slide but loses the newest: good enough for one pulse of many, and for nothing else.
 */
export interface Board {
  readonly entries: PubSub.PubSub<Entry | Ended>
  readonly pulses: PubSub.PubSub<"changed" | "ended">
}

export const makeBoard: Effect.Effect<Board> = Effect.all({
  entries: PubSub.sliding<Entry | Ended>(buffered),
  pulses: PubSub.sliding<"changed" | "ended">(1)
})
