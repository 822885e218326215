import { assert, describe, it } from "@effect/vitest"
import type { Failure, Turn, Workspace } from "shiftboss"
import type { Launch } from "../../../src/core/internal/retry/decide.ts"
import { promptFor } from "../../../src/core/internal/retry/prompt.ts"
import { begun, failureOf, start } from "./play.ts"

interface Past {
  /** `null`: it has not ended, as far as is known. */
  readonly kind: Failure.FailureKind | null
  readonly session?: string | null
  readonly ran?: boolean
  readonly tools?: Readonly<Record<string, string>>
}

const after = (...past: ReadonlyArray<Past>): Turn.State => ({
  ...begun(),
  attempts: past.map(({ kind, session = "s", ran = true, tools = {} }, index) => ({
    ...{ number: index + 1, round: 1, purpose: "first", rule: "first-attempt", model: null, identity: null },
    ...{ session: { _tag: "New", id: "asked for" }, startedAt: start, sessionSeen: session, openTools: tools },
    ending:
      kind === null
        ? null
        : { at: start, failure: failureOf({ kind }, start), result: null, estimatedCostUsd: null, ran }
  }))
})

const launch = (resume: string | null): Launch => ({
  ...{ _tag: "Launch", purpose: "retry", rule: "r", resume, model: null, budgetUsd: undefined, reap: false }
})

const nothing: Workspace.Evidence = { head: null, commits: [], dirty: [] }
const prompt = (state: Turn.State, resume: string | null, evidence: Workspace.Evidence | string = nothing) =>
  promptFor("do it", state, launch(resume), evidence).split("\n")

const earlier = "An earlier attempt at this task stopped before it was done: it was"
const goOn = "Go on from the present state of the work tree; do not start over."
const none = [
  "Commits since the turn started: none.",
  "Files with changes that are not committed: none.",
  "Tool calls whose result is not known: none."
]

describe("the prompt of an attempt", () => {
  it("is the task alone when nothing of the turn has run", () => {
    assert.deepStrictEqual(prompt(after(), null), ["do it"])
    assert.deepStrictEqual(prompt(after({ kind: "Interrupted", ran: false }), "s"), ["do it"])
  })

  it("repeats the task in a session that has not been told it, and not in one that has", () => {
    const state = after({ kind: "Capacity", session: "other" }, { kind: "Capacity" })
    assert.deepStrictEqual(prompt(state, "s"), [`${earlier} Capacity`, goOn])
    assert.deepStrictEqual(prompt(state, "other"), [`${earlier} Capacity`, goOn])
    for (const resume of [null, "an earlier turn's"]) {
      assert.deepStrictEqual(prompt(state, resume), ["do it", "", `${earlier} Capacity`, goOn])
    }
    // One that was told of a task but ran nothing is no session of this turn.
    const idle = after({ kind: "Capacity" }, { kind: "Capacity", session: "idle", ran: false })
    assert.deepStrictEqual(prompt(idle, "idle").slice(0, 2), ["do it", ""])
  })

  it("says what the last attempt that ran died of, or that it is not known", () => {
    const state = after({ kind: "Hung" }, { kind: "Capacity" }, { kind: "Throttled", ran: false })
    assert.strictEqual(prompt(state, "s")[0], `${earlier} Capacity`)
    assert.match(prompt(after({ kind: null }), "s")[0] ?? "", /it is not known why$/)
  })

  it("tells what was done when nobody knows whether the last thing went through, in any attempt", () => {
    for (const kind of ["Network", "StreamCut", "Interrupted", "Hung", "Stopped", null] as const) {
      const lines = prompt(after({ kind: "Capacity" }, { kind }, { kind: "Capacity" }), "s")
      assert.deepStrictEqual(lines.slice(2, -1), none, String(kind))
      assert.match(lines.at(-1) ?? "", /Check each earlier commit/)
    }
    for (const kind of ["Capacity", "ServerError", "Throttled"] as const) {
      assert.lengthOf(prompt(after({ kind }), "s"), 2)
    }
  })

  it("lists commits, files and tools, fifty of a sort, or says that the work tree could not be looked at", () => {
    const files = (count: number) => Array.from({ length: count }, (_, index) => `file ${index}`)
    const state = after({ kind: "Hung", tools: { "1": "Bash(git push)" } }, { kind: "Hung", tools: { "2": "Edit(a)" } })
    const found = prompt(state, "s", { head: "h", commits: ["c1", "c2"], dirty: files(50) })
    assert.deepStrictEqual(found.slice(2, 6), [
      "Commits since the turn started:",
      "- c1",
      "- c2",
      `${none[1]?.slice(0, -7)}:`
    ])
    assert.deepStrictEqual(found.slice(-4, -1), [
      "Tool calls whose result is not known:",
      "- Bash(git push)",
      "- Edit(a)"
    ])
    assert.strictEqual(found.at(-5), "- file 49")
    const many = prompt(state, "s", { ...nothing, dirty: files(53) })
    assert.deepStrictEqual(many.slice(-6, -4), ["- file 49", "- … and 3 more"])
    const unknown = prompt(after({ kind: "Hung" }), "s", "no git")
    assert.deepStrictEqual(unknown.slice(2, 4), [
      "The work tree could not be looked at (no git): look for yourself what was done.",
      none[2]
    ])
  })
})
