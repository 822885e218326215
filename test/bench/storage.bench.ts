/**
 * How close logs in files come to the limit of the machine, as ratios measured in pairs in one run. After a build:
 *
 *     node test/bench/storage.bench.ts [entries]
 */
import { createReadStream, mkdtempSync, rmSync, statSync } from "node:fs"
import { open as openFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect, Schema, Stream } from "effect"
import { Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"

const count = Number(process.argv[2] ?? 1_000_000)
const folder = mkdtempSync(join(tmpdir(), "shiftboss-bench-"))

const Started = Schema.TaggedStruct("CaseStarted", {
  case: Schema.String,
  rev: Schema.Int,
  seat: Schema.Int,
  at: Schema.Int,
  note: Schema.String
})
const started = (index: number) =>
  Started.make({ case: `case-${index}`, rev: 1, seat: index % 4, at: 1_700_000_000_000 + index, note: "taken again" })

const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const from = performance.now()
  await work()
  return (performance.now() - from) / 1000
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1]!

const inStorage = <A, E>(program: Effect.Effect<A, E, Storage.Storage>) =>
  Effect.runPromise(Effect.provide(program, FileStorage.layer(folder)))

const fibers = 64
const rounds = 400

const prepared = Array.from({ length: rounds }, (_, round) => [started(round)])

/** 64 fibers, each appending one entry after the other. */
const groupedAppends = (log: string) =>
  inStorage(
    Effect.scoped(
      Effect.gen(function* () {
        const open = yield* (yield* Storage.Storage).open(log)
        yield* open.append([started(0)])
        const from = performance.now()
        yield* Effect.forEach(
          Array.from({ length: fibers }),
          () => Effect.forEach(prepared, (entries) => open.append(entries), { discard: true }),
          { concurrency: "unbounded", discard: true }
        )
        return (performance.now() - from) / 1000
      })
    )
  )

/** The same bytes in as many writes as there were rounds, each with its fdatasync. */
const rawWrites = async (log: string): Promise<number> => {
  const bytes = Buffer.alloc(Math.floor(statSync(join(folder, `${log}.ndjson`)).size / rounds), "x")
  const file = await openFile(join(folder, `${log}.raw`), "w")
  const taken = await seconds(async () => {
    for (let round = 0; round < rounds; round++) {
      await file.write(bytes, 0, bytes.length, round * bytes.length)
      await file.datasync()
    }
  })
  await file.close()
  return taken
}

const compareAppends = async (): Promise<void> => {
  const ratios: Array<number> = []
  // Many short pairs: what a disk does in one second says little about the next.
  for (let pair = 0; pair < 25; pair++) {
    const ours = await groupedAppends(`appends-${pair}`)
    const raw = await rawWrites(`appends-${pair}`)
    ratios.push(raw / ours)
    if (pair % 6 > 0) continue
    console.log(
      `  appends: ${Math.round((fibers * rounds) / ours)} entries/s; raw: ${((1e3 * raw) / rounds).toFixed(2)} ms a flush; ratio ${(raw / ours).toFixed(2)}`
    )
  }
  const [low, high] = [0.25, 0.75].map((part) => ratios.toSorted((a, b) => a - b)[Math.floor(part * ratios.length)]!)
  console.log(`  half of the pairs are between ${low!.toFixed(2)} and ${high!.toFixed(2)}`)
  report.push({
    what: `grouped appends from ${fibers} fibers / raw write + fdatasync`,
    ratio: median(ratios).toFixed(2),
    goal: "at least 0.6"
  })
}

/** Reads the file as cheaply as Node can: chunks, cut at newlines, each line parsed. */
const bareRead = (file: string): Promise<number> =>
  new Promise((resolve, reject) => {
    let rest = ""
    let sum = 0
    createReadStream(file, { encoding: "utf8", highWaterMark: 256 * 1024 })
      .on("data", (chunk) => {
        const lines = (rest + chunk).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) if (JSON.parse(line).seq !== undefined) sum++
      })
      .on("end", () => resolve(sum))
      .on("error", reject)
  })

const readlineRead = async (file: string): Promise<number> => {
  let sum = 0
  for await (const line of createInterface({ input: createReadStream(file) }))
    if (JSON.parse(line).seq !== undefined) sum++
  return sum
}

const peakMegabytes = { value: 0 }
const watchMemory = () => {
  peakMegabytes.value = Math.max(peakMegabytes.value, process.memoryUsage().rss / 1e6)
}

const openAndReplay = (typed: boolean) =>
  inStorage(
    Effect.scoped(
      Effect.gen(function* () {
        const storage = yield* Storage.Storage
        const log = yield* storage.open("long")
        let sum = 0
        const add = (entries: ReadonlyArray<unknown>) =>
          Effect.sync(() => {
            watchMemory()
            sum += entries.length
          })
        if (!typed) yield* Stream.runForEachArray(log.replay, add)
        else yield* Stream.runForEachArray(Storage.typed(log, { entry: Started, version: 1 }).replay, add)
        return sum
      })
    )
  )

const writeLong = () =>
  inStorage(
    Effect.scoped(
      Effect.gen(function* () {
        const storage = yield* Storage.Storage
        const log = Storage.typed(yield* storage.open("long"), { entry: Started, version: 1 })
        for (let from = 0; from < count; from += 1000) {
          yield* Effect.forEach(
            Array.from({ length: 100 }, (_, index) => from + index * 10),
            (at) => log.append(Array.from({ length: 10 }, (_, index) => started(at + index))),
            { concurrency: "unbounded", discard: true }
          )
        }
      })
    )
  )

const checked = async (work: () => Promise<number>): Promise<number> => {
  const taken = await seconds(async () => {
    const found = await work()
    if (found !== count) throw new Error(`${found} entries instead of ${count}`)
  })
  return taken
}

const compareReplays = async (): Promise<void> => {
  await writeLong()
  const file = join(folder, "long.ndjson")
  const ratios: { raw: Array<number>; typed: Array<number>; readline: Array<number> } = {
    raw: [],
    typed: [],
    readline: []
  }
  const before = process.memoryUsage().rss / 1e6
  for (let pair = 0; pair < 5; pair++) {
    const bare = await checked(() => bareRead(file))
    const raw = await checked(() => openAndReplay(false))
    const typed = await checked(() => openAndReplay(true))
    const readline = await checked(() => readlineRead(file))
    ratios.raw.push(raw / bare)
    ratios.typed.push(typed / bare)
    ratios.readline.push(readline / bare)
    console.log(
      `  bare ${bare.toFixed(2)} s, readline ${readline.toFixed(2)} s, replay ${raw.toFixed(2)} s, typed replay ${typed.toFixed(2)} s`
    )
  }
  const size = (statSync(file).size / 1e6).toFixed(0)
  report.push(
    {
      what: `open and replay ${count} entries (${size} MB) / bare read and JSON.parse`,
      ratio: median(ratios.raw).toFixed(2),
      goal: "at most 1.5"
    },
    { what: "the same with a schema", ratio: median(ratios.typed).toFixed(2), goal: "–" },
    { what: "node:readline and JSON.parse, to compare", ratio: median(ratios.readline).toFixed(2), goal: "–" },
    {
      what: "memory beyond the start while replaying",
      ratio: `${(peakMegabytes.value - before).toFixed(0)} MB`,
      goal: "bounded"
    }
  )
}

const report: Array<{ readonly what: string; readonly ratio: string; readonly goal: string }> = []
try {
  await compareAppends()
  await compareReplays()
  console.table(report)
} finally {
  rmSync(folder, { recursive: true })
}
