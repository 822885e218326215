/** Runs so many cases in one run and prints the heap, after a collection, at a few moments of it. */
import { Effect, Layer, Stream } from "effect"
import { Case, Dispatcher, Storage } from "shiftboss"

const every = Number(process.argv[2])
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

let begun = 0
let more = every
const cases: Array<Case.Case> = []

const grow = Effect.sync(() => {
  if (begun > 5 * every) return cases
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
          begun++
          const answer = yield* seat.step("answer", Effect.succeed({ text: "x".repeat(500) }))
          yield* seat.step("grade", Effect.succeed(answer.text.length > 0))
          return Case.completed()
        })
    },
    { seats: 8 }
  ).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provide(Layer.succeed(Storage.Storage, forgetful)))))
)
