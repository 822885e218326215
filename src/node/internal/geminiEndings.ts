/**
 * Which ending the result, the error lines and the exit code of Gemini CLI mean.
 */
import { AgentLauncher, Failure, ResetTime, type Usage } from "shiftboss"
import type { State } from "../Gemini.ts"
import * as Protocol from "../Protocol.ts"
import { amountAt, numberAt, objectAt, textAt } from "../Protocol.ts"

export const endingOf = (state: State, exit: Protocol.Exit): Protocol.Reading => {
  const result = resultOf(state)
  if (state.result === null) return withoutResult(result, exit)
  const error = objectAt(state.result, "error")
  if (state.result["status"] === "success") return success(state, result)
  const message = error === null ? (state.error?.message ?? "") : (textAt(error, "message") ?? "")
  const [rule, kind, more] = error === null ? brokenAnswer(message) : errorOf(message, textAt(error, "type"), exit)
  const failure = Failure.make(kind, detailOf(message) || "Gemini CLI gave no reason", { raw: state.raw, ...more })
  const reading = Protocol.failed(`gemini/${rule}`, failure, result)
  // The id was told, and there is nothing to go on with under it.
  return state.kept ? reading : { ...reading, ending: AgentLauncher.failed(failure, { ...result, sessionId: null }) }
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

type Found = readonly [
  rule: string,
  kind: Failure.FailureKind,
  more?: { readonly scope?: Failure.FailureScope; readonly resetAt?: number | null }
]

const resultOf = (state: State): AgentLauncher.AgentResult => {
  const stats = state.result === null ? null : objectAt(state.result, "stats")
  return Protocol.known({
    text: state.text,
    sessionId: state.sessionId,
    usage: stats === null ? null : usageOf(stats),
    model: state.model
  })
}

/** The usage in the `stats` of a result, of this process. */
const usageOf = (stats: Protocol.Json): Usage.Usage => {
  const prompt = amountAt(stats, "input_tokens")
  const cached = amountAt(stats, "cached")
  const total = amountAt(stats, "total_tokens")
  return {
    input: prompt === null ? null : Math.max(0, prompt - (cached ?? 0)),
    // The count of answer tokens leaves out the reasoning, the total does not.
    output: total === null || prompt === null ? amountAt(stats, "output_tokens") : Math.max(0, total - prompt),
    cacheRead: cached,
    cacheWrite: null,
    reasoning: null
  }
}

/** A turn that the loop detection stopped is printed as a success, with a warning before it. */
const success = (state: State, result: AgentLauncher.AgentResult): Protocol.Reading => {
  const message = state.error?.message ?? ""
  if (message.startsWith("Loop detected")) {
    return Protocol.failed("gemini/loop", Failure.make("TurnLimit", message, { raw: state.raw }), result)
  }
  if (state.error?.severity === "error") {
    const [rule, kind] = brokenAnswer(message)
    return Protocol.failed(`gemini/${rule}`, Failure.make(kind, Protocol.sentence(message), { raw: state.raw }), result)
  }
  return Protocol.succeeded("gemini/success", result)
}

/** The model answered, and the answer was no good: the exit code is 0 and the result has no reason. */
const brokenAnswer = (message: string): Found => {
  if (/blocked|safety|prohibited/i.test(message)) return ["refused", "Refused"]
  if (/without a finish reason/.test(message)) return ["stream-cut", "StreamCut"]
  if (/malformed function call|empty response/.test(message)) return ["broken-answer", "ServerError"]
  return ["unknown-error", "Unknown"]
}

const errorOf = (message: string, type: string | null, exit: Protocol.Exit): Found => {
  if (type === "FatalTurnLimitedError" || exit.code === 53) return ["max-turns", "TurnLimit"]
  const status = statusOf(message, exit)
  if (status !== null) return byStatus(status, message, exit)
  if (/exhausted|exceeded your current quota/.test(message)) return byStatus(429, message, exit)
  if (/model is overloaded/.test(message)) return byStatus(503, message, exit)
  if (/is not found for API version/.test(message)) return ["model", "ModelUnavailable"]
  if (/fetch failed/.test(message)) return ["connection-failed", "Network"]
  if (/\bterminated\b|Incomplete JSON segment/.test(message)) return ["stream-cut", "StreamCut"]
  return ["unknown-error", "Unknown"]
}

/** Without the wrapping, and of a body of the server only its message. */
const detailOf = (message: string): string => {
  const inner = /^\[API Error: (.*?)\]?$/s.exec(message.trim())?.[1] ?? message
  const body = objectAt(Protocol.parseObject(inner) ?? {}, "error")
  return Protocol.sentence((body === null ? null : textAt(body, "message")) ?? inner)
}

const statusOf = (message: string, exit: Protocol.Exit): number | null => {
  const [from, to] = [message.indexOf("{"), message.lastIndexOf("}") + 1]
  const body = from < 0 || to <= from ? undefined : message.slice(from, to)
  const code = body === undefined ? null : numberAt(objectAt(Protocol.parseObject(body) ?? {}, "error") ?? {}, "code")
  if (code !== null) return code
  // An exit code has only eight bits: 400 is 144, 503 is 247.
  return exit.code !== null && exit.code >= 144 ? exit.code + 256 : null
}

/** A limit that is over so soon is a matter of speed, not of a quota. */
const throttledMillis = 5 * 60_000

const byStatus = (status: number, message: string, exit: Protocol.Exit): Found => {
  if (status === 429) {
    // The time that the server gave is printed on stderr alone when Gemini CLI does not mean to wait for it.
    const { now } = exit.printed
    const resetAt =
      ResetTime.fromText(Protocol.searched(message), exit.printed) ?? ResetTime.fromText(exit.stderr, exit.printed)
    if (resetAt !== null && resetAt - now <= throttledMillis) return ["throttled", "Throttled", { resetAt }]
    const scope = /on this model/.test(message) ? "model" : "account"
    return ["quota", "RateLimited", { scope, resetAt }]
  }
  if (status === 503) return ["overloaded", "Capacity"]
  if (status >= 500) return [`status-${status}`, "ServerError"]
  if (status === 401 || status === 403 || /API_KEY_INVALID|API key not valid/.test(message))
    return ["authentication", "Auth"]
  if (status === 413 || /exceeds the maximum number of tokens/.test(message))
    return ["context-window", "ContextOverflow"]
  // A history that no request can mend: a call whose answer is missing.
  if (/function response parts|function call turn comes/.test(message)) return ["session-poisoned", "SessionPoisoned"]
  if (status === 404) return ["model", "ModelUnavailable"]
  if (status === 402) return ["billing", "Billing"]
  return ["request-rejected", "Config"]
}

const exitCodes: { readonly [code: number]: readonly [rule: string, kind: Failure.FailureKind] } = {
  41: ["key-missing", "Auth"],
  52: ["settings", "Config"],
  53: ["max-turns", "TurnLimit"],
  55: ["folder-not-trusted", "Config"]
}

const withoutResult = (seen: AgentLauncher.AgentResult, exit: Protocol.Exit): Protocol.Reading => {
  const whole = Protocol.parseObject(exit.stdout)
  if (whole !== null && textAt(whole, "response") !== null) {
    return Protocol.succeeded("gemini/success", wholeResult(whole, seen))
  }
  const stderr = exit.stderr.trim()
  const last = Protocol.parseObject(/(?:^|\n)(\{\n(?:(?!\n\{\n).)*\n\})$/s.exec(stderr)?.[1] ?? "")
  const message = (last === null ? null : textAt(objectAt(last, "error") ?? {}, "message")) ?? lastLine(stderr)
  const ended = ([rule, kind, more]: Found, detail = detailOf(message)) =>
    Protocol.ended(
      `gemini/${rule}`,
      Failure.make(kind, detail, { raw: Protocol.lastLines(message), ...more }),
      last === null ? seen : { ...seen, sessionId: textAt(last, "session_id") ?? seen.sessionId }
    )
  if (Protocol.wasSignalled(exit) || (exit.code === 0 && last === null)) {
    return ended(["interrupted", "Interrupted"], `Gemini CLI ${Protocol.exitText(exit)} before its result`)
  }
  if (exit.code === 42) return ended(badInput(message))
  const byCode = exitCodes[exit.code ?? -1]
  if (byCode !== undefined) return ended(byCode)
  const status = statusOf(message, exit) ?? (Number(/(?:^|\n)\s*status: (\d{3})\n\}/.exec(stderr)?.[1] ?? 0) || null)
  if (status !== null) return ended(byStatus(status, message, exit))
  return ended(
    ["unknown-start", "Unknown"],
    Protocol.sentence(message) || `Gemini CLI ${Protocol.exitText(exit)} and printed nothing`
  )
}

const badInput = (message: string): Found => {
  if (/Error resuming session/.test(message)) return ["session-lost", "SessionLost"]
  if (/session.*already/i.test(message)) return ["session-busy", "SessionBusy"]
  return ["usage-error", "Config"]
}

const lastLine = (text: string): string =>
  text
    .split("\n")
    .findLast((line) => line.trim() !== "")
    ?.trim() ?? ""

/** With `-o json` the whole output is one object. */
const wholeResult = (json: Protocol.Json, seen: AgentLauncher.AgentResult): AgentLauncher.AgentResult => {
  const models = objectAt(objectAt(json, "stats") ?? {}, "models") ?? {}
  let usage: Usage.Usage | null = null
  for (const name of Object.keys(models)) {
    const tokens = objectAt(objectAt(models, name) ?? {}, "tokens") ?? {}
    const prompt = amountAt(tokens, "prompt")
    const total = amountAt(tokens, "total")
    const cached = amountAt(tokens, "cached")
    usage = Protocol.addUsage(usage, {
      input: prompt === null ? null : Math.max(0, prompt - (cached ?? 0)),
      output: total === null || prompt === null ? null : Math.max(0, total - prompt),
      cacheRead: cached,
      cacheWrite: null,
      reasoning: amountAt(tokens, "thoughts")
    })
  }
  const names = Object.keys(models)
  return {
    ...seen,
    text: textAt(json, "response") ?? "",
    sessionId: textAt(json, "session_id"),
    usage,
    model: names.length === 1 ? (names[0] ?? null) : null
  }
}
