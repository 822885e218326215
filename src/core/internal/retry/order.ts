/**
 * One effect after the other for each key.
 */
import { Effect, Semaphore } from "effect"

/** Runs effects of one key in the order they were asked for, those of different keys side by side. */
export const makeOrder = (): (<A, E>(key: string, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) => {
  const keys = new Map<string, { readonly one: Semaphore.Semaphore; users: number }>()
  return (key, effect) =>
    Effect.suspend(() => {
      const order = keys.get(key) ?? { one: Semaphore.makeUnsafe(1), users: 0 }
      keys.set(key, order)
      order.users += 1
      const leave = Effect.sync(() => {
        order.users -= 1
        if (order.users === 0) keys.delete(key)
      })
      return Effect.ensuring(order.one.withPermit(effect), leave)
    })
}
