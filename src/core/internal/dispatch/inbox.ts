/**
 * Work that is handed to one fiber from anywhere, also from where no effect can be run.
 */
import { Effect, Latch } from "effect"

export interface Inbox<in A> {
  /** The fiber goes on inside this call: what takes no waiting is done when it returns. */
  readonly hand: (item: A) => void
  /** Succeeds when nothing is being worked on. */
  readonly idle: Effect.Effect<void>
  /** Works until it is interrupted, but never in the middle of something. */
  readonly worker: Effect.Effect<never>
}

/** All that came while `work` was under way is its next batch. */
export const make = <A>(work: (batch: ReadonlyArray<A>) => Effect.Effect<unknown>): Inbox<A> => {
  let waiting: Array<A> = []
  /** Open when there is something to work on. */
  const asked = Latch.makeUnsafe(false)
  /** Closed while something is worked on. */
  const idle = Latch.makeUnsafe(true)

  const drain: Effect.Effect<unknown> = Effect.suspend(() => {
    const batch = waiting
    waiting = []
    return Effect.flatMap(work(batch), () => (waiting.length === 0 ? Effect.void : drain))
  })
  const worker: Effect.Effect<never> = Effect.flatMap(Effect.interruptible(asked.await), () => {
    asked.closeUnsafe()
    idle.closeUnsafe()
    return Effect.flatMap(drain, () => {
      idle.openUnsafe()
      return worker
    })
  })

  return {
    hand: (item) => {
      waiting.push(item)
      if (idle.isOpen()) asked.openUnsafe()
    },
    idle: idle.await,
    worker: Effect.uninterruptible(worker)
  }
}
