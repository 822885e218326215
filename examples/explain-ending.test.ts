import { assert, describe, it } from "@effect/vitest"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Counters } from "shiftboss"
import { explain, type Explained } from "./explain-ending.ts"

const fixtures = new URL("../test/fixtures/", import.meta.url).pathname
const recordings = join(fixtures, "recordings")

const [, ...rows] = readFileSync(join(fixtures, "endings.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => line.split(/ {2,}/))

const counters = { usage: "session", cost: "attempt" } as const

const told = (value: string | number | null): string => (value === null ? "-" : String(value))

const row = (recording: string, read: Explained): ReadonlyArray<string> => {
  const { usage } = read
  const tokens = usage === null ? [] : [usage.input, usage.output, usage.cacheRead, usage.cacheWrite, usage.reasoning]
  return [
    recording,
    read.kind ?? "ok",
    told(read.scope),
    read.rule,
    read.resetAt === null ? "-" : new Date(read.resetAt).toISOString(),
    told(read.sessionId),
    tokens.map((count) => count ?? "?").join("/") || "-",
    told(read.costUsd === null ? null : Number(read.costUsd.toFixed(9))),
    told(read.turns),
    told(read.model)
  ]
}

const read = (recording: string): Explained =>
  explain(recording.split("/")[0] ?? "", join(recordings, recording), { zone: "UTC" })

describe("recorded endings", () => {
  for (const expected of rows) {
    const [recording = ""] = expected
    it(`reads ${recording} as ${expected[1]}`, () => {
      const found = read(recording)
      assert.deepStrictEqual(row(recording, found), expected)
      assert.strictEqual(found.outcome, expected[1] === "ok" ? "succeeded" : "failed")
      // Whoever reads of a failure is told something.
      assert.strictEqual((found.detail ?? "") === "", found.outcome === "succeeded")
    })
  }

  it("has an expectation for every recording", () => {
    const all = ["claude", "codex", "gemini"].flatMap((agent) =>
      readdirSync(join(recordings, agent)).map((name) => `${agent}/${name}`)
    )
    assert.isAbove(all.length, 200)
    assert.deepStrictEqual(rows.map(([recording]) => recording).sort(), all.sort())
  })

  it("adds up to what Codex counts over a thread that was killed and resumed three times", () => {
    const recordings = ["resume-1-killed", "resume-2-continues", "resume-3-again", "resume-4-other-cwd"]
    let ledger = Counters.empty
    const outputs = recordings.map((name, index) => {
      const { sessionId, usage, outcome } = read(`codex/${name}`)
      const told = { sessionId, usage: outcome === "failed" ? null : usage, costUsd: null, counters }
      const [share, next] = Counters.share(ledger, told, index > 0)
      ledger = next
      return share.usage?.output ?? null
    })
    assert.deepStrictEqual(outputs, [null, 50, 25, 25])
  })

  it("needs the thread's own file of Codex for nothing but the exact time and the usage", () => {
    const folder = mkdtempSync(join(tmpdir(), "recording-"))
    try {
      for (const name of readdirSync(join(recordings, "codex"))) {
        // Called without --json it prints nothing that could be read.
        if (name === "hang-sigint-text") continue
        const copy = join(folder, name)
        cpSync(join(recordings, "codex", name), copy, { recursive: true })
        rmSync(join(copy, "rollout-tail.jsonl"), { force: true })
        const without = explain("codex", copy, { zone: "UTC", at: Date.parse("2026-11-30T23:11:35Z") })
        const found = read(`codex/${name}`)
        assert.deepStrictEqual([name, without.kind, without.scope], [name, found.kind, found.scope])
        assert.isBelow(Math.abs((without.resetAt ?? 0) - (found.resetAt ?? 0)), 60_000)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
