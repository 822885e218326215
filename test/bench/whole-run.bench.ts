/**
 * Time and memory of whole runs, each in a process of its own. After a build:
 *
 *     node test/bench/whole-run.bench.ts [largest number of cases]
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { count, figure, median, spread, table } from "./measure.ts"

const largest = Number(process.argv[2] ?? 100_000)
const program = fileURLToPath(new URL("wholeRun.ts", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "shiftboss-bench-"))
const Taken = Schema.fromJsonString(Schema.Struct({ seconds: Schema.Number, peakMegabytes: Schema.Number }))
const decode = Schema.decodeSync(Taken)

let folders = 0
const whole = (size: number, inFiles: boolean) => {
  const where = inFiles ? [join(folder, String(++folders))] : []
  return decode(execFileSync(process.execPath, [program, String(size), ...where], { encoding: "utf8" }))
}

try {
  const rows: Array<ReadonlyArray<string>> = []
  for (const inFiles of [false, true]) {
    const least = whole(1, inFiles).peakMegabytes
    for (const size of [1000, 10_000, 100_000].filter((size) => size <= largest)) {
      const runs = Array.from({ length: 3 }, () => whole(size, inFiles))
      const times = runs.map(({ seconds }) => seconds)
      rows.push([
        inFiles ? "in files" : "in memory",
        count(size),
        spread(times),
        figure((median(times) * 1e6) / size),
        spread(runs.map(({ peakMegabytes }) => peakMegabytes - least))
      ])
    }
  }
  table(
    "A run from start to end, 8 seats, one no-op step a case, its process just started",
    ["logs", "cases", "seconds", "µs a case", "most memory of the process, beyond a run of one case (MB)"],
    rows
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
