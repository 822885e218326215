/**
 * Keeps secrets out of what is kept: the values of the turn's environment, and what looks like a key in a text.
 */
import type { Ending } from "../../AgentLauncher.ts"
import { Failure } from "../../Failure.ts"

/** Shorter values are words that turn up everywhere, such as `true` or `8080`. */
const shortestSecret = 6

const patterns: ReadonlyArray<readonly [RegExp, string]> = [
  [/(:\/\/)[^/\s:@]*:[^/\s@]+@/g, "$1[redacted]@"],
  [/([?&](?:api[-_]?key|key|token|access[-_]token|sig|signature|password|secret)=)[^&\s"']+/gi, "$1[redacted]"],
  [/\b(Bearer\s+)[\w.~+/=-]{8,}/gi, "$1[redacted]"],
  [/\b(?:sk|pk|ghp|gho|ghs|xoxb|xoxp)[-_][\w-]{16,}/g, "[redacted]"],
  [/\bAIza[\w-]{30,}/g, "[redacted]"]
]

export type Redact = (text: string) => string

/** A value as it is, and as it stands in a line of JSON, such as a key of several lines. */
const spellings = (value: string): ReadonlyArray<string> => [...new Set([value, JSON.stringify(value).slice(1, -1)])]

/** Replaces each value of the environment by its name, longest first, and then what looks like a key. */
export const redactor = (env: { readonly [name: string]: string } | undefined): Redact => {
  const values = Object.entries(env ?? {})
    .filter(([, value]) => value.length >= shortestSecret)
    .flatMap(([name, value]) => spellings(value).map((spelling) => [`[${name}]`, spelling] as const))
    .toSorted(([, one], [, other]) => other.length - one.length)
  return (text) => {
    const named = values.reduce((text, [by, value]) => text.replaceAll(value, () => by), text)
    return patterns.reduce((text, [pattern, by]) => text.replace(pattern, by), named)
  }
}

export const redactFailure = (failure: Failure, redact: Redact): Failure =>
  new Failure({
    ...failure,
    detail: redact(failure.detail),
    raw: failure.raw === null ? null : redact(failure.raw)
  })

export const redactEnding = (ending: Ending, redact: Redact): Ending => {
  const result = ending.result && { ...ending.result, text: redact(ending.result.text) }
  if (ending._tag === "Succeeded") return { ...ending, result: { ...ending.result, text: redact(ending.result.text) } }
  const failure = redactFailure(ending.failure, redact)
  return result === undefined ? { _tag: "Failed", failure } : { _tag: "Failed", failure, result }
}
