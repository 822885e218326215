// A run of steps that take a while, as a process of its own: `dispatcher.ts <folder>`. Prints each step, then how it ended.
import { Effect, Layer } from "effect"
import { Case, Dispatcher } from "shiftboss"
import { FileStorage } from "shiftboss/node"

const [folder = ""] = process.argv.slice(2)
const say = (line: string) => Effect.sync(() => void process.stdout.write(`${line}\n`))

const summary = await Effect.runPromise(
  Dispatcher.run(
    {
      cases: Effect.succeed(Array.from({ length: 1_000 }, (_, index) => ({ id: `${index}` }))),
      train: (c, seat) =>
        Effect.as(seat.step("s", Effect.andThen(say(`step ${c.id}`), Effect.sleep("50 millis"))), Case.completed())
    },
    { seats: 1 }
  ).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provide(FileStorage.layer(folder)))))
)
console.log(`${summary.end._tag} ${summary.completed.length}`)
