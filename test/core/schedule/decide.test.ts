/**
 * Decisions as pure functions: each answers with nothing when what it is about has been recorded, so that one that is
 * repeated after a crash changes nothing.
 */
import { assert, describe, it } from "@effect/vitest"
import type { ScheduleJournal } from "shiftboss"
import * as Decide from "../../../src/core/internal/schedule/decide.ts"
import { evolveAll } from "../../../src/core/internal/schedule/evolve.ts"

const declaration: Decide.Declaration = {
  workflowId: "a",
  cadence: { everySeconds: 60 },
  input: null,
  lateWithinMillis: 0,
  failuresInARow: 1
}

type Command = (progress: ScheduleJournal.ScheduleProgress) => Decide.Events

const after = (progress: ScheduleJournal.ScheduleProgress | undefined, events: Decide.Events) => {
  const next = evolveAll(progress, events)
  if (next === undefined) throw new Error("there is no schedule")
  return next
}

/** The life of a schedule, a decision at a time. */
const life: ReadonlyArray<readonly [what: string, command: Command]> = [
  ["taking a slot up", (one) => Decide.takeUp(one, declaration, 60_000)],
  ["an answer about it", (one) => Decide.settleRun(one, "a@1.1", { _tag: "Accepted" }, 60_000)],
  ["an overlap", (one) => Decide.takeUp(one, declaration, 120_000)],
  ["the end of its run", (one) => Decide.end(one, "a@1.1", "failed", 130_000)],
  ["a pause", (one) => Decide.pause(one, "why", 140_000)],
  ["a run asked for by a person", (one) => Decide.runNow(one, null, 150_000)],
  ["a refusal of it", (one) => Decide.settleRun(one, "a@manual.1", { _tag: "Refused", reason: "refused" }, 150_000)],
  ["a resumption", (one) => Decide.resume(one, undefined, 160_000)],
  ["a removal", (one) => Decide.declare(one, undefined, 170_000)],
  ["putting it back", (one) => Decide.declare(one, declaration, 180_000)],
  ["a clock set back", (one) => Decide.takeUp(one, declaration, -1e9)]
]

describe("repeating", () => {
  let progress = after(undefined, Decide.declare(undefined, declaration, 0))
  for (const [what, command] of life) {
    const before = progress
    progress = after(before, command(before))
    const done = progress
    it(`${what} changes nothing`, () => {
      assert.isNotEmpty(command(before))
      assert.deepStrictEqual(command(done), [])
    })
  }
})

describe("a decision about a run", () => {
  const declared = after(undefined, Decide.declare(undefined, declaration, 0))
  const pending = after(declared, Decide.takeUp(declared, declaration, 60_000))
  const active = after(pending, Decide.settleRun(pending, "a@1.1", { _tag: "Accepted" }, 60_000))

  it("that is another one than that which is pending or active is none", () => {
    assert.deepStrictEqual(Decide.settleRun(pending, "a@1.2", { _tag: "Accepted" }, 60_000), [])
    assert.deepStrictEqual(Decide.end(active, "a@1.2", "failed", 60_000), [])
  })

  it("beside another run of the workflow is none", () => {
    assert.deepStrictEqual(Decide.runNow(active, null, 60_000), [])
    assert.deepStrictEqual(Decide.runNow(pending, null, 60_000), [])
  })

  it("waits for what is pending", () => {
    assert.deepStrictEqual(Decide.declare(pending, undefined, 60_000), [])
    assert.deepStrictEqual(Decide.takeUp(pending, declaration, 600_000), [])
  })
})
