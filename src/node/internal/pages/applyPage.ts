/**
 * The page of an apply. It says only what is in the log, so that it is the same whenever it is written.
 */
import type { Changes, FileChange } from "./diff.ts"
import type { ApplyOutcome, ApplyPage, Excerpt, RecheckShown, RequestShown, TryShown } from "./fold.ts"
import { cell, code, count, duration, plural, prose, table, time, unknown, verbatim } from "./text.ts"

export const applyPage = (page: ApplyPage): string =>
  [
    `# Apply ${code(page.line.name)}`,
    "",
    ...outcomeLines(page),
    "",
    "## What it took",
    "",
    ...requestLines(page),
    "## What it changed",
    "",
    ...changeLines(page.outcome),
    "## Rechecks",
    "",
    ...recheckLines(page)
  ].join("\n")

// -----------------------------------------------------------------------------
// outcome
// -----------------------------------------------------------------------------

const outcomeLines = ({ endedAt, line, outcome, version }: ApplyPage): ReadonlyArray<string> => [
  `- ${outcomeOf(outcome)}`,
  `- begun ${time(line.startedAt)}${version === null ? "" : ` on version ${code(version)}`}`,
  ...(endedAt === undefined ? [] : [`- ended ${time(endedAt)}, after ${duration(endedAt - line.startedAt)}`])
]

const outcomeOf = (outcome: ApplyOutcome): string => {
  switch (outcome._tag) {
    case "Begun":
      return "begun, and not seen to end"
    case "Skipped":
      return `skipped: ${code(outcome.reason)}`
    case "Failed":
      return `failed, its requests stay pending: ${code(outcome.reason, 1_000)}`
    case "Changed":
      return `changed the system from ${code(outcome.from)} to ${code(outcome.to)}`
  }
}

// -----------------------------------------------------------------------------
// requests
// -----------------------------------------------------------------------------

const requestLines = ({ line, requests }: ApplyPage): ReadonlyArray<string> => [
  `${plural(line.requests, "request")}.`,
  "",
  ...requests.flatMap(requestOf),
  ...(requests.length < line.requests ? [`… and ${count(line.requests - requests.length)} more.`, ""] : [])
]

const requestOf = ({ case: of, id, payload, why }: RequestShown): ReadonlyArray<string> => [
  `### ${why === "repair" ? "Repair" : "Improvement"} for ${code(of)}`,
  "",
  `Request ${code(id)}`,
  "",
  prose(payload.text),
  "",
  ...cutNote(payload)
]

const cutNote = ({ length, text }: Excerpt): ReadonlyArray<string> =>
  text.length === length ? [] : [`Cut: ${count(text.length)} of ${count(length)} characters are shown.`, ""]

// -----------------------------------------------------------------------------
// changes
// -----------------------------------------------------------------------------

const changeLines = (outcome: ApplyOutcome): ReadonlyArray<string> => {
  if (outcome._tag === "Begun") return ["It is not known yet.", ""]
  if (outcome._tag !== "Changed") return ["Nothing.", ""]
  const { changes, patch } = outcome
  if (patch === undefined) return ["It did not say.", ""]
  if (changes === undefined) return [verbatim("text", patch.text), "", ...cutNote(patch)]
  const text = wholeLines(patch)
  return [...fileLines(changes), verbatim("diff", text), "", ...cutNote({ ...patch, text })]
}

const fileLines = (changes: Changes): ReadonlyArray<string> => [
  `${plural(changes.count, "file")}, ${plural(changes.added, "line")} added, ${count(changes.removed)} removed.`,
  "",
  ...table(["file", "how", "added", "removed"], changes.files.map(fileRow)),
  "",
  ...(changes.files.length < changes.count ? [`… and ${count(changes.count - changes.files.length)} more.`, ""] : [])
]

const fileRow = ({ added, from, how, isBinary, path, removed }: FileChange): ReadonlyArray<string> => [
  cell(path),
  `${how}${from === undefined ? "" : ` from ${cell(from)}`}${isBinary ? ", binary" : ""}`,
  isBinary ? unknown : count(added),
  isBinary ? unknown : count(removed)
]

/** A diff that was cut ends with a whole line, unless that would be next to nothing of it. */
const wholeLines = ({ length, text }: Excerpt): string => {
  const end = text.lastIndexOf("\n")
  return text.length === length || end < text.length / 2 ? text : text.slice(0, end + 1)
}

// -----------------------------------------------------------------------------
// rechecks
// -----------------------------------------------------------------------------

const recheckLines = ({ finding, line, rechecks }: ApplyPage): ReadonlyArray<string> => {
  if (rechecks.size === 0) return ["None.", ""]
  const { open, passed, regressed, void: voids } = line.rechecks
  return [
    `${count(passed)} passed, ${count(regressed)} regressed, ${count(voids)} void, ${count(open)} open.`,
    "",
    ...(finding === undefined ? [] : [findings[finding], ""]),
    ...[...rechecks.values()].flatMap(recheckOf)
  ]
}

const findings = {
  environment: "Together they say that the environment is down: the previous version fails as well.",
  edit: "Together they say that the edit is broken at large."
}

const recheckOf = (recheck: RecheckShown): ReadonlyArray<string> => [
  `### ${code(recheck.case)}: ${standingOf(recheck)}`,
  "",
  ...(recheck.tries.length === 0
    ? ["No try has ended.", ""]
    : [...table(["try", "verdict", "rubric", "ended", "why"], recheck.tries.map(tryRow)), ""])
]

const standingOf = ({ endedAt, movedTo, outcome, queuedAt, state }: RecheckShown): string => {
  if (movedTo !== undefined) return `joined apply ${code(movedTo)}`
  if (outcome === undefined) return state
  const after = endedAt === undefined ? "" : ` (after ${duration(endedAt - queuedAt)})`
  switch (outcome._tag) {
    case "Passed":
      return `passed${outcome.unstable ? ", unstable" : ""}${after}`
    case "Regressed": {
      const asked = outcome.request === null ? "only reported" : `repair asked for by ${code(outcome.request)}`
      return `regressed${outcome.confirmed ? ", confirmed" : ""}, ${asked}${after}`
    }
    case "Void":
      return `void (${outcome.why}): ${code(outcome.reason)}${after}`
  }
}

const tryRow = ({ arm, at, outcome, reason, score, try: number }: TryShown): ReadonlyArray<string> => [
  `${arm} ${number}`,
  outcome,
  score === null ? unknown : `${Math.round(100 * score)} %`,
  time(at),
  reason === null ? "" : cell(reason)
]
