import { Effect, Semaphore } from "effect"

/** One at a time for each key; keys that nobody uses cost nothing. */
export const make = () => {
  const locks = new Map<string, { readonly semaphore: Semaphore.Semaphore; users: number }>()
  return (key: string) =>
    <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const lock = locks.get(key) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
          locks.set(key, lock)
          lock.users++
          return lock
        }),
        ({ semaphore }) => Semaphore.withPermits(semaphore, 1)(effect),
        (lock) => Effect.sync(() => --lock.users === 0 && locks.delete(key))
      )
}
