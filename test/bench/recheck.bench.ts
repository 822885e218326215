/**
 * What choosing the rechecks of an apply costs, as a ratio to the bare hashing of the ids, and how that grows. After a build:
 *
 *     node test/bench/recheck.bench.ts [largest number of cases]
 */
import { choose, type History } from "../../src/core/internal/recheck/choose.ts"
import { hash } from "../../src/core/internal/recheck/hash.ts"
import { count, inTurn, ratios, spread, table, times } from "./measure.ts"

const largest = Number(process.argv[2] ?? 1_000_000)

const timed = async (work: () => number): Promise<number> => {
  const from = performance.now()
  if (Number.isNaN(work())) throw new Error("nothing was done")
  return performance.now() - from
}

/** One case in ten was rechecked before, and some of those have regressed. */
const historiesOf = (ids: Iterable<string>): ReadonlyMap<string, History> => {
  const histories = new Map<string, History>()
  for (const [index, id] of [...ids].entries()) {
    if (index % 10 > 0) continue
    histories.set(id, {
      passed: index % 30,
      failed: index % 7,
      regressed: index % 250_000 === 0 ? "confirmed" : undefined,
      good: undefined
    })
  }
  return histories
}

const compare = async (completed: ReadonlySet<string>, histories: ReadonlyMap<string, History>, rechecks: number) => {
  let round = 0
  const bare = () => {
    let sum = 0
    for (const id of completed) sum += hash(id, 1)
    return sum
  }
  const ours = () => {
    const options = { rechecks, seed: 1, apply: String(++round), confirmedOnly: true }
    return choose({ completed, histories, isFree: () => true }, options).length
  }
  // The first rounds, in which the code is not compiled yet, do not count.
  const figures = await inTurn(15, [() => timed(ours), () => timed(bare)])
  const [chosen = [], hashed = []] = figures.map((values) => values.slice(5))
  return [
    count(completed.size),
    count(rechecks),
    count(histories.size),
    spread(chosen),
    spread(hashed),
    times(ratios(chosen, hashed))
  ]
}

const rows: Array<ReadonlyArray<string>> = []
for (const size of [10_000, 100_000, 1_000_000].filter((size) => size <= largest)) {
  const completed = new Set(Array.from({ length: size }, (_, index) => `suite-${index % 97}/case-${index}`))
  const histories = historiesOf(completed)
  for (const rechecks of size === largest ? [8, 100, 1000] : [8]) {
    for (const known of [new Map<string, History>(), histories]) rows.push(await compare(completed, known, rechecks))
  }
}
table(
  "Choosing the rechecks of an apply, beside bare hashing of the ids (goal: at most 1.5 times)",
  ["cases", "rechecks", "with a history", "ms", "bare hashing (ms)", "beside it"],
  rows
)
