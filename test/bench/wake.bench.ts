/**
 * How long it takes from the end of an apply until the first case that it woke runs. After a build:
 *
 *     node test/bench/wake.bench.ts [largest number of cases]
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { Case, Dispatcher, Improvements, Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { bareFlush, ids, on, parked, prepared, write } from "./logs.ts"
import { count, inTurn, ratios, spread, table, times } from "./measure.ts"

const largest = Number(process.argv[2] ?? 100_000)
const folder = mkdtempSync(join(tmpdir(), "shiftboss-bench-"))
const Missing = Schema.Struct({ missing: Schema.String })

/** Milliseconds from the answer of the apply that wakes all of them to the first on its seat. */
const waking = (storage: Storage.Storage["Service"], size: number): Effect.Effect<number, unknown> => {
  let answered = 0
  let running = 0
  const run = Dispatcher.run(
    {
      cases: Effect.succeed(ids("parked", size)),
      train: () => {
        running ||= performance.now()
        return Effect.as(Effect.forkDetach(Dispatcher.stop), Case.completed())
      },
      improve: {
        request: Missing,
        apply: () =>
          Effect.sync(() => {
            answered = performance.now()
            return Improvements.skipped("nothing to do")
          })
      }
    },
    { seats: 8, applyAt: 1 }
  )
  return Effect.map(on(storage, run), () => running - answered)
}

const inMemory = (size: number) =>
  Effect.runPromise(Effect.flatMap(prepared(parked(size)), ({ storage }) => waking(storage, size)))

let folders = 0
const inFiles = (size: number) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const storage = yield* Storage.Storage
      yield* write(storage, parked(size))
      return yield* waking(storage, size)
    }).pipe(Effect.provide(FileStorage.layer(join(folder, String(++folders)))))
  )

try {
  const rows: Array<ReadonlyArray<string>> = []
  for (const size of [1, 1000, 10_000, 100_000].filter((size) => size <= largest)) {
    const [memory = [], files = [], bare = []] = await inTurn(7, [
      () => inMemory(size),
      () => inFiles(size),
      () => bareFlush(join(folder, "bare"), 20)
    ])
    rows.push([count(size), spread(memory), spread(files), spread(bare), times(ratios(files, bare))])
  }
  table(
    "From the end of an apply to the first case that it wakes on its seat (ms)",
    ["cases it wakes", "in memory", "in files", "a bare flush of one line", "in files beside a bare flush"],
    rows
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
