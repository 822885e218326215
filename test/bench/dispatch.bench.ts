/**
 * What a dispatch costs, and how that grows with what waits. After a build:
 *
 *     node test/bench/dispatch.bench.ts [largest number of cases]
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Stream } from "effect"
import { Case, Dispatcher, type DispatcherEvent, Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { bareFlush, bareRead, done, held, ids, noOp, on, parked, prepared, write } from "./logs.ts"
import { count, figure, heap, inTurn, median, ratios, seconds, spread, table, times } from "./measure.ts"

const largest = Number(process.argv[2] ?? 1_000_000)
const folder = mkdtempSync(join(tmpdir(), "shiftboss-bench-"))

/** Microseconds a case, from the first to the last, with so many parked beside them. */
const dispatching = async (beside: number, cases: number): Promise<number> => {
  const { storage } = await Effect.runPromise(prepared(parked(beside)))
  let first = 0
  let last = 0
  await Effect.runPromise(
    on(
      storage,
      Dispatcher.run(
        {
          cases: Effect.succeed([...ids("parked", beside), ...ids("case", cases)]),
          train: (c, seat) => {
            last = performance.now()
            if (first === 0) first = last
            return noOp(c, seat)
          }
        },
        { seats: 8 }
      )
    )
  )
  return ((last - first) * 1000) / cases
}

const besideParked = async (): Promise<void> => {
  const sizes = [0, 1000, 10_000, 100_000]
  const figures = await inTurn(
    7,
    sizes.map((beside) => () => dispatching(beside, 20_000))
  )
  table(
    "A dispatch in memory, 8 seats, one no-op step, while others are parked (goal: at most 1.5 times)",
    ["parked", "µs a case", "beside none parked"],
    sizes.map((beside, index) => [
      count(beside),
      spread(figures[index] ?? []),
      times(ratios(figures[index] ?? [], figures[0] ?? []))
    ])
  )
}

/** Milliseconds from the moment a selection has been read to the first case on a seat. */
const firstOf = async (size: number): Promise<number> => {
  const cases = ids("case", size)
  const { storage } = await Effect.runPromise(prepared([]))
  let read = 0
  let first = 0
  await Effect.runPromise(
    on(
      storage,
      Dispatcher.run({
        cases: Effect.sync(() => {
          read ||= performance.now()
          return cases
        }),
        train: () => {
          first ||= performance.now()
          return Effect.as(Effect.forkDetach(Dispatcher.stop), Case.completed())
        }
      })
    )
  )
  return first - read
}

const sizesTo = (most: number): ReadonlyArray<number> => [10_000, 100_000, 1_000_000].filter((size) => size <= most)

const selections = async (): Promise<void> => {
  const sizes = sizesTo(largest)
  const figures = await inTurn(
    5,
    sizes.map((size) => () => firstOf(size))
  )
  table(
    "From a selection to its first case on a seat (goal: under 1,000 ms)",
    ["cases", "ms"],
    sizes.map((size, index) => [count(size), spread(figures[index] ?? [])])
  )
}

/** Bytes of heap while one case runs beside those that are selected. */
const heapBeside = async (events: Iterable<DispatcherEvent.DispatcherEvent>, cases: ReadonlyArray<Case.Case>) => {
  const { storage } = await Effect.runPromise(prepared(events))
  const before = heap()
  let during = 0
  await Effect.runPromise(
    on(
      storage,
      Dispatcher.run(
        {
          cases: Effect.succeed([{ id: "measuring" }, ...cases]),
          train: () => {
            during ||= heap()
            return Effect.as(Effect.forkDetach(Dispatcher.stop), Case.completed())
          }
        },
        { seats: 1 }
      )
    )
  )
  return during - before
}

const memory = async (): Promise<void> => {
  const size = 100_000
  const states = [
    { name: "fresh in the selection", events: [], cases: ids("fresh", size) },
    {
      name: "parked, with the results of two steps (150 characters) and its request",
      events: parked(size),
      cases: ids("parked", size)
    },
    { name: "held", events: held(size), cases: ids("held", size) },
    { name: "done, of an earlier run, with no value", events: done(size), cases: ids("case", size) }
  ]
  const nothing = await heapBeside([], [])
  const rows: Array<ReadonlyArray<string>> = []
  for (const { name, events, cases } of states) {
    rows.push([name, count(((await heapBeside(events, cases)) - nothing) / size)])
  }
  table("Memory of a case beside one that runs, the host's own object not counted", ["a case that is", "bytes"], rows)
}

/** Milliseconds of a start on a log, beside as bare a reading of it as Node has. */
const restartsOf = async (size: number): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
  const start = (storage: Storage.Storage["Service"]) => () =>
    seconds(() =>
      Effect.runPromise(on(storage, Dispatcher.run({ cases: Effect.succeed(ids("case", size)), train: noOp })))
    )
  const row = (logs: string, ours: ReadonlyArray<number>, bare: ReadonlyArray<number>) => {
    const millis = ours.map((value) => value * 1000)
    return [logs, count(size), spread(millis), figure((median(millis) * 1000) / size), times(ratios(ours, bare))]
  }
  const { encoded, storage } = await Effect.runPromise(prepared(done(size)))
  const lines = await Effect.runPromise(Stream.runCollect(encoded.lines("dispatch")))
  const parse = () =>
    seconds(async () => {
      for (const line of lines) JSON.parse(line)
    })
  const [memory = [], parsed = []] = await inTurn(3, [start(storage), parse])
  const place = join(folder, `restart-${size}`)
  const inFiles = await Effect.runPromise(
    Effect.provide(
      Effect.tap(Storage.Storage, (files) => write(files, done(size))),
      FileStorage.layer(place)
    )
  )
  const [files = [], read = []] = await inTurn(3, [
    start(inFiles),
    () => seconds(() => bareRead(join(place, "dispatch.ndjson")))
  ])
  return [row("in memory", memory, parsed), row("in files", files, read)]
}

const restarts = async (): Promise<void> => {
  const rows: Array<ReadonlyArray<string>> = []
  for (const size of sizesTo(largest)) rows.push(...(await restartsOf(size)))
  table(
    "A start with so many cases done, two events each, from `run` to its end",
    ["logs", "cases", "ms", "µs a case", "beside bare reading and `JSON.parse` of the lines"],
    rows
  )
}

/** Cases a second with logs in files: a step's result and the case's end are each on the disk before the next. */
const durable = async (seats: number, cases: number): Promise<number> => {
  const place = Dispatcher.layerNamed(`durable-${seats}-${performance.now()}`).pipe(
    Layer.provide(FileStorage.layer(folder))
  )
  const run = Dispatcher.run({ cases: Effect.succeed(ids("case", cases)), train: noOp }, { seats })
  return cases / (await seconds(() => Effect.runPromise(Effect.provide(run, place))))
}

const inFiles = async (): Promise<void> => {
  const rows: Array<ReadonlyArray<string>> = []
  for (const seats of [1, 8, 64]) {
    const [rates = [], bare = []] = await inTurn(5, [
      () => durable(seats, seats === 1 ? 1000 : 8000),
      async () => 1000 / (await bareFlush(join(folder, "bare"), 500))
    ])
    rows.push([count(seats), spread(rates), spread(bare), times(ratios(rates, bare))])
  }
  table(
    "Durable dispatch, one no-op step: its result is on the disk before the case goes on, its end before the run does",
    ["seats", "cases a second", "bare flushes of one line a second", "cases a flush"],
    rows
  )
}

try {
  await besideParked()
  await selections()
  await memory()
  await restarts()
  await inFiles()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
