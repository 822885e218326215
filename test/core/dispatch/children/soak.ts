/**
 * Runs so many cases in one run, each of which completes with nothing or with a number, and prints the heap, after a
 * collection, at a few moments of it.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import { Case, Dispatcher, Improvements, Storage } from "shiftboss"

const every = Number(process.argv[2])
const valued = process.argv[3] === "number"
const collect = globalThis.gc
if (collect === undefined) throw new Error("run it with --expose-gc")

/** A store that keeps nothing, so that only what the dispatcher keeps is measured. */
const forgetful: Storage.Storage["Service"] = {
  shared: false,
  open: (name) =>
    Effect.succeed({ name, replay: Stream.empty, append: () => Effect.yieldNow, replace: () => Effect.void }),
  read: () => Stream.empty,
  list: () => Stream.empty,
  remove: () => Effect.void
}

let ended = 0
let more = every
const cases: Array<Case.Case> = []

const grow = Effect.sync(() => {
  if (ended >= 5 * every) return cases
  for (; cases.length < more;) cases.push({ id: `case-${cases.length}` })
  more += every
  collect()
  console.log(process.memoryUsage().heapUsed)
  return cases
})

await Effect.runPromise(
  Dispatcher.run(
    {
      cases: grow,
      train: (_, seat) =>
        Effect.gen(function* () {
          const answer = yield* seat.step("answer", Effect.succeed({ text: "x".repeat(500) }))
          yield* seat.park("rule", { missing: answer.text })
          yield* seat.step("grade", Effect.succeed(answer.text.length > 0))
          ended++
          const result: Case.CaseResult<number | void> = valued ? Case.completed(ended) : Case.completed()
          return result
        }),
      improve: {
        request: Schema.Struct({ missing: Schema.String }),
        apply: (batch) => Effect.succeed(Improvements.changed(batch.version ?? "000", batch.name, "x".repeat(500)))
      }
    },
    { seats: 8 }
  ).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provide(Layer.succeed(Storage.Storage, forgetful)))))
)
