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
import { bareRead } from "./logs.ts"
import { count as shown, inTurn, quantile, ratios, seconds, spread, table, times } from "./measure.ts"

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
  let pair = 0
  // Many short pairs: what a disk does in one second says little about the next.
  const [ours = [], raw = []] = await inTurn(25, [
    () => groupedAppends(`appends-${++pair}`),
    () => rawWrites(`appends-${pair}`)
  ])
  const beside = ratios(raw, ours)
  const [low = Number.NaN, high = Number.NaN] = [0.25, 0.75].map((part) => quantile(beside, part))
  table(
    `Appends from ${fibers} fibers, grouped into flushes, beside as many raw writes of the same bytes with fdatasync`,
    ["", "measured", "goal"],
    [
      [
        "speed beside raw writes",
        `${times(beside)}, half of the pairs ${low.toFixed(2)}–${high.toFixed(2)}`,
        "at least 0.6"
      ],
      ["entries a second", spread(ours.map((value) => (fibers * rounds) / value)), ""],
      ["a raw write and flush (ms)", spread(raw.map((value) => (1e3 * value) / rounds)), ""]
    ]
  )
}

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
  const before = process.memoryUsage().rss / 1e6
  const [bare = [], raw = [], typed = [], readline = []] = await inTurn(5, [
    () => checked(() => bareRead(file)),
    () => checked(() => openAndReplay(false)),
    () => checked(() => openAndReplay(true)),
    () => checked(() => readlineRead(file))
  ])
  const size = (statSync(file).size / 1e6).toFixed(0)
  table(
    `Opening and replaying ${shown(count)} entries (${size} MB), beside a bare read and \`JSON.parse\` of each line`,
    ["", "seconds", "beside bare", "goal"],
    [
      ["replay", spread(raw), times(ratios(raw, bare)), "at most 1.5"],
      ["the same with a schema", spread(typed), times(ratios(typed, bare)), ""],
      ["node:readline and `JSON.parse`, to compare", spread(readline), times(ratios(readline, bare)), ""],
      ["bare read", spread(bare), "", ""]
    ]
  )
  console.log(`\nMemory beyond the start while replaying: ${(peakMegabytes.value - before).toFixed(0)} MB.`)
}

try {
  await compareAppends()
  await compareReplays()
} finally {
  rmSync(folder, { recursive: true })
}
