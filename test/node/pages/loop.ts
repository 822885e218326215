// A small loop that learns: its first edit breaks a case that passed, which its recheck finds and a repair mends.
import { Effect, Schema } from "effect"
import {
  AgentLauncher,
  Case,
  type Dispatcher,
  Improvements,
  type Rechecks,
  type RetryPolicy,
  Usage,
  Verdict
} from "shiftboss"
import { ScriptedLauncher } from "shiftboss/testing"

const Edit = Schema.Struct({ missing: Schema.String })

/** What an agent says has everything in it that could mean something to Markdown. */
const feedback = 'reads "3 May" as <b>March</b> | ``` \u001b[31mred\u001b[0m \u202egnp.exe\n# not a heading'

const patches: { readonly [apply: string]: string } = {
  "001": [
    "diff --git a/rules/times.md b/rules/times.md",
    "--- a/rules/times.md",
    "+++ b/rules/times.md",
    "@@ -1,3 +1,4 @@",
    " # Rules",
    "-```",
    "+```js",
    "+-- a comment",
    " ```",
    "diff --git a/old name.txt b/new name.txt",
    "similarity index 100%",
    "rename from old name.txt",
    "rename to new name.txt",
    ""
  ].join("\n"),
  "002": "--- rules.txt\t2026-01-01\n+++ rules.txt\t2026-01-02\n@@ -1 +1 @@\n-days come second\n+days come first\n"
}

/** Version v1 is broken for the case "dates"; v2 is not. */
const passes = (id: string, version: string) => id !== "dates" || version !== "v1"

type Request = typeof Edit.Type

/** The workload, and the version of the system that it works on. */
export const makeLoop = () => {
  let version = "v0"
  const train = Effect.fnUntraced(function* (one: Case.Case, seat: Dispatcher.Seat<Request>) {
    yield* seat.turn("attempt", { prompt: one.id, model: "large" })
    if (one.id !== "dates") yield* seat.park("rule", { missing: "a rule for `zones`" })
    return Case.completed()
  })
  const recheck = Effect.fnUntraced(function* (
    one: Rechecks.Try,
    seat: Dispatcher.Seat
  ): Effect.fn.Return<Verdict.Verdict<Request>, unknown, RetryPolicy.RetryPolicy> {
    yield* seat.turn("attempt", { prompt: one.case.id, model: "small" })
    yield* seat.step("grade", Effect.void)
    const isUnread = one.arm === "control" && one.try === 1 && !seat.info.key.endsWith(".2")
    if (isUnread) return Verdict.unread("no `verdict` | in\nthe answer")
    const passed = passes(one.case.id, one.version)
    const rubric = [
      { name: "answer", passed },
      { name: "form", passed: true }
    ]
    return passed ? Verdict.right({ rubric, repair: { missing: "" } }) : Verdict.wrong({ missing: feedback }, rubric)
  })
  const apply = Effect.fnUntraced(function* ({ name }: Improvements.Batch<Request>) {
    yield* Effect.sleep("90 seconds")
    const from = version
    version = `v${Number(name)}`
    return Improvements.changed(from, version, patches[name])
  })
  return {
    cases: Effect.succeed([{ id: "dates" }, { id: "times|zones" }]),
    version: Effect.sync(() => version),
    train,
    improve: { request: Edit, controls: true, apply, recheck }
  }
}

/** Each turn takes a minute; nobody says what the small model costs. */
export const agent = ScriptedLauncher.layer((attempt) =>
  Effect.as(
    Effect.sleep("1 minute"),
    AgentLauncher.succeeded("done", {
      usage: { ...Usage.unknown, input: 1_200, output: 80 },
      ...(attempt.model === "large" ? { costUsd: 0.0125, model: "large" } : { model: "small" })
    })
  )
)

export const options: Dispatcher.Options = { seats: 1, rechecks: 2 }
