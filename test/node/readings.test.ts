import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { readdirSync, readFileSync } from "node:fs"
import { Duration } from "effect"
import type { AgentLauncher } from "shiftboss"
import { ClaudeCode, Codex, Gemini, Protocol } from "shiftboss/node"

const attempt: AgentLauncher.Attempt = {
  turnId: "turn",
  number: 1,
  prompt: "",
  session: { _tag: "New", id: "" },
  limits: { silence: Duration.minutes(10), wallClock: Duration.hours(1) }
}

const recordings = new URL("../fixtures/recordings/", import.meta.url).pathname

interface Recording {
  readonly name: string
  readonly lines: ReadonlyArray<string>
}

const recordingsOf = (agent: string): ReadonlyArray<Recording> =>
  readdirSync(`${recordings}${agent}`).flatMap((name) => {
    const text = readFileSync(`${recordings}${agent}/${name}/stdout`, "utf8")
    const lines = text.split("\n").filter((line) => line !== "")
    return lines.length > 0 && lines.every((line) => line.startsWith("{") && line.endsWith("}"))
      ? [{ name, lines }]
      : []
  })

const cut = (bytes: Buffer, places: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...ends].map((from, index) => bytes.subarray(from, ends[index] ?? bytes.length))
}

const noise = fc.constantFrom(
  "",
  "\r",
  "   ",
  "(node:1) Warning: x",
  "\0\0",
  "{",
  '{"type":"result"',
  "\u2028",
  "null",
  "[1]"
)

const keepsTo = <State>(agent: string, protocol: Protocol.Protocol<State>): void => {
  const all = recordingsOf(agent)

  const read = (chunks: ReadonlyArray<Uint8Array>) => {
    const activity: Array<AgentLauncher.Activity> = []
    const reader = Protocol.reader(protocol, attempt, { activity: (seen) => void activity.push(seen) })
    for (const chunk of chunks) reader.write(chunk)
    const counts = reader.end()
    const exit = {
      code: 1,
      signal: null,
      stderr: "",
      stdout: "",
      cut: null,
      counts,
      printed: { now: 0, timeZone: "UTC" }
    }
    return { ...protocol.ending(reader.state(), exit), activity }
  }

  it(`reads ${agent} the same with noise between its lines, cut anywhere`, () => {
    assert.isAbove(all.length, 20)
    fc.assert(
      fc.property(
        fc.constantFrom(...all),
        fc.array(noise, { maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        fc.constantFrom("\n", "\r\n"),
        ({ lines }, between, places, end) => {
          const noisy = lines.flatMap((line, index) => (between[index] === undefined ? [line] : [between[index], line]))
          const bytes = Buffer.from(`\ufeff${noisy.join(end)}${end}`)
          assert.deepStrictEqual(read(cut(bytes, places)), read([Buffer.from(`${lines.join(end)}${end}`)]))
        }
      ),
      { numRuns: 200 }
    )
  })

  it(`reads the beginning of ${agent}, wherever it ends, without a fault`, () => {
    fc.assert(
      fc.property(fc.constantFrom(...all), fc.nat(), ({ lines }, place) => {
        const bytes = Buffer.from(lines.join("\n"))
        const whole = read([bytes])
        const part = read([bytes.subarray(0, place % bytes.length)])
        // What was cut off can only be missing: a run is no success before its last line has said so.
        assert.isTrue(part.ending._tag === "Failed" || whole.ending._tag === "Succeeded")
      }),
      { numRuns: 200 }
    )
  })

  it(`bears lines of ${agent} in which anything may be anything`, () => {
    const keys = fc.constantFrom(
      "type",
      "subtype",
      "message",
      "item",
      "error",
      "usage",
      "content",
      "errors",
      "stats",
      "result"
    )
    const types = fc.constantFrom(
      "system",
      "init",
      "assistant",
      "user",
      "result",
      "item.completed",
      "turn.failed",
      "error"
    )
    const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), types)
    const object = fc.dictionary(keys, fc.oneof(value, fc.dictionary(keys, value)))
    fc.assert(
      fc.property(fc.array(object, { maxLength: 6 }), (objects) => {
        const { ending, activity } = read([Buffer.from(objects.map((json) => `${JSON.stringify(json)}\n`).join(""))])
        assert.include(["Succeeded", "Failed"], ending._tag)
        assert.deepStrictEqual(
          activity.filter(({ _tag }) => _tag === "Drift"),
          []
        )
      }),
      { numRuns: 1000 }
    )
  })
}

describe("readings", () => {
  keepsTo("claude", ClaudeCode.protocol())
  keepsTo("codex", Codex.protocol())
  keepsTo("gemini", Gemini.protocol())
})
