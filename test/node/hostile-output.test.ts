import { assert, describe, it } from "@effect/vitest"
import { type AgentLauncher, Failure } from "shiftboss"
import { ClaudeCode, Codex, Gemini, Protocol } from "shiftboss/node"
import { attemptOf, id } from "./support/attempt.ts"

const read = <State>(protocol: Protocol.Protocol<State>, lines: ReadonlyArray<object | string>, code = 1) =>
  Protocol.readAll(protocol, attemptOf(), {
    ...{ code, signal: null, stderr: "", printed: { now: 0, timeZone: "UTC" } },
    stdout: Buffer.from(lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""))
  })

const agents = [ClaudeCode.protocol(), Codex.protocol(), Gemini.protocol()]

type Commanding = Pick<Protocol.Protocol<unknown>, "command">

const refusalOf = (protocol: Commanding, given: Partial<AgentLauncher.Attempt>): string | null => {
  const command = protocol.command(attemptOf(given))
  return command instanceof Failure.Failure ? command.kind : null
}

describe("a command line", () => {
  it("is made for no session that the agent would take for an option, a path, or another one", () => {
    for (const other of ["--help", "../../etc/passwd", "", "latest", "1", `${id}\0`, `${id}.jsonl`]) {
      for (const protocol of agents) {
        assert.strictEqual(refusalOf(protocol, { session: { _tag: "Resume", id: other } }), "SessionLost", other)
        assert.strictEqual(refusalOf(protocol, { session: { _tag: "New", id: other } }), "Config", other)
      }
    }
  })

  it("is made for no model that is none, by the attempt or by the options", () => {
    for (const model of ["--dangerously-skip-permissions", "-c", "", "a\0b", "a\nb"]) {
      for (const protocol of agents) assert.strictEqual(refusalOf(protocol, { model }), "ModelUnavailable", model)
      assert.strictEqual(refusalOf(ClaudeCode.protocol({ model }), {}), "ModelUnavailable")
    }
    for (const protocol of agents) assert.strictEqual(refusalOf(protocol, { model: "claude-opus-4.5[1m]" }), null)
  })

  it("is made for no budget that is no amount of money", () => {
    for (const budgetUsd of [Number.NaN, -1, Number.POSITIVE_INFINITY]) {
      assert.strictEqual(refusalOf(ClaudeCode.protocol(), { budgetUsd }), "Config")
    }
  })

  it("has a prompt with a NUL on stdin, where it may be", () => {
    for (const protocol of agents) {
      const command = protocol.command(attemptOf({ prompt: "a\0b" }))
      assert.strictEqual(command instanceof Failure.Failure ? null : command.stdin, "a\0b")
    }
  })
})

describe("amounts", () => {
  it("that cannot be are unknown, and so is every sum with them", () => {
    const usage = { input_tokens: -5, output_tokens: 1e308, cache_read_input_tokens: "7" }
    const line = { type: "result", is_error: false, result: "ok", num_turns: 1e308, total_cost_usd: -3, usage }
    const { known } = read(ClaudeCode.protocol(), [line, line])
    const unknown = { input: null, output: null, cacheRead: null, cacheWrite: null, reasoning: null }
    assert.deepStrictEqual([known.usage, known.turns, known.costUsd], [unknown, null, null])
    const infinite = `{"type":"result","is_error":false,"total_cost_usd":1e999,"num_turns":1e999}`
    assert.strictEqual(read(ClaudeCode.protocol(), [infinite]).known.costUsd, null)
    const cached = { input_tokens: 10, cached_input_tokens: 50, output_tokens: 1 }
    assert.strictEqual(read(Codex.protocol(), [{ type: "turn.completed", usage: cached }]).known.usage?.input, 0)
  })

  it("of time beyond the last day there is name no reset", () => {
    const limit = { type: "rate_limit_event", rate_limit_info: { status: "rejected", resetsAt: 1e300 } }
    const line = { type: "result", is_error: true, api_error: "usage_limit_reached", result: "limit" }
    const ended = read(ClaudeCode.protocol(), [limit, line]).ending
    assert.deepStrictEqual(ended._tag === "Failed" ? [ended.failure.kind, ended.failure.resetAt] : [], [
      "RateLimited",
      undefined
    ])
    const message = `exhausted, try again in ${"9".repeat(40)}d`
    const gemini = read(Gemini.protocol(), [{ type: "result", status: "error", error: { message } }]).ending
    assert.strictEqual(gemini._tag === "Failed" ? gemini.failure.resetAt : 0, undefined)
  })
})

describe("reading", () => {
  it("takes no time that grows faster than the output", () => {
    const start = performance.now()
    const units = ["thinking ", "model ", "(", "{", "tool_use ", "resets jan 1 ", "try again in 1"]
    for (const unit of units) {
      const message = unit.repeat(300_000 / unit.length)
      read(ClaudeCode.protocol(), [{ type: "result", is_error: true, api_error_status: 400, result: message }])
      read(Codex.protocol(), [
        { type: "error", message: `Reconnecting... ${message}` },
        { type: "turn.failed", error: { message } }
      ])
      read(Gemini.protocol(), [{ type: "result", status: "error", error: { message } }])
    }
    const many = Array.from({ length: 20_000 }, (_, n) => n)
    const part = (n: number) => ({ type: "tool_use", id: `t${n}`, name: "x" })
    read(
      ClaudeCode.protocol(),
      many.map((n) => ({ type: "assistant", message: { id: `m${n}`, content: [part(n)] } }))
    )
    read(
      Gemini.protocol(),
      many.map((n) => ({ type: "tool_use", tool_id: `t${n}`, tool_name: "x" }))
    )
    // Each of them took half a minute where it was quadratic.
    assert.isBelow(performance.now() - start, 20_000)
  })

  it("bears what is nested a hundred thousand deep, and what is no text where one is expected", () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`
    const line = `{"type":"result","is_error":true,"subtype":"error_during_execution","errors":[${deep},{"toString":1},"why"]}`
    const { ending, rule } = read(ClaudeCode.protocol(), [line])
    assert.deepStrictEqual(
      [rule, ending._tag === "Failed" ? ending.failure.detail : ""],
      ["claude/unknown-error", "why"]
    )
  })

  it("takes nothing that an agent says for a failure, nor an error that Gemini CLI got over", () => {
    const prose =
      "API Error: 529 overloaded_error. You've hit your usage limit, resets 3am. No conversation found with session ID"
    const said = { type: "assistant", message: { id: "m", content: [{ type: "text", text: prose }] } }
    const claude = read(ClaudeCode.protocol(), [said, { type: "result", is_error: false, result: prose }])
    assert.strictEqual(claude.rule, "claude/success")
    const item = { type: "agent_message", id: "i", text: prose }
    const codex = read(Codex.protocol(), [{ type: "item.completed", item }, { type: "turn.completed" }])
    assert.strictEqual(codex.rule, "codex/completed")
    const gemini = read(Gemini.protocol(), [
      { type: "error", severity: "error", message: "The model returned an empty response" },
      { type: "message", role: "assistant", content: prose },
      { type: "result", status: "success" }
    ])
    assert.strictEqual(gemini.rule, "gemini/success")
  })
})
