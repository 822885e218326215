import { randomUUID } from "node:crypto"
import { Queue, Worker } from "bullmq"
import { Redis } from "ioredis"
import { answer, type Task } from "../contest.ts"

answer(async ({ tasks, seats, url }: Task) => {
  const name = randomUUID()
  const connection = new Redis(url, { maxRetriesPerRequest: null })
  const queue = new Queue(name, { connection })
  await queue.addBulk(Array.from({ length: tasks }, (_, index) => ({ name: "task", data: { index } })))
  let acknowledged = 0
  const all = Promise.withResolvers<void>()
  const worker = new Worker(name, async () => {}, {
    connection,
    concurrency: seats,
    autorun: false,
    removeOnComplete: { count: 0 }
  })
  // Told when Redis has answered, and it answers once the job's end is on the disk.
  worker.on("completed", () => {
    if (++acknowledged === tasks) all.resolve()
  })
  worker.on("error", all.reject)
  await worker.waitUntilReady()
  const from = performance.now()
  void worker.run()
  await all.promise
  const taken = performance.now() - from
  await worker.close()
  await queue.obliterate({ force: true })
  await queue.close()
  connection.disconnect()
  return taken / 1000
})
