/**
 * What a dispatch costs, and how that grows with what waits. After a build:
 *
 *     node test/bench/dispatch.bench.ts [largest number of cases]
 *
 * Figures that are compared are measured in turn in one run.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { open as openFile } from "node:fs/promises"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect, Layer, Stream } from "effect"
import { Case, Dispatcher, DispatcherEvent, Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void
const heap = (): number => {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

const largest = Number(process.argv[2] ?? 1_000_000)
const folder = mkdtempSync(join(tmpdir(), "shiftboss-bench-"))

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1]!

const ids = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: `${prefix}-${index}` }))

type Event = DispatcherEvent.DispatcherEvent

/** A log of these events, in a store of its own. */
const prepared = (events: Iterable<Event>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const storage = Storage.fromEncoded(Storage.makeMemory(), { shared: false, alive: () => Effect.succeed(false) })
      const log = Storage.typed(yield* storage.open("dispatch"), {
        entry: DispatcherEvent.DispatcherEvent,
        version: DispatcherEvent.version
      })
      yield* Stream.runForEachArray(Stream.rechunk(Stream.fromIterable(events), 10_000), (some) => log.append(some))
      // Read once, so that what reading makes of the store's strings is not taken for what a run keeps.
      yield* Stream.runDrain(storage.read("dispatch"))
      return storage
    })
  )

const on = <A, E>(storage: Storage.Storage["Service"], program: Effect.Effect<A, E, Dispatcher.Dispatcher>) =>
  Effect.provide(program, Dispatcher.layer.pipe(Layer.provide(Layer.succeed(Storage.Storage, storage))))

const noOp = (_: Case.Case, seat: Dispatcher.Seat) => Effect.as(seat.step("s", Effect.void), Case.completed())

const parked = function* (count: number): Generator<Event> {
  for (const { id } of ids("parked", count)) {
    const of = { at: 1_700_000_000_000, case: id, rev: 1 }
    yield {
      _tag: "StepEnded",
      ...of,
      step: "answer-1",
      result: { text: `an answer of usual length to ${id}`, right: false }
    }
    yield {
      _tag: "StepEnded",
      ...of,
      step: "grade-1",
      result: { right: false, missing: "a rule for this kind of case" }
    }
    yield { _tag: "CaseParked", ...of, name: "p", request: `${id}/1/p`, payload: { missing: "a rule for this" } }
  }
}

const held = function* (count: number): Generator<Event> {
  for (const { id } of ids("held", count)) {
    yield { _tag: "CaseHeld", at: 1_700_000_000_000, case: id, rev: 1, name: "h", until: 9_000_000_000_000 }
  }
}

const done = function* (count: number): Generator<Event> {
  for (const { id } of ids("case", count)) {
    const of = { at: 1_700_000_000_000, case: id, rev: 1 }
    yield { _tag: "StepEnded", ...of, step: "s" }
    yield { _tag: "CaseCompleted", ...of }
  }
}

// -----------------------------------------------------------------------------
// measurements
// -----------------------------------------------------------------------------

/** Microseconds a case, from the first to the last, with so many parked beside them. */
const dispatching = (beside: number, count: number) =>
  Effect.gen(function* () {
    const storage = yield* prepared(parked(beside))
    let first = 0
    let last = 0
    yield* on(
      storage,
      Dispatcher.run(
        {
          cases: Effect.succeed([...ids("parked", beside), ...ids("case", count)]),
          train: (c, seat) => {
            last = performance.now()
            if (first === 0) first = last
            return noOp(c, seat)
          }
        },
        { seats: 8 }
      )
    )
    return ((last - first) * 1000) / count
  })

const besideParked = Effect.gen(function* () {
  const without: Array<number> = []
  const beside: Array<number> = []
  for (let pair = 0; pair < 7; pair++) {
    without.push(yield* dispatching(0, 20_000))
    beside.push(yield* dispatching(100_000, 20_000))
  }
  const ratios = beside.map((value, index) => value / without[index]!)
  console.log("a dispatch in memory, 8 seats, one no-op step (µs)")
  console.log(
    `  none parked      ${median(without).toFixed(1)}  (${(1e6 / median(without)).toFixed(0)} cases a second)`
  )
  console.log(`  100,000 parked   ${median(beside).toFixed(1)}`)
  console.log(
    `  ratio            ${median(ratios).toFixed(2)}  (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}; goal: at most 1.5)`
  )
})

/** Milliseconds from the moment a selection has been read to the first case on a seat. */
const firstOf = (count: number) =>
  Effect.gen(function* () {
    const cases = ids("case", count)
    let read = 0
    let first = 0
    yield* on(
      yield* prepared([]),
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
    return first - read
  })

/** Bytes of heap that a waiting case takes, measured while one case runs, less what a run without them takes. */
const heapOf = (events: () => Iterable<Event>, cases: ReadonlyArray<Case.Case>) =>
  Effect.gen(function* () {
    const measure = (given: Iterable<Event>, selected: ReadonlyArray<Case.Case>) =>
      Effect.gen(function* () {
        const storage = yield* prepared(given)
        const before = heap()
        let during = 0
        yield* on(
          storage,
          Dispatcher.run(
            {
              cases: Effect.succeed([{ id: "measuring" }, ...selected]),
              train: () => {
                during ||= heap()
                return Effect.as(Effect.forkDetach(Dispatcher.stop), Case.completed())
              }
            },
            { seats: 1 }
          )
        )
        return during - before
      })
    const empty = yield* measure([], [])
    return (yield* measure(events(), cases)) - empty
  })

const memory = Effect.gen(function* () {
  const count = 100_000
  const bytes = (total: number) => `${Math.round(total / count)} bytes`
  console.log("memory of a waiting case, the host's own object not counted")
  console.log(`  fresh in the selection            ${bytes(yield* heapOf(() => [], ids("fresh", count)))}`)
  console.log(`  parked, with two steps' results   ${bytes(yield* heapOf(() => parked(count), ids("parked", count)))}`)
  console.log(`  held                              ${bytes(yield* heapOf(() => held(count), ids("held", count)))}`)
  console.log(`  done                              ${bytes(yield* heapOf(() => done(count), ids("case", count)))}`)
})

const restarts = Effect.gen(function* () {
  console.log("a start with so many cases done, from run to its end (ms)")
  for (let count = 10_000; count <= largest; count *= 10) {
    const storage = yield* prepared(done(count))
    const from = performance.now()
    yield* on(storage, Dispatcher.run({ cases: Effect.succeed(ids("case", count)), train: noOp }))
    const taken = performance.now() - from
    console.log(
      `  ${count.toLocaleString("en")}: ${taken.toFixed(0)}  (${((taken * 1000) / count).toFixed(1)} µs a case)`
    )
  }
})

/** Cases a second with logs in files: a step's result and the case's end are each on the disk before the next. */
const durable = (seats: number, count: number) =>
  Effect.gen(function* () {
    const from = performance.now()
    yield* Effect.provide(
      Dispatcher.run({ cases: Effect.succeed(ids("case", count)), train: noOp }, { seats }),
      Dispatcher.layerNamed(`durable-${seats}-${from}`).pipe(Layer.provide(FileStorage.layer(folder)))
    )
    return (count * 1000) / (performance.now() - from)
  })

const flushes = Effect.promise(async () => {
  const file = await openFile(join(folder, "raw"), "w")
  const from = performance.now()
  for (let n = 0; n < 500; n++) {
    await file.write("x".repeat(120), n * 120)
    await file.datasync()
  }
  await file.close()
  return 500_000 / (performance.now() - from)
})

const inFiles = Effect.gen(function* () {
  console.log("durable dispatch, one no-op step (cases a second), beside bare flushes of one line (a second)")
  for (const seats of [8, 64]) {
    const rates: Array<number> = []
    const bare: Array<number> = []
    for (let round = 0; round < 3; round++) {
      bare.push(yield* flushes)
      rates.push(yield* durable(seats, 4_000))
    }
    console.log(`  ${seats} seats: ${median(rates).toFixed(0)}   bare: ${median(bare).toFixed(0)}`)
  }
})

const bench = Effect.gen(function* () {
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "an unknown processor"}`)
  yield* besideParked
  const first: Array<number> = []
  for (let round = 0; round < 5; round++) first.push(yield* firstOf(largest))
  console.log(
    `the first of ${largest.toLocaleString("en")} cases is on its seat after ${median(first).toFixed(0)} ms (goal: under 1000)`
  )
  yield* memory
  yield* restarts
  yield* inFiles
})

try {
  await Effect.runPromise(bench)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
