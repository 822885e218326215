import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import type { AgentLauncher } from "shiftboss"
import { Failure } from "shiftboss"
import { ClaudeCode, Codex, Gemini, PlainText, Protocol } from "shiftboss/node"
import { attemptOf, id } from "./support/attempt.ts"

const commandOf = <State>(
  protocol: Protocol.Protocol<State>,
  given?: Partial<AgentLauncher.Attempt>
): Protocol.Command => {
  const command = protocol.command(attemptOf(given))
  if (command instanceof Failure.Failure) throw new Error(command.detail)
  return command
}

const argumentsOf = (command: Protocol.Command): string => [command.program, ...command.arguments].join(" ")

const linesOf = (recording: string): ReadonlyArray<string> =>
  readFileSync(new URL(`../fixtures/recordings/${recording}/stdout`, import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "")

const activityOf = <State>(protocol: Protocol.Protocol<State>, lines: ReadonlyArray<string>) => {
  let state = protocol.initial(attemptOf())
  const activity: Array<AgentLauncher.Activity> = []
  for (const line of lines) {
    const step = protocol.read(state, Protocol.parseObject(line) ?? {}, line)
    state = step.state
    activity.push(...step.activity)
  }
  return activity
}

const exitOf = (more: Partial<Protocol.Output> = {}): Protocol.Output => ({
  code: 0,
  signal: null,
  stdout: Buffer.from(""),
  stderr: "",
  printed: { now: 0, timeZone: "UTC" },
  ...more
})

const readingOf = <State>(protocol: Protocol.Protocol<State>, lines: ReadonlyArray<object>, code = 1) =>
  Protocol.readAll(
    protocol,
    attemptOf(),
    exitOf({ code, stdout: Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join("")) })
  )

const kindOf = ({ ending }: Protocol.Reading): string => (ending._tag === "Failed" ? ending.failure.kind : "Succeeded")

const long = "x".repeat(100_000)

describe("ClaudeCode", () => {
  const protocol = ClaudeCode.protocol({ model: "sonnet", arguments: ["--permission-mode", "acceptEdits"] })

  it("begins a session of our choice and resumes it with the same flags", () => {
    assert.strictEqual(
      argumentsOf(commandOf(protocol, { budgetUsd: 0.5 })),
      `claude -p --output-format stream-json --verbose --session-id ${id} --model sonnet --max-budget-usd 0.5 --permission-mode acceptEdits -- say hello`
    )
    assert.strictEqual(
      argumentsOf(commandOf(protocol, { session: { _tag: "Resume", id }, model: "opus" })),
      `claude -p --output-format stream-json --verbose --resume ${id} --model opus --permission-mode acceptEdits -- say hello`
    )
  })

  it("gives a prompt on stdin that is long or looks like an option", () => {
    for (const prompt of [long, "--help"]) {
      const command = commandOf(protocol, { prompt })
      assert.strictEqual(command.stdin, prompt)
      assert.notInclude(command.arguments, prompt)
    }
  })

  it("tells sessions, tools, texts and usage, and counts the parts of one answer once", () => {
    const usage = (input: number) => ({ input, output: null, cacheRead: 0, cacheWrite: 0, reasoning: null })
    const text = "I will write the file."
    assert.deepStrictEqual(activityOf(protocol, linesOf("claude/tool-write-commit")), [
      { _tag: "SessionSeen", id: "474989c4-6fdd-4f42-a816-de6ee0b1b81a" },
      { _tag: "UsageSoFar", usage: usage(100) },
      { _tag: "Text", text },
      { _tag: "ToolStarted", id: "toolu_1_1", tool: "Write" },
      { _tag: "ToolEnded", id: "toolu_1_1", tool: "Write" },
      { _tag: "UsageSoFar", usage: usage(200) },
      { _tag: "ToolStarted", id: "toolu_2_0", tool: "Bash" },
      { _tag: "ToolEnded", id: "toolu_2_0", tool: "Bash" },
      { _tag: "UsageSoFar", usage: usage(300) },
      { _tag: "Text", text: "Committed." }
    ])
  })

  it("tells its own retries, with what they are about and how long they wait", () => {
    const retries = activityOf(protocol, linesOf("claude/529")).flatMap((activity) =>
      activity._tag === "AgentRetry" ? [[activity.failure.kind, activity.delayMillis]] : []
    )
    assert.deepStrictEqual(retries, [
      ["Capacity", 578],
      ["Capacity", 1219]
    ])
  })

  it("knows of a background command that outlives the first result", () => {
    const open = activityOf(protocol, linesOf("claude/tool-background-ceiling")).reduce(
      (count, { _tag }) => count + (_tag === "ToolStarted" ? 1 : _tag === "ToolEnded" ? -1 : 0),
      0
    )
    assert.strictEqual(open, 1)
    const ended = activityOf(protocol, linesOf("claude/tool-background-ends"))
    assert.deepStrictEqual(ended.filter(({ _tag }) => _tag === "SessionSeen").length, 1)
    assert.deepInclude(ended, { _tag: "ToolEnded", id: "bkbq0ys0o", tool: "background" })
  })

  const init = (version: string) => ({ type: "system", subtype: "init", session_id: id, claude_code_version: version })
  const result = { type: "result", is_error: false, result: "ok", session_id: id, total_cost_usd: 2 }

  it("says what its cost covers: the process before 2.1.277, the session since", () => {
    const scopeOf = (version: string) => readingOf(protocol, [init(version), result]).known.counters?.cost
    assert.strictEqual(scopeOf("2.1.276"), "attempt")
    assert.strictEqual(scopeOf("1.9.999"), "attempt")
    assert.strictEqual(scopeOf("2.1.277"), "session")
    assert.strictEqual(scopeOf("2.2.0"), "session")
    assert.strictEqual(readingOf(protocol, [result]).known.counters?.cost, "session")
  })

  it("takes a property of the account for no limit", () => {
    const event = {
      type: "rate_limit_event",
      rate_limit_info: { status: "allowed", overageStatus: "rejected", resetsAt: 1_796_087_725 }
    }
    const failed = { ...result, is_error: true, api_error_status: 429 }
    const { ending } = readingOf(protocol, [init("2.2.0"), event, failed])
    assert.isTrue(ending._tag === "Failed" && ending.failure.resetAt === undefined)
  })

  it("knows a limit of one model from one of the account", () => {
    const limited = (rateLimitType: string) => {
      const event = { type: "rate_limit_event", rate_limit_info: { status: "rejected", resetsAt: 100, rateLimitType } }
      const { ending } = readingOf(protocol, [event, { ...result, is_error: true, api_error: "usage_limit_reached" }])
      return ending._tag === "Failed" ? [ending.failure.kind, ending.failure.scope, ending.failure.resetAt] : []
    }
    assert.deepStrictEqual(limited("five_hour"), ["RateLimited", "account", 100_000])
    assert.deepStrictEqual(limited("seven_day_opus"), ["RateLimited", "model", 100_000])
  })

  it("reads what was not recorded: older limits, poisoned sessions, a busy session, HTML", () => {
    const error = { ...result, is_error: true }
    const kinds = (more: object) => kindOf(readingOf(protocol, [init("2.2.0"), { ...error, ...more }]))
    assert.strictEqual(kinds({ result: "Claude AI usage limit reached|1762952400" }), "RateLimited")
    assert.strictEqual(kinds({ api_error_status: 413, api_error_type: "request_too_large" }), "ContextOverflow")
    assert.strictEqual(kinds({ api_error_status: 402 }), "Billing")
    assert.strictEqual(kinds({ api_error_status: 422, result: "no such field" }), "Config")
    assert.strictEqual(kinds({ api_error: "max_output_tokens", result: "context window limit" }), "ContextOverflow")
    assert.strictEqual(kinds({ result: "API returned an empty or malformed response" }), "Network")
    assert.strictEqual(kinds({ subtype: "error_during_execution", terminal_reason: "aborted_tools" }), "Interrupted")
    assert.strictEqual(
      kinds({ api_error_status: 400, result: "messages.3: `thinking` blocks cannot be modified" }),
      "SessionPoisoned"
    )
    assert.strictEqual(kinds({ result: "The sky fell down" }), "Unknown")
    const busy = exitOf({ code: 1, stderr: `Error: Session ID ${id} is already in use.\n` })
    assert.strictEqual(kindOf(Protocol.readAll(protocol, attemptOf(), busy)), "SessionBusy")
  })

  it("never takes the agent's own prose for an error", () => {
    const prose = "API Error: 529 Overloaded. usage limit reached|1762952400, resets 3pm. Prompt is too long"
    assert.strictEqual(kindOf(readingOf(protocol, [init("2.2.0"), { ...result, result: prose }], 0)), "Succeeded")
  })
})

describe("Codex", () => {
  const protocol = Codex.protocol({ arguments: ["--sandbox", "workspace-write"] })

  it("begins a thread, and resumes one with the same flags", () => {
    assert.strictEqual(
      argumentsOf(commandOf(protocol, { model: "gpt-5.5" })),
      "codex exec --json --skip-git-repo-check --model gpt-5.5 --sandbox workspace-write say hello"
    )
    assert.strictEqual(
      argumentsOf(commandOf(protocol, { session: { _tag: "Resume", id } })),
      `codex exec --json --skip-git-repo-check --sandbox workspace-write resume ${id} say hello`
    )
    const command = commandOf(protocol, { prompt: long })
    assert.deepStrictEqual([command.arguments.at(-1), command.stdin], ["-", long])
  })

  it("refuses to resume what is no thread id: Codex would begin a new one", () => {
    const refused = protocol.command(attemptOf({ session: { _tag: "Resume", id: "not-a-uuid" } }))
    assert.isTrue(refused instanceof Failure.Failure && refused.kind === "SessionLost")
  })

  it("knows that another thread than the one to be resumed has none of its memory", () => {
    const lines = readFileSync(new URL("../fixtures/recordings/codex/ok/stdout", import.meta.url))
    const reading = Protocol.readAll(
      protocol,
      attemptOf({ session: { _tag: "Resume", id } }),
      exitOf({ stdout: lines })
    )
    assert.strictEqual(kindOf(reading), "SessionLost")
  })

  it("reads what was not recorded: poisoned threads, a full request, a sign-in that has run out", () => {
    const kinds = (message: string) =>
      kindOf(
        readingOf(protocol, [
          { type: "thread.started", thread_id: id },
          { type: "turn.failed", error: { message } }
        ])
      )
    const body = (message: string) => JSON.stringify({ error: { message, type: "invalid_request_error" } })
    assert.strictEqual(kinds(body("No tool output found for function call call_1.")), "SessionPoisoned")
    assert.strictEqual(kinds("unexpected status 413 Payload Too Large: x"), "ContextOverflow")
    assert.strictEqual(kinds("unexpected status 504 Gateway Timeout: x"), "ServerError")
    assert.strictEqual(kinds("Your access token could not be refreshed."), "Auth")
    assert.strictEqual(kinds("rate limit exceeded: Please slow down, try again in 1.5s"), "Throttled")
    assert.strictEqual(kinds("Incomplete response returned, reason: max_output_tokens"), "OutputLimit")
    assert.strictEqual(kinds("The moon fell down"), "Unknown")
  })

  it("tells its own retries and what they are about", () => {
    const retries = (recording: string) =>
      activityOf(protocol, linesOf(recording)).flatMap((activity) =>
        activity._tag === "AgentRetry" ? [activity.failure.kind] : []
      )
    assert.deepStrictEqual([...new Set(retries("codex/refused"))], ["Network"])
    assert.deepStrictEqual(retries("codex/429"), ["RateLimited", "RateLimited"])
  })

  it("does not take a warning for an end, nor an error line for the last word", () => {
    assert.strictEqual(
      kindOf(readingOf(protocol, [{ type: "thread.started", thread_id: id }, { type: "error" }])),
      "Interrupted"
    )
  })

  it.effect("reads the thread's own file where there is one, and only what this attempt wrote", () =>
    Effect.gen(function* () {
      const home = mkdtempSync(join(tmpdir(), "codex-"))
      const folder = join(home, "sessions/2026/11/30")
      mkdirSync(folder, { recursive: true })
      const entry = (timestamp: string, payload: object) => JSON.stringify({ timestamp, type: "event_msg", payload })
      const limits = { primary: { used_percent: 10, resets_at: 100 }, secondary: { used_percent: 100, resets_at: 900 } }
      writeFileSync(
        join(folder, `rollout-2026-11-30T00-00-00-${id}.jsonl`),
        [
          entry("2026-11-30T00:00:00Z", {
            type: "task_complete",
            error: { codex_error_info: "context_window_exceeded" }
          }),
          "{ cut",
          entry("2026-11-30T02:00:00Z", { type: "token_count", info: null, rate_limits: limits }),
          entry("2026-11-30T02:00:00Z", { type: "task_complete", error: { codex_error_info: "usage_limit_exceeded" } })
        ].join("\n")
      )
      const lines = [
        JSON.stringify({ type: "thread.started", thread_id: id }),
        JSON.stringify({ type: "turn.failed", error: { message: "new words" } })
      ]
      let state = protocol.initial(attemptOf())
      for (const line of lines) state = protocol.read(state, Protocol.parseObject(line) ?? {}, line).state
      const consult = (startedAt: string, env: { readonly [name: string]: string }) =>
        Effect.map(
          protocol.consult?.(state, { env, startedAt: Date.parse(startedAt) }) ?? Effect.succeed(state),
          (found) => found.file
        )
      const found = yield* consult("2026-11-30T01:00:00Z", { CODEX_HOME: home })
      assert.deepInclude(found, { reason: "usage_limit_exceeded", resetAt: 900_000 })
      const later = yield* consult("2026-11-30T03:00:00Z", { CODEX_HOME: home })
      assert.deepInclude(later, { reason: null, resetAt: null })
      const none = yield* consult("2026-11-30T01:00:00Z", { HOME: home })
      assert.deepInclude(none, { reason: null })
      rmSync(home, { recursive: true })
    })
  )
})

describe("Gemini", () => {
  const protocol = Gemini.protocol({ arguments: ["--approval-mode", "yolo"], model: "gemini-2.5-pro" })

  it("begins a session of our choice, resumes it, and is one process only", () => {
    const command = commandOf(protocol)
    assert.strictEqual(
      argumentsOf(command),
      `gemini -o stream-json --session-id ${id} -m gemini-2.5-pro --approval-mode yolo -p say hello`
    )
    assert.deepStrictEqual(command.env, { GEMINI_CLI_NO_RELAUNCH: "true" })
    assert.include(argumentsOf(commandOf(protocol, { session: { _tag: "Resume", id } })), `--resume ${id}`)
    assert.strictEqual(commandOf(protocol, { prompt: long }).stdin, long)
  })

  it("tells tools and texts", () => {
    assert.deepStrictEqual(
      activityOf(protocol, linesOf("gemini/tool-error")).map(({ _tag }) => _tag),
      ["SessionSeen", "ToolStarted", "ToolEnded", "Text"]
    )
  })

  it("tells a session when it can be resumed: the prompt of a first request that fails is taken back", () => {
    const told = (recording: string, session: AgentLauncher.Session = { _tag: "New", id }) => {
      let state = protocol.initial(attemptOf({ session }))
      return linesOf(recording).flatMap((line) => {
        const step = protocol.read(state, Protocol.parseObject(line) ?? {}, line)
        state = step.state
        return step.activity.map(({ _tag }) => _tag).filter((tag) => tag === "SessionSeen")
      })
    }
    for (const lost of ["gemini/429-default", "gemini/cut-text"]) {
      assert.deepStrictEqual(told(lost), [], lost)
      const { ending, known } = Protocol.readAll(protocol, attemptOf(), {
        ...exitOf({ code: 173 }),
        stdout: Buffer.from(linesOf(lost).join("\n"))
      })
      assert.deepStrictEqual([ending.result?.sessionId, known.sessionId === null], [null, false])
    }
    for (const kept of ["gemini/ok", "gemini/tool-call", "gemini/400-context-midrun", "gemini/tool-sigkill"]) {
      assert.deepStrictEqual(told(kept), ["SessionSeen"], kept)
    }
    assert.deepStrictEqual(told("gemini/429-default", { _tag: "Resume", id }), ["SessionSeen"])
  })

  it("knows a history that no request can mend", () => {
    const message = "Please ensure that the number of function response parts is equal to that of function call parts"
    const result = { type: "result", status: "error", error: { message } }
    assert.strictEqual(kindOf(readingOf(protocol, [result], 144)), "SessionPoisoned")
  })

  it("knows a quota from a matter of speed", () => {
    const limited = (message: string) => {
      const { ending } = readingOf(protocol, [{ type: "result", status: "error", error: { message } }], 173)
      return ending._tag === "Failed" ? [ending.failure.kind, ending.failure.resetAt] : []
    }
    assert.deepStrictEqual(limited("Suggested retry after 7200s."), ["RateLimited", 7_200_000])
    assert.deepStrictEqual(limited("Please retry in 17s."), ["Throttled", 17_000])
    assert.deepStrictEqual(limited("Resource has been exhausted"), ["RateLimited", undefined])
  })
})

describe("PlainText", () => {
  const exit = (more: Partial<Protocol.Output>) =>
    Protocol.readAll(PlainText.protocol({ command: "agent", exitCodes: { 75: "Capacity" } }), attemptOf(), exitOf(more))

  it("gives the prompt where it is wanted", () => {
    const command = (options: Partial<PlainText.Options>) =>
      commandOf(PlainText.protocol({ command: "agent", ...options }))
    assert.deepStrictEqual(command({}), { program: "agent", arguments: [], stdin: "say hello" })
    assert.deepStrictEqual(command({ prompt: "argument" }), { program: "agent", arguments: ["say hello"] })
    assert.deepStrictEqual(command({ prompt: "file", arguments: ["-f", Protocol.PromptFile] }), {
      program: "agent",
      arguments: ["-f", Protocol.PromptFile]
    })
  })

  it("cannot resume a session", () => {
    const refused = PlainText.protocol({ command: "agent" }).command(attemptOf({ session: { _tag: "Resume", id } }))
    assert.isTrue(refused instanceof Failure.Failure && refused.kind === "SessionLost")
  })

  it("judges by the exit code, and knows neither usage nor cost", () => {
    const text = Buffer.from("all good\n")
    const reading = exit({ stdout: text })
    assert.strictEqual(kindOf(reading), "Succeeded")
    assert.deepStrictEqual(reading.known, Protocol.known({ text: "all good\n" }))
    assert.strictEqual(kindOf(exit({ code: 1, stdout: text })), "Unknown")
    assert.strictEqual(kindOf(exit({ code: 75, stdout: text })), "Capacity")
    assert.strictEqual(kindOf(exit({ code: null, signal: "SIGKILL" })), "Interrupted")
    const { ending } = exit({ code: 2, stderr: "warning\nno such file\n" })
    assert.strictEqual(ending._tag === "Failed" ? ending.failure.detail : "", "agent exited with code 2: no such file")
  })
})
