/**
 * Which ending the fields of Claude Code mean. In the order in which they are looked at; text is matched only where the
 * fields say nothing.
 */
import type { AgentLauncher } from "shiftboss"
import { Failure, ResetTime } from "shiftboss"
import type { State } from "../ClaudeCode.ts"
import * as Protocol from "../Protocol.ts"
import { numberAt, textAt, textsAt } from "../Protocol.ts"

/** The failure that the agent's own retry is about. */
export const retryFailure = (json: Protocol.Json, line: string): Failure.Failure => {
  const status = numberAt(json, "error_status")
  const error = textAt(json, "error")
  const kind = error === "overloaded" ? "Capacity" : (statusKind(status) ?? errorKind(error) ?? "Network")
  const what = status === null ? (error ?? "unknown error") : `${status} ${error ?? ""}`.trim()
  return Failure.make(kind, `Claude Code tries again after: ${what}`, { raw: line })
}

export const endingOf = (state: State, result: AgentLauncher.AgentResult, exit: Protocol.Exit): Protocol.Reading => {
  if (state.result === null) return withoutResult(state, result, exit)
  if (state.result["is_error"] === false) return Protocol.succeeded("claude/success", result)
  const [rule, kind, more] = errorOf(state, Protocol.searched(result.text), exit.printed)
  const message = result.text !== "" ? result.text : errorsOf(state)
  const detail = Protocol.sentence(message) || `Claude Code ended with ${textAt(state.result, "subtype") ?? "an error"}`
  return Protocol.failed(`claude/${rule}`, Failure.make(kind, detail, { raw: state.raw, ...more }), result)
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

type Found = readonly [
  rule: string,
  kind: Failure.FailureKind,
  more?: { readonly scope?: Failure.FailureScope; readonly resetAt?: number | null }
]

const errorOf = (state: State, text: string, printed: ResetTime.Printed): Found => {
  const json = state.result ?? {}
  const reason = textAt(json, "terminal_reason")
  const errors = Protocol.searched(errorsOf(state))
  switch (json["subtype"]) {
    case "error_max_turns":
      return ["max-turns", "TurnLimit"]
    case "error_max_budget_usd":
      return ["max-budget", "BudgetExhausted"]
    case "error_during_execution":
      if (reason?.startsWith("aborted_")) return ["aborted", "Interrupted"]
      if (!state.opened && lostSession.test(errors)) return ["session-lost", "SessionLost"]
  }
  return (
    byApiError(state, text, printed) ??
    byReason(state, reason) ??
    byStatus(state, text) ??
    byText(text || errors, printed) ?? ["unknown-error", "Unknown"]
  )
}

const errorsOf = (state: State): string => textsAt(state.result ?? {}, "errors").join("; ")

const lostSession = /^No conversation found with session ID|--resume requires a valid session ID/

const byApiError = (state: State, text: string, printed: ResetTime.Printed): Found | null => {
  switch (state.result?.["api_error"]) {
    case "usage_limit_reached": {
      const scope = /opus|sonnet|haiku|model/.test(state.limit?.type ?? "") ? "model" : "account"
      return [
        "usage-limit",
        "RateLimited",
        { scope, resetAt: state.limit?.resetAt ?? ResetTime.fromText(text, printed) }
      ]
    }
    case "connection_failed":
      // Once an answer had begun, the server was there: a broken stream, not a broken network.
      return /dropped|ECONNRESET/.test(text) && (state.usage?.input ?? 0) > 0
        ? ["stream-cut", "StreamCut"]
        : ["connection-failed", "Network"]
    case "stream_idle_timeout":
      return ["stream-idle", "StreamCut"]
    case "max_output_tokens":
      return text.includes("context window limit")
        ? ["context-window", "ContextOverflow"]
        : ["max-output", "OutputLimit"]
    default:
      return null
  }
}

const byReason = (state: State, reason: string | null): Found | null => {
  if (reason === "prompt_too_long") return ["prompt-too-long", "ContextOverflow"]
  if (state.result?.["api_error_type"] === "request_too_large") return ["request-too-large", "ContextOverflow"]
  if (state.result?.["stop_reason"] === "refusal") return ["refusal", "Refused"]
  const kind = errorKind(state.error)
  return kind === "Auth" || kind === "Billing" || kind === "ModelUnavailable" ? [kindRules[kind], kind] : null
}

const kindRules = { Auth: "authentication", Billing: "billing", ModelUnavailable: "model" } as const

const byStatus = (state: State, text: string): Found | null => {
  const status = numberAt(state.result ?? {}, "api_error_status")
  const type = state.result?.["api_error_type"]
  if (type === "overloaded_error") return ["overloaded", "Capacity"]
  const kind = statusKind(status)
  if (kind !== null) return [`status-${status}`, kind]
  if (status === null || status < 400) return null
  if (status === 400 && poisoned.test(text)) return ["session-poisoned", "SessionPoisoned"]
  return ["request-rejected", "Config"]
}

/** A history that no model takes any more: thinking of another model, or a tool call without its result. */
const poisoned = /thinking.*block|block.*thinking|signature|tool_use.*tool_result|tool_result.*tool_use/is

const statusKind = (status: number | null): Failure.FailureKind | null => {
  if (status === null) return null
  if (status === 529 || status === 503) return "Capacity"
  if (status >= 500) return "ServerError"
  switch (status) {
    case 429:
      return "RateLimited"
    case 401:
    case 403:
      return "Auth"
    case 402:
      return "Billing"
    case 404:
      return "ModelUnavailable"
    default:
      return null
  }
}

const errorKind = (error: string | null): Failure.FailureKind | null => {
  switch (error) {
    case "authentication_failed":
      return "Auth"
    case "billing_error":
      return "Billing"
    case "model_not_found":
      return "ModelUnavailable"
    case "rate_limit":
      return "RateLimited"
    case "overloaded":
      return "Capacity"
    default:
      return null
  }
}

const byText = (text: string, printed: ResetTime.Printed): Found | null => {
  if (text.startsWith("Request timed out")) return ["request-timed-out", "Network"]
  if (/empty or malformed response/.test(text)) return ["malformed-response", "Network"]
  if (/limit reached\|\d{10}/.test(text)) {
    return ["usage-limit", "RateLimited", { resetAt: ResetTime.fromText(text, printed) }]
  }
  return null
}

/** It printed no result: a start that was refused says why on stderr, everything else was cut short. */
const withoutResult = (state: State, seen: AgentLauncher.AgentResult, exit: Protocol.Exit): Protocol.Reading => {
  // Called for another format it prints its errors as text, some of them on stdout.
  const stderr = exit.stderr.trim() || exit.stdout.trim()
  const raw = Protocol.lastLines(stderr)
  const ended = (rule: string, kind: Failure.FailureKind, detail: string) =>
    Protocol.ended(`claude/${rule}`, Failure.make(kind, detail, { raw }), seen)
  if (!state.opened && exit.code !== 0 && !Protocol.wasSignalled(exit)) {
    const said = Protocol.sentence(stderr)
    if (lostSession.test(stderr)) return ended("session-lost", "SessionLost", said)
    if (/is already in use/.test(stderr)) return ended("session-busy", "SessionBusy", said)
    if (/^Error: Reached max turns/m.test(stderr)) return ended("max-turns", "TurnLimit", said)
    if (
      /^error: (unknown option|option )|^Error: (When using|Input must be|--)|dangerously-skip-permissions/m.test(
        stderr
      )
    ) {
      return ended("usage-error", "Config", said)
    }
    return ended("unknown-start", "Unknown", said || `Claude Code ${Protocol.exitText(exit)} and printed nothing`)
  }
  if (exit.code !== 0 && !Protocol.wasSignalled(exit)) {
    return ended("no-result", "Unknown", `Claude Code ${Protocol.exitText(exit)} without a result`)
  }
  return ended("interrupted", "Interrupted", `Claude Code ${Protocol.exitText(exit)} before its result`)
}
