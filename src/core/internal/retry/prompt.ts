/**
 * What an attempt is told: the task, and when it repeats something, what is known of the attempts before it.
 */
import type { Attempt, State } from "../../Turn.ts"
import type { Evidence } from "../../Workspace.ts"
import type { Launch } from "./decide.ts"
import { sessionOf } from "./totals.ts"

/** Endings after which nobody knows whether the last thing the agent did went through. */
const uncertain = ["Network", "StreamCut", "Interrupted", "Hung", "Stopped"]

const ran = (attempt: Attempt) => attempt.ending?.ran !== false

/** The most lines of a sort that are listed: a prompt is no place for ten thousand untracked files. */
const most = 50

const listed = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (lines.length === 0) return [`${title}: none.`]
  const more = lines.length > most ? [`- … and ${lines.length - most} more`] : []
  return [`${title}:`, ...lines.slice(0, most).map((line) => `- ${line}`), ...more]
}

const evidenceLines = (attempts: ReadonlyArray<Attempt>, evidence: Evidence | string): ReadonlyArray<string> => {
  const tools = attempts.flatMap((attempt) => Object.values(attempt.openTools))
  const workspace =
    typeof evidence === "string"
      ? [`The work tree could not be looked at (${evidence}): look for yourself what was done.`]
      : [
          ...listed("Commits since the turn started", evidence.commits),
          ...listed("Files with changes that are not committed", evidence.dirty)
        ]
  return [
    ...workspace,
    ...listed("Tool calls whose result is not known", tools),
    "Check each earlier commit, push, comment and message before you make another one. Do not repeat a write that is " +
      "done. Stop and report a write whose result cannot be found out."
  ]
}

/** The prompt of the attempt to launch. `evidence` is what was done since the turn started, or why that is not known. */
export const promptFor = (task: string, state: State, launch: Launch, evidence: Evidence | string): string => {
  const before = state.attempts.filter(ran)
  const last = before.at(-1)
  if (last === undefined) return task
  const reason = last.ending?.failure?.detail ?? "it is not known why"
  const told = launch.resume !== null && before.some((attempt) => sessionOf(attempt) === launch.resume)
  const unknown = before.some(({ ending }) => ending === null || uncertain.includes(ending.failure?.kind ?? ""))
  const lines = [
    `An earlier attempt at this task stopped before it was done: ${reason}`,
    "Go on from the present state of the work tree; do not start over.",
    ...(unknown ? evidenceLines(before, evidence) : [])
  ]
  return told ? lines.join("\n") : [task, "", ...lines].join("\n")
}
