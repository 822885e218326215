/**
 * Gemini CLI, run headless: `gemini -p … -o stream-json`.
 *
 * Its exit code is the HTTP status modulo 256 where an API error ended it, and 0 for several endings that are no
 * success. Tools of it may outlive a polite stop; the launcher takes them down.
 */
import type { Layer } from "effect"
import type { AgentLauncher } from "shiftboss"
import { endingOf } from "./internal/geminiEndings.ts"
import * as ProcessLauncher from "./ProcessLauncher.ts"
import * as Protocol from "./Protocol.ts"
import { objectAt, textAt } from "./Protocol.ts"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

export interface Options {
  /** The program. Default `gemini`. */
  readonly command?: string | undefined
  /** More arguments, such as `["--approval-mode", "yolo"]`. They are given on every resume again. */
  readonly arguments?: ReadonlyArray<string> | undefined
  /** The model of attempts that name none. Default: Gemini CLI's own. */
  readonly model?: string | undefined
}

/** What has been read of one attempt. */
export interface State {
  readonly sessionId: string | null
  /** The session can be resumed. */
  readonly kept: boolean
  readonly model: string | null
  /** What the agent said since its last tool call. */
  readonly text: string
  readonly result: Protocol.Json | null
  readonly raw: string | null
  /** The last `error` line: some turns that failed have no other sign of it. */
  readonly error: { readonly severity: string | null; readonly message: string } | null
  readonly tools: ReadonlyMap<string, string>
}

// -----------------------------------------------------------------------------
// Protocol
// -----------------------------------------------------------------------------

/**
 * How Gemini CLI is called and read. It knows no budget, and resumes a session only in the folder it began in.
 *
 * **Gotchas**
 *
 * When the first request of a session fails, it takes the prompt back and the session is lost. So a new session is told of
 * (`SessionSeen`) only when the model has answered: with a tool call, or to the end.
 */
export const protocol = (options: Options = {}): Protocol.Protocol<State> => ({
  name: "gemini",
  output: "lines",
  inherit: [
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GENAI_USE_VERTEXAI"
  ],
  command: (attempt) => {
    const { prompt, model = options.model, session } = attempt
    const byArgument = Protocol.fitsArgument(prompt)
    const refusal = Protocol.refusalByUuid("Gemini CLI", attempt, model)
    if (refusal !== null) return refusal
    return {
      program: options.command ?? "gemini",
      arguments: [
        ...["-o", "stream-json"],
        ...(session._tag === "New" ? ["--session-id", session.id] : ["--resume", session.id]),
        ...(model === undefined ? [] : ["-m", model]),
        ...(options.arguments ?? []),
        ...(byArgument ? ["-p", prompt] : [])
      ],
      ...(byArgument ? {} : { stdin: prompt }),
      // Without it the program is a launcher that swallows every signal and leaves the real one running.
      env: { GEMINI_CLI_NO_RELAUNCH: "true" }
    }
  },
  initial: ({ session }) => ({
    sessionId: null,
    kept: session._tag === "Resume",
    model: null,
    text: "",
    result: null,
    raw: null,
    error: null,
    tools: new Map()
  }),
  read,
  terminal: (state) => state.result !== null,
  ending: (state, exit) => endingOf(state, exit)
})

/** Launches Gemini CLI. */
export const layer = (options?: Options & ProcessLauncher.Options): Layer.Layer<AgentLauncher.AgentLauncher> =>
  ProcessLauncher.layer(protocol(options), options)

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

/** An answer comes in any number of pieces. Of a longer one the end counts. */
const mostText = 8 * 1024 * 1024

/** Cut only now and then: each cut copies all of it. */
const endOf = (text: string): string => (text.length > 2 * mostText ? text.slice(-mostText) : text)

const nowKept = ({ kept, sessionId }: State): ReadonlyArray<AgentLauncher.Activity> =>
  kept || sessionId === null ? [] : [{ _tag: "SessionSeen", id: sessionId }]

const read = (state: State, json: Protocol.Json, line: string): Protocol.Step<State> => {
  switch (json["type"]) {
    case "init": {
      const sessionId = textAt(json, "session_id")
      const next = { ...state, sessionId, model: textAt(json, "model") }
      return { state: next, activity: state.kept && sessionId !== null ? [{ _tag: "SessionSeen", id: sessionId }] : [] }
    }
    case "message": {
      const text = textAt(json, "content") ?? ""
      if (json["role"] !== "assistant" || text === "") return Protocol.quietly(state)
      // It got over an error that it told before.
      const error = state.error?.severity === "error" ? null : state.error
      return { state: { ...state, error, text: endOf(state.text + text) }, activity: [{ _tag: "Text", text }] }
    }
    case "tool_use": {
      const id = textAt(json, "tool_id") ?? ""
      const tool = textAt(json, "tool_name") ?? "tool"
      return {
        state: { ...state, kept: true, text: "", tools: Protocol.withTool(state.tools, id, tool) },
        activity: [...nowKept(state), { _tag: "ToolStarted", id, tool }]
      }
    }
    case "tool_result": {
      const id = textAt(json, "tool_id") ?? ""
      const tool = state.tools.get(id) ?? "tool"
      return {
        state: { ...state, tools: Protocol.withoutTool(state.tools, id) },
        activity: [{ _tag: "ToolEnded", id, tool }]
      }
    }
    case "error":
      return Protocol.quietly({
        ...state,
        error: { severity: textAt(json, "severity"), message: textAt(json, "message") ?? "" },
        raw: line
      })
    case "result": {
      // The line of the error says more than a result without a reason.
      const raw = state.raw !== null && objectAt(json, "error") === null ? state.raw : line
      const next = { ...state, result: json, raw }
      return json["status"] === "success"
        ? { state: { ...next, kept: true }, activity: nowKept(state) }
        : Protocol.quietly(next)
    }
    default:
      return Protocol.quietly(state)
  }
}
