import fastq from "fastq"
import { answer, type Task } from "../contest.ts"

answer(async ({ tasks, seats }: Task) => {
  let done = 0
  const queue = fastq.promise(async () => {
    done++
  }, seats)
  const from = performance.now()
  for (let index = 0; index < tasks; index++) void queue.push(index)
  await queue.drained()
  const taken = performance.now() - from
  if (done !== tasks) throw new Error(`${done} of ${tasks} tasks were done`)
  return taken / 1000
})
