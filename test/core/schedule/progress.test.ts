import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Result, Schema } from "effect"
import { ScheduleJournal } from "shiftboss"
import * as Journal from "../../../src/core/internal/schedule/journal.ts"
import * as Notices from "../../../src/core/internal/schedule/notices.ts"
import { makeDisk } from "./kit.ts"

const none = { missed: 0, overlap: 0, refused: 0, paused: 0, stopped: 0, removed: 0 }

/** Three slots: the first two failed, the third runs. */
const sound = {
  workflowId: "a",
  everySeconds: 60,
  generation: 1,
  nextAt: 240_000,
  lastSlot: 3,
  state: "active",
  declared: true,
  ran: 3,
  skipped: none,
  failuresInARow: 3,
  failuresInRow: 2,
  failedRunIds: ["a@1.1", "a@1.2"],
  stops: [],
  manualRuns: 0,
  activeRunId: "a@1.3",
  activeSlot: 3,
  activeSince: 180_000,
  recent: [
    { _tag: "Ran", slot: 1, runId: "a@1.1", at: 60_000, ending: "failed" },
    { _tag: "Ran", slot: 2, runId: "a@1.2", at: 120_000, ending: "failed" },
    { _tag: "Ran", slot: 3, runId: "a@1.3", at: 180_000, ending: "running" }
  ]
}

const without = (state: object, keys: ReadonlyArray<string>) =>
  Object.fromEntries(Object.entries(state).filter(([key]) => !keys.includes(key)))

const idle = without(sound, ["activeRunId", "activeSlot", "activeSince"])
const ended = sound.recent.map((record) => ({ ...record, ending: "failed" }))
const streak = ["a@1.1", "a@1.2", "a@1.3"]
const stopped = {
  ...idle,
  recent: ended,
  state: "stopped",
  failuresInRow: 3,
  failedRunIds: streak,
  stoppedAt: 190_000,
  stoppedSlot: 3,
  stops: [{ at: 190_000, slot: 3, runIds: streak }]
}
const pendingRun = { _tag: "Run", slot: 4, runId: "a@1.4", dueAt: 240_000, input: null }
const withPending = { ...idle, recent: ended, lastSlot: 4, pending: pendingRun }
const pendingSkip = { ...sound, lastSlot: 5, pending: { _tag: "Skip", first: 4, last: 5, reason: "overlap" } }

const decode = Schema.decodeUnknownResult(ScheduleJournal.ScheduleProgress)

describe("ScheduleProgress", () => {
  it("takes what can be", () => {
    for (const state of [sound, stopped, withPending, pendingSkip, { ...stopped, state: "paused" }]) {
      const decoded = decode(state)
      assert.isTrue(Result.isSuccess(decoded), String(Result.isFailure(decoded) ? decoded.failure : ""))
    }
  })

  it("fills in what an entry without state, streak and ids leaves out", () => {
    const old = without(sound, ["state", "failuresInRow", "failedRunIds", "stops", "recent"])
    const decoded = Result.getOrThrow(decode(old))
    assert.deepInclude(decoded, { state: "active", failuresInRow: 0, failedRunIds: [] })
  })

  const refused: ReadonlyArray<readonly [rule: string, state: object]> = [
    ["either an interval or a cron expression", { ...sound, cron: { expression: "0 0 * * *", zone: "UTC" } }],
    ["either an interval or a cron expression", without(sound, ["everySeconds"])],
    ["what ran, what was skipped and what is pending", { ...sound, ran: 2 }],
    ["what ran, what was skipped and what is pending", { ...sound, skipped: { ...none, missed: 1 } }],
    ["streak is as long as its failed runs", { ...sound, failuresInRow: 1 }],
    ["no run id is there twice", { ...sound, failedRunIds: ["a@1.1", "a@1.1"] }],
    ["no run id is there twice", { ...sound, failedRunIds: ["a@1.1", "a@1.3"] }],
    ["no run id is there twice", { ...sound, stops: [{ at: 1, slot: 1, runIds: ["a@1.1"] }] }],
    ["a stop has its time and its slot", without(stopped, ["stoppedSlot"])],
    ["a stop has its time and its slot", without(stopped, ["stoppedAt"])],
    ["a stopped one says when it stopped", { ...sound, state: "stopped" }],
    ["an active one is not stopped", { ...stopped, state: "active" }],
    ["a streak long enough has stopped it", { ...sound, failuresInARow: 2 }],
    ["the newest of its history", { ...stopped, stops: [{ at: 190_000, slot: 2, runIds: streak }] }],
    ["the newest of its history", { ...stopped, stops: [{ at: 190_000, slot: 3, runIds: ["a@1.1"] }] }],
    ["the newest of its history", { ...stopped, stops: [] }],
    ["in the order of their slots", { ...stopped, stops: [{ at: 1, slot: 3, runIds: ["x"] }, ...stopped.stops] }],
    ["in the order of their slots", { ...sound, stops: [{ at: 1, slot: 1, runIds: [] }] }],
    ["ahead of the last slot", { ...sound, stops: [{ at: 1, slot: 9, runIds: ["x"] }] }],
    ["a pending slot is on an active schedule", { ...withPending, state: "paused" }],
    ["a pending slot is on an active schedule", { ...pendingSkip, state: "paused" }],
    ["a pending slot is the last one", { ...withPending, pending: { ...pendingRun, slot: 3 } }],
    ["a pending slot is the last one", { ...pendingSkip, pending: { ...pendingSkip.pending, first: 3, last: 4 } }],
    ["a pending run has the id of its slot", { ...withPending, pending: { ...pendingRun, runId: "a@1.7" } }],
    ["no run is pending beside an active one", { ...sound, lastSlot: 4, pending: pendingRun }],
    ["says since when it runs", without(sound, ["activeSince"])],
    ["slot of an active run is one of its slots", { ...sound, activeSlot: 4 }],
    ["without a gap", { ...sound, recent: sound.recent.slice(0, 2) }],
    ["without a gap", { ...sound, recent: [sound.recent[0], sound.recent[2]] }],
    ["runs only while its run is active", { ...idle }]
  ]
  for (const [rule, state] of refused) {
    it(`refuses a state where not: ${rule} (${refused.findIndex((one) => one[1] === state)})`, () => {
      const decoded = decode(state)
      assert.isTrue(Result.isFailure(decoded))
      if (Result.isFailure(decoded)) assert.include(decoded.failure.message, rule)
    })
  }

  it("refuses values out of range", () => {
    for (const wrong of [
      { everySeconds: 59 },
      { everySeconds: 86_401 },
      { everySeconds: 60.5 },
      { lastSlot: -1 },
      { state: "asleep" },
      { nextAt: 0.5 },
      { workflowId: "" }
    ]) {
      assert.isTrue(Result.isFailure(decode({ ...sound, ...wrong })), JSON.stringify(wrong))
    }
  })
})

describe("the journal", () => {
  it.effect("writes nothing that would leave a schedule breaking a rule", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const journal = yield* Journal.make(disk.storage, "schedules", yield* Notices.make)
      const stopped = { _tag: "ScheduleStopped", workflowId: "a", at: 1, slot: 7 } as const
      const declared = {
        _tag: "ScheduleDeclared",
        workflowId: "a",
        at: 1,
        everySeconds: 60,
        failuresInARow: 3
      } as const
      for (const events of [[stopped], [{ ...declared, nextAt: 60_001 }, stopped]]) {
        const exit = yield* Effect.exit(journal.commit(() => events))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      }
      assert.deepStrictEqual(yield* disk.entries(), [])
      assert.strictEqual(journal.schedules().size, 0)
    })
  )
})
