/**
 * Bare Effect: a fiber for each task, and nothing kept of it.
 */
import { Effect } from "effect"
import { answer, type Task } from "../contest.ts"

answer(async ({ tasks, seats }: Task) => {
  const all = Array.from({ length: tasks }, (_, index) => index)
  const from = performance.now()
  let done = 0
  const task = Effect.sync(() => {
    done++
  })
  await Effect.runPromise(Effect.forEach(all, () => task, { concurrency: seats, discard: true }))
  if (done !== tasks) throw new Error(`${done} of ${tasks} tasks were done`)
  return (performance.now() - from) / 1000
})
