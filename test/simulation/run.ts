/**
 * Simulates for a while on all cores: first the seeds that have failed before, then new ones. Fails with the first seed that
 * fails, and says how to see just that again.
 *
 *     npm run simulate -- --minutes 1
 *     npm run simulate -- --replay "work 17: blow.kill@1"
 */
import { appendFileSync, readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { Effect, Exit, References } from "effect"
import { Simulation } from "shiftboss/testing"
import * as logs from "./logs.ts"
import * as work from "./work.ts"

const scenarios = {
  logs: { program: logs.logs(), marks: logs.marks, share: 3 },
  work: { program: work.work(), marks: work.marks, share: 1 }
} as const
type Name = keyof typeof scenarios
const names: ReadonlyArray<Name> = ["logs", "work"]

const settings = { promises: true, mostSteps: 300_000 }
const failedSeeds = new URL("./failed-seeds.txt", import.meta.url)

interface Failure {
  readonly name: Name
  readonly seed: number
  readonly message: string
  readonly replay: string
}

/** What came of some simulations. */
interface Sum {
  readonly simulations: Record<Name, number>
  readonly marks: Record<string, number>
  millis: number
  readonly failure: Failure | undefined
}

/** What one core does. */
interface Job {
  readonly known: ReadonlyArray<readonly [Name, number]>
  readonly first: number
  readonly stride: number
  readonly minutes: number
}

// -----------------------------------------------------------------------------
// one core
// -----------------------------------------------------------------------------

/** Runs the seed, and when it fails as often again as it takes to make that short. */
const simulate = Effect.fnUntraced(function* (name: Name, seed: number, sum: Sum) {
  const { program } = scenarios[name]
  const run = yield* Effect.provideService(
    Simulation.run(program, seed, settings),
    References.MinimumLogLevel,
    "None" as const
  )
  sum.simulations[name]++
  sum.millis += run.millis
  for (const [mark, count] of run.marks) sum.marks[mark] = (sum.marks[mark] ?? 0) + count
  if (Exit.isSuccess(run.exit)) return undefined
  const error = yield* Effect.flip(Simulation.check(program, { ...settings, seeds: [seed] }))
  return { name, seed, message: error.message, replay: error._tag === "Falsified" ? error.replay : String(seed) }
})

const runJob = async ({ known, first, stride, minutes }: Job): Promise<Sum> => {
  const sum: Sum = { simulations: { logs: 0, work: 0 }, marks: {}, millis: 0, failure: undefined }
  const attempt = (name: Name, seed: number) => Effect.runPromise(simulate(name, seed, sum))
  for (const [name, seed] of known) {
    const failure = await attempt(name, seed)
    if (failure !== undefined) return { ...sum, failure }
  }
  const end = performance.now() + minutes * 60_000
  for (let seed = first; performance.now() < end; seed += stride) {
    for (const name of names) {
      for (let turn = 0; turn < scenarios[name].share && performance.now() < end; turn++) {
        const failure = await attempt(name, seed * scenarios[name].share + turn)
        if (failure !== undefined) return { ...sum, failure }
      }
    }
  }
  return sum
}

// -----------------------------------------------------------------------------
// all cores
// -----------------------------------------------------------------------------

const knownFailures = (): ReadonlyArray<readonly [Name, number]> =>
  readFileSync(failedSeeds, "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [name, seed] = line.split(" ")
      if ((name !== "logs" && name !== "work") || !/^\d+$/.test(seed ?? "")) throw new Error(`"${line}" is no seed`)
      return [name, Number(seed)]
    })

const onWorker = (job: Job): Promise<Sum> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: job })
    worker.once("message", resolve)
    worker.once("error", reject)
  })

const added = (sums: ReadonlyArray<Sum>): Sum => {
  const total: Sum = {
    simulations: { logs: 0, work: 0 },
    marks: {},
    millis: 0,
    failure: sums.find(({ failure }) => failure !== undefined)?.failure
  }
  for (const { simulations, marks, millis } of sums) {
    for (const name of names) total.simulations[name] += simulations[name]
    for (const [mark, count] of Object.entries(marks)) total.marks[mark] = (total.marks[mark] ?? 0) + count
    total.millis += millis
  }
  return total
}

/** From so many simulations of a scenario on, each of its marks has to be among them. */
const enough = 2000

const report = ({ simulations, marks, millis, failure }: Sum, seconds: number): boolean => {
  const { fault = 0, restart = 0, ...others } = marks
  const count = simulations.logs + simulations.work
  const days = (millis / 86_400_000).toFixed(0)
  console.log(`${count} simulations (${simulations.work} of everything together), ${days} days of simulated time`)
  console.log(`${restart} restarts, ${fault} faults, in ${seconds.toFixed(0)} s`)
  for (const [mark, times] of Object.entries(others).toSorted()) console.log(`  ${mark}: ${times}`)
  const missing = names.flatMap((name) =>
    scenarios[name].marks.filter((mark) => marks[mark] === undefined).map((mark) => ({ name, mark }))
  )
  for (const { name, mark } of missing) console.log(`  never: ${mark} (${simulations[name]} simulations of ${name})`)
  if (failure !== undefined) {
    const { name, seed, message, replay } = failure
    console.error(`\n${name}: ${message}\nnpm run simulate -- --replay "${name} ${replay}"`)
    if (!knownFailures().some((known) => known[0] === name && known[1] === seed)) {
      appendFileSync(failedSeeds, `${name} ${seed}\n`)
    }
  }
  return count > 0 && failure === undefined && missing.every(({ name }) => simulations[name] < enough)
}

const replay = async (text: string): Promise<boolean> => {
  const [name = "", ...rest] = text.split(" ")
  if (name !== "logs" && name !== "work")
    throw new Error(`"${text}" names no scenario: there are ${names.join(" and ")}`)
  const options = { ...settings, replay: rest.join(" ") }
  const result = await Effect.runPromise(Effect.result(Simulation.check(scenarios[name].program, options)))
  console.log(result._tag === "Success" ? "it passes" : result.failure.message)
  return result._tag === "Success"
}

const whole = (flag: string, text: string, least: number): number => {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= least) return value
  throw new RangeError(`--${flag} has to be a whole number from ${least} on, but is ${text}`)
}

const main = async (): Promise<boolean> => {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "1" },
      cores: { type: "string", default: String(availableParallelism()) },
      seed: { type: "string", default: String(Math.floor(Date.now() / 1000)) },
      replay: { type: "string" }
    }
  })
  if (values.replay !== undefined) return replay(values.replay)
  const minutes = Number(values.minutes)
  if (!(minutes >= 0)) throw new RangeError(`--minutes has to be a number from 0 on, but is ${values.minutes}`)
  const cores = whole("cores", values.cores, 1)
  const seed = whole("seed", values.seed, 0)
  const known = knownFailures()
  console.log(`${known.length} seeds that failed before, then new ones from ${seed} on, ${cores} at a time`)
  const start = performance.now()
  const jobs = Array.from({ length: cores }, (_, core): Job => {
    const own = known.filter((_, index) => index % cores === core)
    return { known: own, first: seed + core, stride: cores, minutes }
  })
  return report(added(await Promise.all(jobs.map(onWorker))), (performance.now() - start) / 1000)
}

if (isMainThread) process.exitCode = (await main()) ? 0 : 1
else parentPort?.postMessage(await runJob(workerData as Job), [])
