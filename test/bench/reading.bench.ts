/**
 * How fast agents' output is read, beside bare `JSON.parse` over the same lines, and in how much memory.
 *
 *     npm run build && node test/bench/reading.bench.ts
 *
 * Fails when reading is slower than 0.7 of `JSON.parse`, or keeps more than it should.
 */
import { readFileSync } from "node:fs"
import { Duration } from "effect"
import type { AgentLauncher } from "shiftboss"
import { ClaudeCode, Codex, Protocol } from "shiftboss/node"
import { heap, table } from "./measure.ts"

const least = 0.7
const chunkBytes = 65_536
const rounds = 7
const runs = 4

const attempt: AgentLauncher.Attempt = {
  turnId: "bench",
  number: 1,
  prompt: "",
  session: { _tag: "New", id: "" },
  limits: { silence: Duration.minutes(10), wallClock: Duration.hours(1) }
}

const recording = (name: string): ReadonlyArray<string> =>
  readFileSync(new URL(`../fixtures/recordings/${name}/stdout`, import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "")

const repeat = (lines: ReadonlyArray<string>, bytes: number): ReadonlyArray<string> => {
  const size = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
  return Array.from({ length: Math.ceil(bytes / size) }, () => lines).flat()
}

const megabyte = 1024 * 1024
/** Prose with a dash or a quote in every line, as agents write it. */
const prose = (size: number): string =>
  "The shop is open — nothing else is to be said about this line of text.\n".repeat(size / 70)

const text = (size: number): string =>
  JSON.stringify({ type: "assistant", message: { content: [{ type: "text", text: prose(size) }] } })

const streams: ReadonlyArray<{
  readonly name: string
  readonly make: () => ReadonlyArray<string>
  readonly claude: boolean
}> = [
  {
    name: "a session of Claude Code",
    make: () => repeat(recording("claude/tool-write-commit"), 32 * megabyte),
    claude: true
  },
  { name: "a thread of Codex", make: () => repeat(recording("codex/tool-call"), 16 * megabyte), claude: false },
  { name: "lines of 5 MB", make: () => Array.from({ length: 6 }, () => text(5 * megabyte)), claude: true },
  {
    name: "a million tiny lines",
    make: () => Array.from({ length: 1_000_000 }, (_, n) => `{"type":"x","n":${n}}`),
    claude: true
  }
]

/** The time this thread has worked, in milliseconds: what else runs on the machine hardly counts. */
const worked = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The best times of some rounds, in turns. Each is of several runs: the system counts in steps of some milliseconds. */
const best = (works: ReadonlyArray<() => void>): ReadonlyArray<number> => {
  const times = works.map(() => Infinity)
  for (let round = 0; round < rounds; round++) {
    for (const [index, work] of works.entries()) {
      const start = worked()
      for (let run = 0; run < runs; run++) work()
      times[index] = Math.min(times[index] ?? Infinity, (worked() - start) / runs)
    }
  }
  return times
}

const parseAll = (lines: ReadonlyArray<string>) => () => {
  let objects = 0
  for (const line of lines) if (JSON.parse(line) !== null) objects++
  if (objects !== lines.length) throw new Error("not all lines were parsed")
}

const readAll = (chunks: ReadonlyArray<Uint8Array>, claude: boolean, expected: number) => () => {
  const reader = claude ? Protocol.reader(ClaudeCode.protocol(), attempt) : Protocol.reader(Codex.protocol(), attempt)
  for (const chunk of chunks) reader.write(chunk)
  const counts = reader.end()
  if (counts.read !== expected) throw new Error(`${counts.read} of ${expected} lines were read`)
}

let failed = false
const rows: Array<ReadonlyArray<string>> = []
for (const { name, make, claude } of streams) {
  // Made only now: what else is on the heap slows the collection of garbage down.
  const lines = make()
  const bytes = Buffer.from(`${lines.join("\n")}\n`)
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, n) =>
    bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes)
  )
  const [bare = NaN, ours = NaN] = best([parseAll(lines), readAll(chunks, claude, lines.length)])
  const ratio = bare / ours
  const rate = bytes.length / megabyte / (ours / 1000)
  rows.push([name, (bytes.length / megabyte).toFixed(0), rate.toFixed(0), ratio.toFixed(2)])
  if (ratio < least) {
    console.error(`${name}: slower than ${least}`)
    failed = true
  }
}

table(
  `Reading agents' output, beside bare \`JSON.parse\` of the same lines (goal: at least ${least} of its speed)`,
  ["", "MB", "MB a second", "of the speed of `JSON.parse`"],
  rows
)

const reader = Protocol.reader(ClaudeCode.protocol(), attempt)
const [first = ""] = recording("claude/tool-write-commit")
const block = Buffer.from(`${first}\n`.repeat(100))
const before = heap()
for (let n = 0; n < 2000; n++) reader.write(block)
const kept = (heap() - before) / megabyte
console.log(
  `\nAfter ${((2000 * block.length) / megabyte).toFixed(0)} MB of one session ${kept.toFixed(1)} MB are kept (goal: at most 16).`
)
if (kept > 16) {
  console.error("  more than 16 MB")
  failed = true
}
reader.end()
if (failed) process.exit(1)
