/**
 * One job at a time, or with a local queue and completions in batches when it is started with `batched`, as its page on
 * performance advises for many short jobs.
 */
import { EventEmitter } from "node:events"
import { Logger, makeWorkerUtils, run, type WorkerEvents } from "graphile-worker"
import { answer, type Task } from "../contest.ts"

const batching =
  process.argv[2] === "batched" ? { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {}
const logger = new Logger(() => () => {})

answer(async ({ tasks, seats, url }: Task) => {
  const utils = await makeWorkerUtils({ connectionString: url, logger })
  await utils.migrate()
  await utils.addJobs(Array.from({ length: tasks }, (_, index) => ({ identifier: "task", payload: { index } })))
  let acknowledged = 0
  const all = Promise.withResolvers<void>()
  const events: WorkerEvents = new EventEmitter()
  // Emitted when the job's row is gone.
  events.on("job:complete", () => {
    if (++acknowledged === tasks) all.resolve()
  })
  const from = performance.now()
  const runner = await run({
    events,
    taskList: { task: async () => {} },
    noHandleSignals: true,
    preset: {
      worker: {
        connectionString: url,
        concurrentJobs: seats,
        maxPoolSize: Math.min(seats, 32) + 2,
        logger,
        ...batching
      }
    }
  })
  await all.promise
  const taken = performance.now() - from
  await runner.stop()
  await utils.release()
  return taken / 1000
})
