import PQueue from "p-queue"
import { answer, type Task } from "../contest.ts"

answer(async ({ tasks, seats }: Task) => {
  let done = 0
  const queue = new PQueue({ concurrency: seats })
  const from = performance.now()
  for (let index = 0; index < tasks; index++) {
    void queue.add(async () => {
      done++
    })
  }
  await queue.onIdle()
  const taken = performance.now() - from
  if (done !== tasks) throw new Error(`${done} of ${tasks} tasks were done`)
  return taken / 1000
})
