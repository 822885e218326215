/**
 * What an agent printed, made fit to be shown and kept: without secrets, without what a terminal would obey, and of a size
 * that a log bears.
 */
import { AgentLauncher, Failure } from "shiftboss"
import type * as Protocol from "../Protocol.ts"

type Redact = (text: string) => string

/** The activity as it may be told; null when nothing of it may. */
export const presentable = (activity: AgentLauncher.Activity, redact: Redact): AgentLauncher.Activity | null => {
  switch (activity._tag) {
    case "Text":
      return { ...activity, text: cutTo(shownCharacters, redact(activity.text)) }
    case "AgentRetry":
      return { ...activity, failure: presentableFailure(activity.failure, redact) }
    case "Drift":
      return { ...activity, raw: cutTo(rawCharacters, redact(activity.raw)) }
    case "SessionSeen":
      return isSessionId(activity.id) ? activity : null
    case "ToolStarted":
    case "ToolEnded":
      return { ...activity, id: name(activity.id, redact), tool: name(activity.tool, redact) }
    default:
      return activity
  }
}

export const presentableReading = ({ ending, known, rule }: Protocol.Reading, redact: Redact): Protocol.Reading => {
  const result = ending.result === undefined ? undefined : presentableResult(ending.result, redact)
  return {
    ending:
      ending._tag === "Failed"
        ? AgentLauncher.failed(presentableFailure(ending.failure, redact), result)
        : { ...ending, result: result ?? ending.result },
    known: presentableResult(known, redact),
    rule
  }
}

/** A text in parts that are each short enough to be shown, cut at the ends of lines where there are any. */
export const partsOf = (text: string): ReadonlyArray<string> => {
  const parts: Array<string> = []
  for (let from = 0; from < text.length;) {
    const line = text.lastIndexOf("\n", from + shownCharacters - 1) + 1
    const to = from + shownCharacters >= text.length ? text.length : line > from ? line : from + shownCharacters
    const end = text[to - 1] === "\n" ? to - 1 : to
    if (end > from) parts.push(text.slice(from, end))
    from = to
  }
  return parts
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const detailCharacters = 400
const rawCharacters = 4096
const nameCharacters = 200
/** Text of activities is for looking at, and kept for those who come late: not all of it. */
const shownCharacters = 8192

const presentableResult = (result: AgentLauncher.AgentResult, redact: Redact): AgentLauncher.AgentResult => ({
  ...result,
  text: redact(result.text),
  sessionId: result.sessionId !== null && isSessionId(result.sessionId) ? result.sessionId : null,
  model: result.model === null ? null : name(result.model, redact)
})

const presentableFailure = (failure: Failure.Failure, redact: Redact): Failure.Failure =>
  Failure.make(failure.kind, cutTo(detailCharacters, redact(plain(failure.detail))), {
    scope: failure.scope,
    raw: failure.raw === null ? null : cutTo(rawCharacters, redact(failure.raw)),
    resetAt: failure.resetAt
  })

/** What a session is resumed by has to be what the agent said, or nothing: it is journaled, and given to commands. */
const isSessionId = (id: string): boolean => /^[^\s\p{C}-][^\s\p{C}]{0,199}$/u.test(id)

const name = (text: string, redact: Redact): string => cutTo(nameCharacters, redact(text))

/** Escape sequences of terminals (ECMA-48), and control characters other than tab and newline. */
const controls =
  // oxlint-disable-next-line no-control-regex
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -~])|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

const plain = (text: string): string => text.replace(controls, "")

/** A copy, so that the rest of the text is not kept with it. Cut only when the secrets are out: half of one is one too. */
const cutTo = (characters: number, text: string): string =>
  Buffer.from(
    text.length <= characters ? text : `${text.slice(0, characters)} … (${text.length} characters)`
  ).toString()
