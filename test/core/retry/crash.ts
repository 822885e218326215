/**
 * A host that dies at an append: the entries are in the log or not, and nothing of it is ever heard again.
 */
import { Deferred, Effect, Layer, Stream } from "effect"
import { Storage } from "shiftboss"

export interface Crash {
  /** The append that kills the host, counted from 1. */
  readonly at: number
  /** Whether its entries had reached the log. */
  readonly written: boolean
}

/** A storage over `entries`, which outlive it. Its host dies as told; the lock dies with it. */
export const crashing = (
  entries: Array<Storage.Json>,
  crash: Crash | undefined
): {
  readonly layer: Layer.Layer<Storage.Storage>
  readonly crashed: Effect.Effect<void>
  readonly appends: () => number
} => {
  const dead = Deferred.makeUnsafe<void>()
  let appends = 0
  let alive = true
  const append = (added: ReadonlyArray<Storage.Json>) =>
    Effect.suspend(() => {
      if (!alive) return Effect.never
      appends += 1
      const dies = crash?.at === appends
      if (!dies || crash?.written === true) entries.push(...added)
      if (!dies) return Effect.void
      alive = false
      return Effect.andThen(Deferred.succeed(dead, undefined), Effect.never)
    })
  const log: Storage.Log<Storage.Json> = {
    name: "turns",
    replay: Stream.suspend(() => Stream.fromIterable([...entries])),
    append,
    replace: (kept) => Effect.sync(() => void entries.splice(0, entries.length, ...kept))
  }
  const unused = () => Effect.die(new Error("the policy has no use for this"))
  const layer = Layer.succeed(
    Storage.Storage,
    Storage.Storage.of({
      shared: false,
      open: () => Effect.succeed(log),
      read: () => log.replay,
      list: () => Stream.fromEffect(unused()),
      remove: unused
    })
  )
  return { layer, crashed: Deferred.await(dead), appends: () => appends }
}
