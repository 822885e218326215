/**
 * Claude Code, run headless: `claude -p --output-format stream-json --verbose`.
 *
 * Read from the fields of its `result` line. Its exit code says little: an interrupted run may exit with 0, and an API
 * error is printed as `subtype: "success"`.
 */
import type { Layer } from "effect"
import type { AgentLauncher } from "shiftboss"
import { Failure, ResetTime, type Usage } from "shiftboss"
import { endingOf, retryFailure } from "./internal/claudeEndings.ts"
import * as ProcessLauncher from "./ProcessLauncher.ts"
import * as Protocol from "./Protocol.ts"
import { amountAt, listAt, numberAt, objectAt, textAt } from "./Protocol.ts"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

export interface Options {
  /** The program. Default `claude`. */
  readonly command?: string | undefined
  /** More arguments, such as `["--permission-mode", "acceptEdits"]`. They are given on every resume again. */
  readonly arguments?: ReadonlyArray<string> | undefined
  /** The model of attempts that name none. Default: Claude Code's own. */
  readonly model?: string | undefined
}

/** What has been read of one attempt. */
export interface State {
  readonly sessionId: string | null
  readonly version: string | null
  readonly model: string | null
  /** The session was opened. A session that cannot be resumed never gets so far. */
  readonly opened: boolean
  /** The last `result` line. Several come when a background command ends after the first. */
  readonly result: Protocol.Json | null
  readonly raw: string | null
  /** Of all `result` lines: each reports what was used since the one before. */
  readonly usage: Usage.Usage | null
  readonly costUsd: number | null
  readonly turns: number | null
  /** The last `error` of an answer of the main conversation. */
  readonly error: string | null
  readonly limit: { readonly resetAt: number | null; readonly type: string | null } | null
  /** Tools and background commands that run, by id. */
  readonly tools: ReadonlyMap<string, string>
  /** The last answers, newest first: the parts of one answer share an id and repeat its usage. */
  readonly answers: ReadonlyArray<string>
  readonly soFar: Usage.Usage | null
}

// -----------------------------------------------------------------------------
// Protocol
// -----------------------------------------------------------------------------

/** Since this version `total_cost_usd` is of the session; before, it was of the process. */
const costOfSessionSince = [2, 1, 277]

/** How Claude Code is called and read. */
export const protocol = (options: Options = {}): Protocol.Protocol<State> => ({
  name: "claude",
  output: "lines",
  inherit: [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR"
  ],
  command: (attempt) => {
    const byArgument = Protocol.fitsArgument(attempt.prompt)
    const model = attempt.model ?? options.model
    const { budgetUsd } = attempt
    const refusal = Protocol.refusalByUuid("Claude Code", attempt, model)
    if (refusal !== null) return refusal
    if (budgetUsd !== undefined && !(budgetUsd >= 0 && budgetUsd < Infinity)) {
      return Failure.make("Config", `The budget of an attempt must be an amount of money, not ${budgetUsd}`)
    }
    return {
      program: options.command ?? "claude",
      arguments: [
        ...["-p", "--output-format", "stream-json", "--verbose"],
        ...(attempt.session._tag === "New" ? ["--session-id", attempt.session.id] : ["--resume", attempt.session.id]),
        ...(model === undefined ? [] : ["--model", model]),
        ...(budgetUsd === undefined ? [] : ["--max-budget-usd", String(budgetUsd)]),
        ...(options.arguments ?? []),
        // Some options take any number of values and would take the prompt for one.
        ...(byArgument ? ["--", attempt.prompt] : [])
      ],
      ...(byArgument ? {} : { stdin: attempt.prompt })
    }
  },
  initial: () => ({
    sessionId: null,
    version: null,
    model: null,
    opened: false,
    result: null,
    raw: null,
    usage: null,
    costUsd: null,
    turns: null,
    error: null,
    limit: null,
    tools: new Map(),
    answers: [],
    soFar: null
  }),
  read: (state, json, line) => {
    switch (json["type"]) {
      case "system":
        return system(state, json, line)
      case "assistant":
        return answer(state, json)
      case "user":
        return toolResults(state, json)
      case "rate_limit_event":
        return Protocol.quietly(limit(state, json))
      case "result":
        return Protocol.quietly(result(state, json, line))
      default:
        return Protocol.quietly(state)
    }
  },
  terminal: (state) => state.result !== null,
  ending: (state, exit) => endingOf(state, resultOf(state, exit), exit)
})

/** Launches Claude Code. */
export const layer = (options?: Options & ProcessLauncher.Options): Layer.Layer<AgentLauncher.AgentLauncher> =>
  ProcessLauncher.layer(protocol(options), options)

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const system = (state: State, json: Protocol.Json, line: string): Protocol.Step<State> => {
  const id = textAt(json, "task_id")
  switch (json["subtype"]) {
    case "init": {
      const sessionId = textAt(json, "session_id")
      const next = {
        ...state,
        sessionId: sessionId ?? state.sessionId,
        model: state.model ?? textAt(json, "model"),
        version: textAt(json, "claude_code_version"),
        opened: true
      }
      // Every background command that ends later opens the session once more.
      const activity = sessionId === null || state.opened ? [] : [{ _tag: "SessionSeen", id: sessionId } as const]
      return { state: next, activity }
    }
    case "api_retry":
      return {
        state,
        activity: [
          { _tag: "AgentRetry", failure: retryFailure(json, line), delayMillis: numberAt(json, "retry_delay_ms") }
        ]
      }
    case "task_started":
      return id === null ? Protocol.quietly(state) : started(state, id, "background")
    case "task_notification":
      return id === null ? Protocol.quietly(state) : toolEnded(state, id)
    default:
      return Protocol.quietly(state)
  }
}

/** Parts of answers of several conversations at once come mixed. */
const rememberedAnswers = 16

const answer = (state: State, json: Protocol.Json): Protocol.Step<State> => {
  const message = objectAt(json, "message") ?? {}
  const conversation = textAt(json, "parent_tool_use_id") ?? ""
  const id = textAt(message, "id")
  const model = textAt(message, "model")
  let next = state
  const activity: Array<AgentLauncher.Activity> = []
  const synthetic = model === "<synthetic>"
  if (conversation === "") {
    const error = textAt(json, "error")
    const said = synthetic ? state.model : (model ?? state.model)
    if (error !== state.error || said !== state.model) next = { ...next, error, model: said }
  }
  if (id !== null && !synthetic && !state.answers.includes(id)) {
    const soFar = Protocol.addUsage(next.soFar, answerUsage(objectAt(message, "usage") ?? {}))
    next = { ...next, answers: [id, ...next.answers.slice(0, rememberedAnswers - 1)], soFar }
    if (soFar !== null) activity.push({ _tag: "UsageSoFar", usage: soFar })
  }
  for (const part of listAt(message, "content")) {
    const text = textAt(part, "text")
    if (part["type"] === "text" && text !== null) activity.push({ _tag: "Text", text })
    const tool = textAt(part, "id")
    if (part["type"] === "tool_use" && tool !== null) {
      const step = started(next, tool, textAt(part, "name") ?? "tool")
      next = step.state
      activity.push(...step.activity)
    }
  }
  return { state: next, activity }
}

/** The count of answer tokens on these lines is the one from the start of the answer. */
const answerUsage = (usage: Protocol.Json): Usage.Usage => ({
  input: amountAt(usage, "input_tokens"),
  output: null,
  reasoning: null,
  cacheRead: amountAt(usage, "cache_read_input_tokens"),
  cacheWrite: amountAt(usage, "cache_creation_input_tokens")
})

const toolResults = (state: State, json: Protocol.Json): Protocol.Step<State> => {
  let next = state
  const activity: Array<AgentLauncher.Activity> = []
  for (const part of listAt(objectAt(json, "message") ?? {}, "content")) {
    const id = textAt(part, "tool_use_id")
    if (part["type"] !== "tool_result" || id === null) continue
    const step = toolEnded(next, id)
    next = step.state
    activity.push(...step.activity)
  }
  return { state: next, activity }
}

const started = (state: State, id: string, tool: string): Protocol.Step<State> => ({
  state: { ...state, tools: Protocol.withTool(state.tools, id, tool) },
  activity: [{ _tag: "ToolStarted", id, tool }]
})

const toolEnded = (state: State, id: string): Protocol.Step<State> => {
  const tool = state.tools.get(id)
  if (tool === undefined) return Protocol.quietly(state)
  return {
    state: { ...state, tools: Protocol.withoutTool(state.tools, id) },
    activity: [{ _tag: "ToolEnded", id, tool }]
  }
}

const limit = (state: State, json: Protocol.Json): State => {
  const info = objectAt(json, "rate_limit_info") ?? {}
  // Only a rejection is a limit: the other fields tell lasting properties of the account.
  if (info["status"] !== "rejected") return state
  return {
    ...state,
    limit: { resetAt: ResetTime.fromEpochSeconds(info["resetsAt"]), type: textAt(info, "rateLimitType") }
  }
}

const result = (state: State, json: Protocol.Json, line: string): State => {
  const since = objectAt(json, "model_usage_since_last_result")
  const turns = amountAt(json, "num_turns")
  return {
    ...state,
    sessionId: textAt(json, "session_id") ?? state.sessionId,
    result: json,
    raw: line,
    usage: Protocol.addUsage(state.usage, since === null ? resultUsage(json) : modelUsage(since)),
    costUsd: since === null ? state.costUsd : (state.costUsd ?? 0) + costOf(since),
    turns: turns === null ? state.turns : (state.turns ?? 0) + turns
  }
}

const resultUsage = (json: Protocol.Json): Usage.Usage | null => {
  const usage = objectAt(json, "usage")
  if (usage === null) return null
  return {
    ...answerUsage(usage),
    output: amountAt(usage, "output_tokens"),
    reasoning: amountAt(objectAt(usage, "output_tokens_details") ?? {}, "thinking_tokens")
  }
}

/** Unlike `usage` this includes what was used beside the conversation, as for a compaction. */
const modelUsage = (models: Protocol.Json): Usage.Usage => {
  let sum: Usage.Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }
  for (const name of Object.keys(models)) {
    const model = objectAt(models, name) ?? {}
    sum =
      Protocol.addUsage(sum, {
        input: amountAt(model, "inputTokens"),
        output: amountAt(model, "outputTokens"),
        cacheRead: amountAt(model, "cacheReadInputTokens"),
        cacheWrite: amountAt(model, "cacheCreationInputTokens"),
        reasoning: amountAt(model, "thinkingTokens")
      }) ?? sum
  }
  return sum
}

const costOf = (models: Protocol.Json): number =>
  Object.keys(models).reduce((sum, name) => sum + (amountAt(objectAt(models, name) ?? {}, "costUSD") ?? 0), 0)

const resultOf = (state: State, exit: Protocol.Exit): AgentLauncher.AgentResult => {
  const json = state.result ?? Protocol.parseObject(exit.stdout) ?? {}
  const ofAttempt = state.costUsd !== null
  return {
    text: textAt(json, "result") ?? "",
    sessionId: state.sessionId,
    usage: state.usage,
    costUsd: state.costUsd ?? amountAt(json, "total_cost_usd"),
    turns: state.turns,
    model: state.model,
    counters: { usage: "attempt", cost: ofAttempt || costOfProcess(state.version) ? "attempt" : "session" }
  }
}

/** An unknown version is taken for a new one: of the two mistakes a share too small is the one that can be seen. */
const costOfProcess = (version: string | null): boolean => {
  if (version === null) return false
  const parts = version.split(".").map(Number)
  for (const [index, part] of costOfSessionSince.entries()) {
    const own = parts[index] ?? 0
    if (own !== part) return own < part
  }
  return false
}
