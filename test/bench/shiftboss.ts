/**
 * Dispatches cases with one step that does nothing: in memory, or in files when it is started with `files`. With `no step`
 * a case ends at once: what is journaled of it is that it ended, as with other queues.
 */
import { Effect, Layer } from "effect"
import { Case, Dispatcher, Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { answer, type Task } from "./contest.ts"
import { ids, noOp } from "./logs.ts"

const inFiles = process.argv.includes("files")
const train = process.argv.includes("no step") ? () => Effect.succeed(Case.completed()) : noOp

answer(async ({ tasks, seats, folder }: Task) => {
  const cases = ids("case", tasks)
  const from = performance.now()
  const { completed } = await Effect.runPromise(
    Effect.provide(
      Dispatcher.run({ cases: Effect.succeed(cases), train }, { seats }),
      Dispatcher.layer.pipe(Layer.provide(inFiles ? FileStorage.layer(folder) : Storage.layerMemory))
    )
  )
  const taken = performance.now() - from
  if (completed.length !== tasks) throw new Error(`${completed.length} of ${tasks} cases were completed`)
  return taken / 1000
})
