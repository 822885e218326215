/**
 * Fetches and completes one job at a time, or 50 when it is started with `batched`.
 *
 * By hand and not with `work`: that waits at least half a second before it looks again, unless it takes batches.
 */
import { randomUUID } from "node:crypto"
import { PgBoss } from "pg-boss"
import { answer, type Task } from "../contest.ts"

const batchSize = process.argv[2] === "batched" ? 50 : 1

answer(async ({ tasks, seats, url }: Task) => {
  const boss = new PgBoss({ connectionString: url, max: Math.min(seats, 32), supervise: false, schedule: false })
  boss.on("error", (error) => console.error(error.message))
  await boss.start()
  const name = randomUUID()
  await boss.createQueue(name)
  await boss.insert(
    name,
    Array.from({ length: tasks }, (_, index) => ({ data: { index } }))
  )
  let acknowledged = 0
  const seat = async () => {
    for (;;) {
      const jobs = await boss.fetch(name, { batchSize })
      if (jobs.length === 0) return
      await boss.complete(
        name,
        jobs.map(({ id }) => id)
      )
      acknowledged += jobs.length
    }
  }
  const from = performance.now()
  await Promise.all(Array.from({ length: seats }, seat))
  const taken = performance.now() - from
  await boss.deleteQueue(name)
  await boss.stop({ graceful: false })
  if (acknowledged !== tasks) throw new Error(`${acknowledged} of ${tasks} jobs were done`)
  return taken / 1000
})
