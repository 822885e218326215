/**
 * An append that fails and a process that ends in the middle of one: the program tries again, or is started again, and
 * each order is journaled once.
 *
 *     node examples/faulty-storage.ts
 */
import { Console, Effect, Stream } from "effect"
import { Storage } from "shiftboss"
import { FaultyStorage } from "shiftboss/testing"

/** Journals five orders, one by one, from where the log ends. */
const orders = Effect.scoped(
  Effect.gen(function* () {
    const storage = yield* Storage.Storage
    const log = yield* storage.open("orders")
    const known = yield* Stream.runCollect(log.replay)
    for (let order = known.length + 1; order <= 5; order++) {
      const append = log.append([{ order }])
      yield* Effect.retry(
        Effect.tapError(append, (error) => Console.log(`  order ${order}: ${error.message}`)),
        { times: 3 }
      )
    }
  })
)

const kept = ({ storage }: FaultyStorage.FaultyStorage) =>
  Effect.map(Stream.runCollect(storage.read("orders")), (entries) => JSON.stringify(entries))

const program = Effect.gen(function* () {
  yield* Console.log("the second append fails:")
  const failing = FaultyStorage.make([{ on: "append", at: 2, wrong: "fail" }])
  yield* failing.run(orders)
  yield* Console.log(`  kept: ${yield* kept(failing)}`)

  yield* Console.log("the process ends in the middle of the fourth append:")
  const cut = FaultyStorage.make([{ on: "append", at: 4, wrong: "tear" }])
  const exit = yield* cut.run(orders)
  const next = cut.restart()
  yield* Console.log(`  it ${exit === undefined ? "crashed" : "ended"}, kept: ${yield* kept(next)}`)
  yield* next.run(orders)
  yield* Console.log(`  after the next start: ${yield* kept(next)}`)
})

await Effect.runPromise(program)
