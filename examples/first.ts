import { Console, Effect, Layer } from "effect"
import { Case, Dispatcher } from "shiftboss"
import { FileStorage, NodeMain } from "shiftboss/node"

const cases = Array.from({ length: 10 }, (_, index) => ({ id: `case-${index + 1}`, question: `${index + 1} squared` }))

// Stands in for an agent: it says what it is at, takes half a second, and answers.
const ask = (question: string) =>
  Effect.gen(function* () {
    yield* Console.log(`asked for ${question}`)
    yield* Effect.sleep("500 millis")
    return parseInt(question) ** 2
  })

const program = Dispatcher.run({
  cases: Effect.succeed(cases),
  train: (one, seat) =>
    Effect.gen(function* () {
      const answer = yield* seat.step("ask", ask(one.question))
      return Case.completed(answer)
    })
})

program.pipe(
  Effect.tap((summary) => Console.table(summary.completed)),
  Effect.provide(Dispatcher.layer.pipe(Layer.provide(FileStorage.layer("./state")))),
  NodeMain.runMain
)
