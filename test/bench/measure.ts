/**
 * What the benchmarks share: how things are timed against each other, and how it is printed.
 */
import { cpus, platform, totalmem } from "node:os"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

// -----------------------------------------------------------------------------
// figures
// -----------------------------------------------------------------------------

/** The value below which that fraction of them is. */
export const quantile = (values: ReadonlyArray<number>, fraction: number): number => {
  const sorted = values.toSorted((one, other) => one - other)
  const value = sorted[Math.min(sorted.length - 1, Math.floor(fraction * sorted.length))]
  if (value === undefined) throw new Error("nothing was measured")
  return value
}

export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)

/** Measures in turn, A B A B …, so that what else the machine does meets all of them; a list of figures for each. */
export const inTurn = async (
  rounds: number,
  measures: ReadonlyArray<() => Promise<number>>
): Promise<ReadonlyArray<ReadonlyArray<number>>> => {
  const figures: ReadonlyArray<Array<number>> = measures.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, measure] of measures.entries()) figures[index]?.push(await measure())
  }
  return figures
}

/** Each figure of the one, beside the figure of the other in the same round. */
export const ratios = (one: ReadonlyArray<number>, other: ReadonlyArray<number>): ReadonlyArray<number> =>
  one.map((value, round) => value / (other[round] ?? Number.NaN))

export const seconds = async (work: () => Promise<unknown>): Promise<number> => {
  const from = performance.now()
  await work()
  return (performance.now() - from) / 1000
}

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

/** Bytes in use once what is garbage has gone. */
export const heap = (): number => {
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

// -----------------------------------------------------------------------------
// printing
// -----------------------------------------------------------------------------

export const count = (value: number): string => Math.round(value).toLocaleString("en")

/** Three digits that count. */
export const figure = (value: number): string => {
  if (Math.abs(value) >= 100) return count(value)
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}

/** The median, and from where to where the figures go. */
export const spread = (values: ReadonlyArray<number>): string =>
  values.length === 1
    ? figure(median(values))
    : `${figure(median(values))} (${figure(Math.min(...values))}–${figure(Math.max(...values))})`

export const times = (values: ReadonlyArray<number>): string => `${spread(values)} times`

export const machine = (): string =>
  `Node ${process.versions.node}, ${platform()}, ${cpus().length} × ${cpus()[0]?.model ?? "an unknown processor"}, ${count(totalmem() / 2 ** 30)} GB`

/** A table as Markdown has it, for a person and for `docs/performance.md` alike. */
export const table = (
  title: string,
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): void => {
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  console.log(`\n${title}\n`)
  console.log(line(columns))
  console.log(line(columns.map(() => "---")))
  for (const row of rows) console.log(line(row))
}
