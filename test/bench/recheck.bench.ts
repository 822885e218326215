/**
 * What choosing the rechecks of an apply costs, as a ratio to the bare hashing of the ids, measured in pairs. After a build:
 *
 *     node test/bench/recheck.bench.ts [cases]
 */
import { choose, type History } from "../../src/core/internal/recheck/choose.ts"
import { hash } from "../../src/core/internal/recheck/hash.ts"

const count = Number(process.argv[2] ?? 1_000_000)
const completed = new Set(Array.from({ length: count }, (_, index) => `suite-${index % 97}/case-${index}`))

const timed = (work: () => number): number => {
  const from = performance.now()
  if (Number.isNaN(work())) throw new Error("nothing was done")
  return performance.now() - from
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[values.length >> 1]!

const bare = () => {
  let sum = 0
  for (const id of completed) sum += hash(id, 1)
  return sum
}

/** One case in ten was rechecked before, and some of those have regressed. */
const histories = new Map<string, History>()
for (const [index, id] of [...completed].entries()) {
  if (index % 10 > 0) continue
  histories.set(id, {
    passed: index % 30,
    failed: index % 7,
    regressed: index % 250_000 === 0 ? "confirmed" : undefined,
    good: undefined
  })
}

const report: Array<Record<string, string | number>> = []
for (const rechecks of [8, 100, 1000]) {
  for (const known of [new Map<string, History>(), histories]) {
    const pairs = Array.from({ length: 15 }, (_, round) => {
      const options = { rechecks, seed: 1, apply: String(round), confirmedOnly: true }
      const ours = timed(() => choose({ completed, histories: known, isFree: () => true }, options).length)
      return { ours, bare: timed(bare) }
    }).slice(5)
    report.push({
      cases: completed.size,
      rechecks,
      "with a history": known.size,
      milliseconds: median(pairs.map((pair) => pair.ours)).toFixed(1),
      "bare hashing": median(pairs.map((pair) => pair.bare)).toFixed(1),
      ratio: median(pairs.map((pair) => pair.ours / pair.bare)).toFixed(2),
      goal: "at most 1.5"
    })
  }
}
console.table(report)
