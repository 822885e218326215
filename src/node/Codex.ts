/**
 * Codex, run headless: `codex exec --json`.
 *
 * Its output says only in words why a turn failed. The machine-readable reason, the reset time and the usage of a failed
 * turn are in the thread's own file under `$CODEX_HOME/sessions`; they are used when the file is there.
 */
import { Effect, type Layer } from "effect"
import type { AgentLauncher } from "shiftboss"
import { ResetTime, type Usage } from "shiftboss"
import { endingOf, retryFailure } from "./internal/codexEndings.ts"
import { readTail } from "./internal/codexThread.ts"
import * as ProcessLauncher from "./ProcessLauncher.ts"
import * as Protocol from "./Protocol.ts"
import { amountAt, numberAt, objectAt, textAt } from "./Protocol.ts"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

export interface Options {
  /** The program. Default `codex`. */
  readonly command?: string | undefined
  /** More arguments, such as `["--sandbox", "workspace-write"]`. They are given on every resume again. */
  readonly arguments?: ReadonlyArray<string> | undefined
  /** The model of attempts that name none. Default: Codex's own. */
  readonly model?: string | undefined
}

/** What has been read of one attempt. */
export interface State {
  /** The thread that was to be resumed. */
  readonly asked: string | null
  readonly threadId: string | null
  /** The last message of the agent. */
  readonly text: string
  readonly end: "completed" | "failed" | null
  readonly message: string | null
  readonly raw: string | null
  /** Of the whole thread. */
  readonly usage: Usage.Usage | null
  readonly file: ThreadFile
}

/** What the thread's own file tells of this attempt. */
export interface ThreadFile {
  readonly reason: string | null
  readonly status: number | null
  readonly aborted: boolean
  readonly resetAt: number | null
  readonly usage: Usage.Usage | null
  readonly model: string | null
}

// -----------------------------------------------------------------------------
// Protocol
// -----------------------------------------------------------------------------

/**
 * How Codex is called and read.
 *
 * **Gotchas**
 *
 * Codex names its threads itself: the id of a new session is the one of the activity `SessionSeen`. It knows neither a
 * budget nor a limit of turns. Without arguments that say otherwise its sandbox is read-only.
 */
export const protocol = (options: Options = {}): Protocol.Protocol<State> => ({
  name: "codex",
  output: "lines",
  inherit: ["CODEX_API_KEY", "CODEX_HOME", "OPENAI_API_KEY"],
  command: (attempt) => {
    const { session } = attempt
    const byArgument = Protocol.fitsArgument(attempt.prompt)
    const model = attempt.model ?? options.model
    const refusal = Protocol.refusalByUuid("Codex", attempt, model)
    if (refusal !== null) return refusal
    return {
      program: options.command ?? "codex",
      arguments: [
        ...["exec", "--json", "--skip-git-repo-check"],
        ...(model === undefined ? [] : ["--model", model]),
        ...(options.arguments ?? []),
        ...(session._tag === "Resume" ? ["resume", session.id] : []),
        byArgument ? attempt.prompt : "-"
      ],
      ...(byArgument ? {} : { stdin: attempt.prompt })
    }
  },
  initial: ({ session }) => ({
    asked: session._tag === "Resume" ? session.id : null,
    threadId: null,
    text: "",
    end: null,
    message: null,
    raw: null,
    usage: null,
    file: { reason: null, status: null, aborted: false, resetAt: null, usage: null, model: null }
  }),
  read,
  terminal: (state) => state.end !== null,
  consult: Effect.fnUntraced(function* (state: State, left: Protocol.Left) {
    if (state.threadId === null || state.end === "completed") return state
    return withThreadFile(state, yield* readTail(state.threadId, left.env), left.startedAt)
  }),
  ending: (state, exit) => endingOf(state, resultOf(state), exit)
})

/** Launches Codex. */
export const layer = (options?: Options & ProcessLauncher.Options): Layer.Layer<AgentLauncher.AgentLauncher> =>
  ProcessLauncher.layer(protocol(options), options)

/**
 * Adds what the lines of the thread's own file say. Lines written before `startedAt` (epoch milliseconds) are of earlier
 * attempts in the same thread.
 */
export const withThreadFile = (state: State, lines: ReadonlyArray<string>, startedAt: number): State => {
  let file = state.file
  for (const line of lines) {
    const json = Protocol.parseObject(line)
    const payload = json === null ? null : objectAt(json, "payload")
    if (json === null || payload === null) continue
    // A file written by a version without timestamps is taken as a whole.
    if (Date.parse(textAt(json, "timestamp") ?? "") < startedAt) continue
    file = json["type"] === "turn_context" ? { ...file, model: textAt(payload, "model") } : fromEvent(file, payload)
  }
  return { ...state, file }
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const read = (state: State, json: Protocol.Json, line: string): Protocol.Step<State> => {
  const type = json["type"]
  switch (type) {
    case "thread.started": {
      const threadId = textAt(json, "thread_id")
      if (threadId === null) return Protocol.quietly(state)
      return { state: { ...state, threadId }, activity: [{ _tag: "SessionSeen", id: threadId }] }
    }
    case "item.started":
    case "item.completed":
      return item(state, objectAt(json, "item") ?? {}, type === "item.completed")
    case "error": {
      // Not the end: it says so again as `turn.failed` when it is.
      const message = textAt(json, "message") ?? ""
      if (!message.startsWith("Reconnecting...")) return Protocol.quietly(state)
      return { state, activity: [{ _tag: "AgentRetry", failure: retryFailure(message, line), delayMillis: null }] }
    }
    case "turn.completed":
      return Protocol.quietly({
        ...state,
        end: "completed",
        message: null,
        raw: line,
        usage: usageOf(objectAt(json, "usage"))
      })
    case "turn.failed":
      return Protocol.quietly({
        ...state,
        end: "failed",
        message: textAt(objectAt(json, "error") ?? {}, "message"),
        raw: line
      })
    default:
      return Protocol.quietly(state)
  }
}

const noTools = new Set(["agent_message", "reasoning", "todo_list", "error"])

const item = (state: State, json: Protocol.Json, completed: boolean): Protocol.Step<State> => {
  const type = textAt(json, "type") ?? "item"
  if (type === "agent_message" && completed) {
    const text = textAt(json, "text") ?? ""
    return { state: { ...state, text }, activity: [{ _tag: "Text", text }] }
  }
  const id = noTools.has(type) ? null : textAt(json, "id")
  if (id === null) return Protocol.quietly(state)
  return { state, activity: [{ _tag: completed ? "ToolEnded" : "ToolStarted", id, tool: type }] }
}

const fromEvent = (file: ThreadFile, payload: Protocol.Json): ThreadFile => {
  switch (payload["type"]) {
    case "task_complete": {
      const info = objectAt(payload, "error")?.["codex_error_info"]
      if (typeof info === "string") return { ...file, reason: info, status: null }
      const [reason, details] = Object.entries(typeof info === "object" && info !== null ? info : {})[0] ?? [null, null]
      return { ...file, reason, status: reason === null ? null : statusOf(details) }
    }
    case "turn_aborted":
      return { ...file, aborted: true }
    case "token_count":
      return {
        ...file,
        usage: usageOf(objectAt(objectAt(payload, "info") ?? {}, "total_token_usage")) ?? file.usage,
        resetAt: resetOf(objectAt(payload, "rate_limits")) ?? file.resetAt
      }
    default:
      return file
  }
}

const statusOf = (details: unknown): number | null =>
  typeof details === "object" && details !== null && "http_status_code" in details
    ? Number(details.http_status_code) || null
    : null

/** The window that is used up decides; when none says so, the primary one. */
const resetOf = (limits: Protocol.Json | null): number | null => {
  const windows = ["primary", "secondary"]
    .map((name) => (limits === null ? null : objectAt(limits, name)))
    .filter((window) => window !== null)
  const used = windows.filter((window) => (numberAt(window, "used_percent") ?? 0) >= 100)
  const resets = (used.length > 0 ? used : windows.slice(0, 1)).map((window) =>
    ResetTime.fromEpochSeconds(window["resets_at"])
  )
  const known = resets.filter((reset) => reset !== null)
  return known.length === 0 ? null : Math.max(...known)
}

const usageOf = (json: Protocol.Json | null): Usage.Usage | null => {
  if (json === null) return null
  const input = amountAt(json, "input_tokens")
  const output = amountAt(json, "output_tokens")
  // A thread that ran out of its context has its counters set to zero: they then say nothing.
  if (input === 0 && output === 0) return null
  const cacheRead = amountAt(json, "cached_input_tokens")
  const cacheWrite = amountAt(json, "cache_write_input_tokens")
  return {
    input: input === null ? null : Math.max(0, input - (cacheRead ?? 0) - (cacheWrite ?? 0)),
    output,
    cacheRead,
    cacheWrite,
    reasoning: amountAt(json, "reasoning_output_tokens")
  }
}

const resultOf = (state: State): AgentLauncher.AgentResult =>
  Protocol.known({
    text: state.text,
    sessionId: state.threadId,
    usage: state.usage ?? state.file.usage,
    model: state.file.model,
    counters: { usage: "session", cost: "attempt" }
  })
