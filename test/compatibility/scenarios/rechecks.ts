/**
 * Runs of a dispatcher with rechecks until there is an event of every kind, and one of every outcome. One seat, so that the
 * order is always the same.
 */
import { Clock, Effect } from "effect"
import { Case, Dispatcher, Improvements, type Rechecks, Verdict } from "shiftboss"
import { cases, Missing } from "../../core/dispatch/support.ts"
import type { Scenario } from "../scenario.ts"
import { start } from "./process.ts"

type Request = typeof Missing.Type
type Recheck = (one: Rechecks.Try, seat: Dispatcher.Seat) => Effect.Effect<Verdict.Verdict<Request>, unknown>

/** Edits from version to version. */
const editor = (first: number) => {
  let version = first
  return {
    version: Effect.sync(() => `v${version}`),
    apply: ({ name }: Improvements.Batch<Request>) =>
      Effect.sync(() => Improvements.changed(`v${version++}`, `v${version}`, `+ the rule of ${name}`))
  }
}

/** All cases complete at once, but for those that ask for something first, some of them twice. */
const train = ({ id }: Case.Case, seat: Dispatcher.Seat<Request>) =>
  Effect.gen(function* () {
    if (id.startsWith("asks")) yield* seat.park("first", { missing: `what ${id}` })
    if (id.endsWith("twice")) yield* seat.park("second", { missing: `what else ${id}` })
    return Case.completed()
  })

const run = (from: number, ids: ReadonlyArray<string>, controls: boolean, recheck: Recheck) => {
  const { apply, version } = editor(from)
  return Dispatcher.run(
    { cases: cases(...ids), train, version, improve: { request: Missing, apply, recheck, controls } },
    { seats: 1, applyAt: 1, rechecks: 4, requestsPerCase: 1 }
  )
}

const wrong = (one: Rechecks.Try) =>
  Verdict.wrong({ missing: `${one.case.id} on ${one.version}` }, [{ name: "polite", passed: true }])

/** Each case fares in its own way. */
const byCase: Recheck = (one, seat) =>
  Effect.gen(function* () {
    const { id } = one.case
    yield* seat.step("run", Effect.succeed({ ran: id, on: one.version }))
    yield* seat.step("note", Effect.void)
    if (id === "holds") yield* seat.hold("limit", (yield* Clock.currentTimeMillis) + 60_000)
    if (id === "regresses") return wrong(one)
    if (id === "is unstable" && one.try === 1) return wrong(one)
    if (id === "breaks") return yield* Effect.fail("the sandbox is away")
    return Verdict.right({ rubric: [{ name: "polite", passed: true }], repair: { missing: "politeness" } })
  })

const first = ["holds", "regresses", "is unstable", "breaks"]

export const rechecks: Scenario = {
  name: "rechecks",
  logs: { dispatch: "dispatcher" },
  play: Effect.gen(function* () {
    yield* start(run(0, [...first, "asks twice"], false, byCase))
    // Both versions fail: it is the environment.
    yield* start(run(9, [...first, "asks twice", "asks once"], true, (one) => Effect.succeed(wrong(one))))
  })
}
