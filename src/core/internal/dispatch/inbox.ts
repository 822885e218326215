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
  /** Open while the worker waits. */
  const idle = Latch.makeUnsafe(false)

  // What is waiting and what the latches say change in one go: the fiber may be pre-empted between any two effects, and
  // what was handed over then would be waited for for ever.
  const next: Effect.Effect<never> = Effect.suspend(() => {
    if (waiting.length === 0) {
      idle.openUnsafe()
      return Effect.flatMap(Effect.interruptible(asked.await), () => next)
    }
    asked.closeUnsafe()
    idle.closeUnsafe()
    const batch = waiting
    waiting = []
    return Effect.flatMap(work(batch), () => next)
  })

  return {
    hand: (item) => {
      waiting.push(item)
      if (idle.isOpen()) asked.openUnsafe()
    },
    idle: idle.await,
    worker: Effect.uninterruptible(next)
  }
}
