import { Effect, Layer, Schema } from "effect"
import { PersistedQueue } from "effect/persistence"
import { answer, type Task } from "../contest.ts"

const program = Effect.fnUntraced(function* ({ tasks, seats }: Task) {
  const queue = yield* PersistedQueue.make({ name: "tasks", schema: Schema.Struct({ id: Schema.String }) })
  let left = tasks
  const from = performance.now()
  yield* Effect.forEach(Array.from({ length: tasks }), (_, index) => queue.offer({ id: `task-${index}` }), {
    discard: true
  })
  // As many takes as there are tasks, shared by the fibers: one that takes from an empty queue would wait for ever.
  const work = Effect.whileLoop({
    while: () => left-- > 0,
    body: () => queue.take(() => Effect.void),
    step: () => {}
  })
  yield* Effect.forEach(Array.from({ length: seats }), () => work, { concurrency: "unbounded", discard: true })
  return (performance.now() - from) / 1000
})

const memory = PersistedQueue.layer.pipe(Layer.provide(PersistedQueue.layerStoreMemory))

answer((task: Task) => Effect.runPromise(Effect.provide(program(task), Layer.fresh(memory))))
