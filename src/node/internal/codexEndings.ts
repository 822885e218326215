/**
 * Which ending the words of Codex mean, and the reason in the thread's own file where there is one.
 */
import type { AgentLauncher } from "shiftboss"
import { Failure, ResetTime } from "shiftboss"
import type { State, ThreadFile } from "../Codex.ts"
import * as Protocol from "../Protocol.ts"
import { objectAt, textAt } from "../Protocol.ts"

/** The failure that a `Reconnecting...` line is about: it stands in brackets. */
export const retryFailure = (message: string, line: string): Failure.Failure => {
  const whole = message.trimEnd()
  const about = whole.endsWith(")") && whole.includes("(") ? whole.slice(whole.indexOf("(") + 1, -1) : message
  const [, kind] = byMessage(about) ?? ["", "Network"]
  return Failure.make(kind, Protocol.sentence(message), { raw: line })
}

export const endingOf = (state: State, result: AgentLauncher.AgentResult, exit: Protocol.Exit): Protocol.Reading => {
  if (state.asked !== null && state.threadId !== null && state.asked !== state.threadId) {
    const detail = `Codex was to resume the thread ${state.asked} and began the new thread ${state.threadId}`
    return Protocol.failed("codex/other-thread", Failure.make("SessionLost", detail), result)
  }
  if (state.end === "completed") return Protocol.succeeded("codex/completed", result)
  if (state.end === null) return withoutEnd(state, result, exit)
  const message = state.message ?? ""
  const [rule, kind] = byReason(state.file, message) ?? byMessage(message) ?? ["unknown-error", "Unknown"]
  const limited = kind === "RateLimited" || kind === "Throttled"
  const failure = Failure.make(kind, Protocol.sentence(bodyMessage(message) ?? message) || "Codex gave no reason", {
    raw: state.raw,
    resetAt: limited ? (state.file.resetAt ?? ResetTime.fromText(Protocol.searched(message), exit.printed)) : null
  })
  return Protocol.failed(`codex/${rule}`, failure, result)
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

type Found = readonly [rule: string, kind: Failure.FailureKind]

const byReason = (file: ThreadFile, message: string): Found | null => {
  switch (file.reason) {
    case "server_overloaded":
    case "internal_server_error":
      return ["overloaded", "Capacity"]
    case "usage_limit_exceeded":
      // The same reason stands for a used-up limit and for a plan that does not pay for it.
      return billing.test(message) ? ["billing", "Billing"] : ["usage-limit", "RateLimited"]
    case "rate_limit_exceeded":
      return ["rate-limit", "Throttled"]
    case "model_not_found":
      return ["model", "ModelUnavailable"]
    case "context_window_exceeded":
      return ["context-window", "ContextOverflow"]
    case "cyber_policy":
    case "invalid_prompt":
      return ["refused", "Refused"]
    default:
      return file.status === null ? null : byStatus(file.status)
  }
}

const billing = /^Quota exceeded|^To use Codex with your ChatGPT plan/

const patterns: ReadonlyArray<readonly [RegExp, string, Failure.FailureKind]> = [
  [billing, "billing", "Billing"],
  [/hit your usage limit|usage limit has been reached/, "usage-limit", "RateLimited"],
  [/rate limit (?:exceeded|reached)/i, "rate-limit", "Throttled"],
  [/model is at capacity|experiencing high demand/, "overloaded", "Capacity"],
  [/ran out of room in the model's context window/, "context-window", "ContextOverflow"],
  [/^Missing environment variable/, "key-missing", "Auth"],
  [/token could not be refreshed|log out and sign in again/i, "signed-out", "Auth"],
  // A history that the server takes no more: a call without its output, or reasoning of another model.
  [/No tool (?:output|call) found for|invalid_encrypted_content/, "session-poisoned", "SessionPoisoned"],
  [/reason: max_output_tokens/, "max-output", "OutputLimit"],
  [/reason: content_filter|request was flagged|flagged for/, "refused", "Refused"],
  [/[Mm]odel .*(?:does not exist|is not supported|not found)/, "model", "ModelUnavailable"],
  [/An error occurred while processing your request/, "server-error", "ServerError"],
  [/error sending request|waiting for network|Connection failed/, "connection-failed", "Network"],
  [
    /stream closed before response\.completed|idle timeout waiting for SSE|Transport error|error decoding/,
    "stream-cut",
    "StreamCut"
  ],
  [/^stream disconnected before completion/, "stream-cut", "StreamCut"]
]

const byMessage = (message: string): Found | null => {
  const text = Protocol.searched(message)
  for (const [pattern, rule, kind] of patterns) {
    if (pattern.test(text)) return [rule, kind]
  }
  const status = /(?:unexpected|last) status:? (\d{3})/.exec(text)?.[1]
  if (status !== undefined) return byStatus(Number(status))
  return bodyMessage(message) === null ? null : ["request-rejected", "Config"]
}

/** A request that the server rejects in a way Codex does not know: the message is the body of the answer. */
const bodyMessage = (message: string): string | null => {
  const body = Protocol.parseObject(message)
  return body === null ? null : textAt(objectAt(body, "error") ?? {}, "message")
}

const byStatus = (status: number): Found | null => {
  const rule = `status-${status}`
  if (status === 503 || status === 529) return [rule, "Capacity"]
  if (status >= 500) return [rule, "ServerError"]
  if (status === 429) return [rule, "RateLimited"]
  if (status === 401 || status === 403) return [rule, "Auth"]
  if (status === 402) return [rule, "Billing"]
  if (status === 413) return [rule, "ContextOverflow"]
  return status >= 400 ? [rule, "Config"] : null
}

const withoutEnd = (state: State, seen: AgentLauncher.AgentResult, exit: Protocol.Exit): Protocol.Reading => {
  const stderr = exit.stderr
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("Reading "))
    .join("\n")
  const ended = (rule: string, kind: Failure.FailureKind, detail: string) =>
    Protocol.ended(`codex/${rule}`, Failure.make(kind, detail, { raw: Protocol.lastLines(stderr) }), seen)
  if (state.file.aborted) return ended("aborted", "Interrupted", "Codex was interrupted")
  if (state.threadId !== null || Protocol.wasSignalled(exit)) {
    return ended("interrupted", "Interrupted", `Codex ${Protocol.exitText(exit)} before the end of its turn`)
  }
  const said = Protocol.sentence(stderr)
  if (/no rollout found for thread id/.test(stderr)) return ended("session-lost", "SessionLost", said)
  if (/^error: |Not inside a trusted directory|No prompt provided/m.test(stderr))
    return ended("usage-error", "Config", said)
  return ended("unknown-start", "Unknown", said || `Codex ${Protocol.exitText(exit)} and printed nothing`)
}
