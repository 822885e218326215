/**
 * Dispatch beside other queues, in memory and durable. After a build:
 *
 *     npm ci --prefix test/bench/peers && node test/bench/peers.bench.ts [rounds]
 */
import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isNumber, isString, Respondent, type Task } from "./contest.ts"
import { count, figure, inTurn, median, ratios, spread, table, times } from "./measure.ts"

const rounds = Number(process.argv[2] ?? 5)
const folder = mkdtempSync(join(tmpdir(), "shiftboss-bench-"))
// PostgreSQL, which does not run as root, has to find its part of it.
chmodSync(folder, 0o711)

const running: Array<Respondent> = []
const start = (program: string, ...arguments_: ReadonlyArray<string>): Respondent => {
  const respondent = new Respondent(program, ...arguments_)
  running.push(respondent)
  return respondent
}

let folders = 0
const emptyFolder = (): string => {
  const path = join(folder, String(++folders))
  mkdirSync(path, { mode: 0o711 })
  return path
}

interface Contestant {
  readonly name: string
  readonly respondent: Respondent
  readonly tasks: number
  readonly url?: string
}

const measured = async ({ respondent, tasks, url = "" }: Contestant, seats: number): Promise<number> => {
  const task: Task = { tasks, seats, folder: emptyFolder(), url }
  return tasks / (await respondent.ask(task, isNumber))
}

interface Place {
  readonly name: string
  readonly rates: ReadonlyArray<number>
}

/** Tasks a second of each. The first round, in which the code is not compiled yet, does not count. */
const contest = async (contestants: ReadonlyArray<Contestant>, seats: number): Promise<ReadonlyArray<Place>> => {
  const rates = await inTurn(
    rounds + 1,
    contestants.map((contestant) => () => measured(contestant, seats))
  )
  return contestants.map(({ name }, index) => ({ name, rates: rates[index]?.slice(1) ?? [] }))
}

const rows = ([ours, ...others]: ReadonlyArray<Place>): ReadonlyArray<ReadonlyArray<string>> => {
  if (ours === undefined) return []
  return [
    [ours.name, spread(ours.rates), figure(1e6 / median(ours.rates)), ""],
    ...others.map(({ name, rates }) => [
      name,
      spread(rates),
      figure(1e6 / median(rates)),
      times(ratios(ours.rates, rates))
    ])
  ]
}

const columns = ["", "a second", "µs each", "the first row beside it"]

// -----------------------------------------------------------------------------
// in memory
// -----------------------------------------------------------------------------

const inMemory = async (): Promise<void> => {
  const tasks = 50_000
  const programs = {
    "shiftboss, a step and an end for each case": "shiftboss.ts",
    "p-queue": "peers/pQueue.ts",
    fastq: "peers/fastq.ts",
    "Effect's PersistedQueue in memory": "peers/persistedQueue.ts",
    "bare Effect.forEach, which keeps nothing": "peers/effectForEach.ts"
  }
  const contestants = Object.entries(programs).map(([name, program]) => ({ name, respondent: start(program), tasks }))
  table(
    `Dispatch in memory, 8 seats, ${count(tasks)} tasks that do nothing (goal: ahead of p-queue and fastq)`,
    columns,
    rows(await contest(contestants, 8))
  )
}

// -----------------------------------------------------------------------------
// durable
// -----------------------------------------------------------------------------

interface Service {
  readonly url: string
  /** Why it is not there. */
  readonly absent?: string
}

const service = async (program: string, missing: string): Promise<Service> => {
  try {
    return { url: await start(program).ask(emptyFolder(), isString) }
  } catch (error) {
    const [reason = ""] = (error instanceof Error ? error.message : String(error)).split("\n")
    return { url: "", absent: `not measured: ${missing} (${reason})` }
  }
}

const durable = async (): Promise<void> => {
  const redis = await service("peers/redis.ts", "no redis-server")
  const postgres = await service("peers/postgres.ts", "no PostgreSQL")
  const peers = [
    { name: "BullMQ on Redis", program: "peers/bullmq.ts", mode: "", on: redis, tasks: 5000 },
    { name: "pg-boss", program: "peers/pgBoss.ts", mode: "", on: postgres, tasks: 2000 },
    { name: "pg-boss, batches of 50", program: "peers/pgBoss.ts", mode: "batched", on: postgres, tasks: 20_000 },
    { name: "graphile-worker", program: "peers/graphileWorker.ts", mode: "", on: postgres, tasks: 4000 },
    {
      name: "graphile-worker, batched",
      program: "peers/graphileWorker.ts",
      mode: "batched",
      on: postgres,
      tasks: 20_000
    }
  ]
  const contestants: ReadonlyArray<Contestant> = [
    {
      name: "shiftboss, an end for each case",
      respondent: start("shiftboss.ts", "files", "no step"),
      tasks: 20_000
    },
    {
      name: "shiftboss, a step's result and then an end for each case",
      respondent: start("shiftboss.ts", "files"),
      tasks: 20_000
    },
    ...peers
      .filter(({ on }) => on.absent === undefined)
      .map(({ name, program, mode, on, tasks }) => ({
        name,
        respondent: start(program, mode),
        tasks,
        url: on.url
      }))
  ]
  const absent = peers.flatMap(({ name, on }) => (on.absent === undefined ? [] : [[name, on.absent, "", ""]]))
  for (const seats of [8, 64]) {
    table(
      `Durable dispatch, ${seats} seats, tasks that do nothing, each acknowledged when its end is on the disk (goal: 5 times)`,
      columns,
      [...rows(await contest(contestants, seats)), ...absent]
    )
  }
}

const versions = (): string => {
  const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(
    readFileSync(new URL("peers/package.json", import.meta.url), "utf8")
  )
  const packages = Object.entries(dependencies).map(([name, version]) => `${name} ${version}`)
  try {
    const redis = /v=(\S+)/.exec(execFileSync("redis-server", ["--version"], { encoding: "utf8" }))?.[1] ?? "?"
    packages.push(`redis-server ${redis}`)
  } catch {
    // Then there is no Redis, and its row says so.
  }
  return packages.join(", ")
}

const clear = async (): Promise<void> => {
  await Promise.all(running.map((respondent) => respondent.end()))
  rmSync(folder, { recursive: true, force: true })
}
let cleared: Promise<void> | undefined
const end = (): Promise<void> => (cleared ??= clear())

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void end().finally(() => process.exit(1)))
}

try {
  console.log(`With ${versions()}.`)
  await inMemory()
  await durable()
} finally {
  await end()
}
