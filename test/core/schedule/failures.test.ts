import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { ScheduleJournal } from "shiftboss"
import { beginning, day, hour, makeWorld, minute, start } from "./kit.ts"

const everyMinute: ScheduleJournal.Schedule = { workflowId: "a", everySeconds: 60 }

describe("failures in a row", () => {
  const fail = (world: Effect.Success<ReturnType<typeof makeWorld>>, ending: "failed" | "cancelled" | "succeeded") =>
    Effect.andThen(
      world.after(minute),
      Effect.sync(() => world.host.end(ending))
    )

  it.effect("stop it; a cancelled run between does not count", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([everyMinute])
      for (const ending of ["failed", "cancelled", "failed", "failed"] as const) yield* fail(world, ending)
      yield* world.after(minute)
      const stopped = yield* world.summary("a")
      assert.deepInclude(stopped, { state: "stopped", stoppedSlot: 4, failuresInRow: 3, nextAt: null })
      assert.deepStrictEqual(stopped.failedRunIds, ["a@1.1", "a@1.3", "a@1.4"])
      assert.deepStrictEqual(stopped.stops, [{ at: beginning + 5 * minute, slot: 4, runIds: stopped.failedRunIds }])
      // the slot that was due when the stop was noticed is not forgotten
      assert.deepInclude(yield* world.journal.explain("a", 5), { _tag: "Skipped", reason: "stopped" })
      yield* world.after(day)
      assert.strictEqual(world.host.submitted.length, 4)
    })
  )

  it.effect("start again after a success", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([everyMinute])
      for (const ending of ["failed", "failed", "succeeded", "failed", "failed"] as const) yield* fail(world, ending)
      yield* world.after(minute)
      assert.deepInclude(yield* world.summary("a"), { state: "active", failuresInRow: 2 })
    })
  )

  it.effect("are cleared by resuming, which keeps the history; pausing keeps when it stopped", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([{ ...everyMinute, failuresInARow: 1 }])
      yield* fail(world, "failed")
      yield* world.after(2000)
      const { stops, stoppedAt = 0 } = yield* world.summary("a")
      assert.deepInclude(yield* world.journal.pause("a"), { state: "paused", stoppedAt, stoppedSlot: 1 })
      const resumed = yield* world.journal.resume("a")
      assert.deepStrictEqual([resumed.failuresInRow, resumed.failedRunIds, resumed.stops], [0, [], stops])
      assert.isUndefined(resumed.stoppedAt)
      assert.strictEqual(resumed.nextAt, beginning + minute + 2000 + minute)
    })
  )

  it.effect("are kept of the newest twenty stops", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([{ ...everyMinute, failuresInARow: 1 }])
      for (let i = 0; i < 25; i++) {
        yield* fail(world, "failed")
        yield* world.after(2000)
        yield* world.journal.resume("a")
      }
      const { stops } = yield* world.summary("a")
      assert.deepStrictEqual(
        stops.map(({ slot }) => slot),
        Array.from({ length: 20 }, (_, i) => i + 6)
      )
    })
  )

  it.effect("that are there already stop it when fewer are declared", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([everyMinute])
      for (const ending of ["failed", "failed"] as const) yield* fail(world, ending)
      yield* world.after(30_000)
      yield* world.restart([{ ...everyMinute, failuresInARow: 2 }])
      assert.deepInclude(yield* world.summary("a"), { state: "stopped", stoppedSlot: 2, failuresInARow: 2 })
    })
  )
})

describe("an edit", () => {
  it.effect("of the limit and the interval at once stops at the last failure and keeps each slot once", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([everyMinute])
      for (let i = 0; i < 2; i++) {
        yield* world.after(minute)
        world.host.end("failed")
      }
      yield* world.after(1000)
      yield* TestClock.adjust(3 * minute)
      yield* world.restart([{ workflowId: "a", everySeconds: 300, failuresInARow: 2 }])
      const { state, stoppedSlot, lastSlot, ran, skipped, everySeconds } = yield* world.summary("a")
      assert.deepStrictEqual([state, stoppedSlot, everySeconds], ["stopped", 2, 300])
      assert.deepStrictEqual([lastSlot, ran, skipped.stopped, skipped.missed], [5, 2, 3, 0])
    })
  )
})

describe("a note", () => {
  it.effect("is that of the last pause or resumption, none when that had none", () =>
    Effect.gen(function* () {
      const { journal, summary } = yield* makeWorld([everyMinute])
      const noted = Effect.map(summary("a"), ({ note }) => note)
      const seen = [yield* noted]
      for (const [change, note] of [
        [journal.pause, "holidays"],
        [journal.pause, undefined],
        [journal.resume, "back"],
        [journal.pause, undefined]
      ] as const) {
        yield* change("a", note)
        seen.push(yield* noted)
      }
      assert.deepStrictEqual(seen, [undefined, "holidays", "holidays", "back", undefined])
    })
  )
})

describe("a run that ends after its schedule came to rest", () => {
  it.effect("stops a paused one, which stays paused", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([{ ...everyMinute, failuresInARow: 1 }])
      yield* world.after(minute)
      yield* world.journal.pause("a")
      world.host.end("failed")
      yield* world.after(2000)
      assert.deepInclude(yield* world.summary("a"), { state: "paused", stoppedSlot: 1, failuresInRow: 1 })
    })
  )

  for (const ending of ["succeeded", "failed"] as const) {
    it.effect(`leaves a stop as it is (${ending})`, () =>
      Effect.gen(function* () {
        const world = yield* makeWorld([everyMinute])
        yield* world.after(minute)
        world.host.end("failed")
        yield* world.after(minute)
        yield* world.restart([{ ...everyMinute, failuresInARow: 1 }])
        world.host.end(ending)
        yield* world.after(2000)
        const { state, stoppedSlot, failedRunIds, activeRunId } = yield* world.summary("a")
        assert.deepStrictEqual([state, stoppedSlot, failedRunIds, activeRunId], ["stopped", 1, ["a@1.1"], undefined])
      })
    )
  }
})

describe("declarations", () => {
  it.effect("that are removed rest, and begin a grid when they are put back", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([{ ...everyMinute, failuresInARow: 1 }])
      yield* world.after(minute)
      world.host.end("succeeded")
      yield* world.restart([])
      yield* world.after(hour)
      assert.strictEqual(world.host.submitted.length, 1)
      assert.deepInclude(yield* world.summary("a"), { declared: false, nextAt: null, lastSlot: 1 })
      assert.strictEqual((yield* Effect.flip(world.journal.pause("a")))._tag, "UnknownSchedule")
      yield* world.restart()
      assert.deepInclude(yield* world.summary("a"), {
        declared: true,
        lastSlot: 1,
        generation: 2,
        nextAt: beginning + minute + hour + minute
      })
      yield* world.after(minute)
      assert.deepStrictEqual(
        world.host.submitted.map(({ runId }) => runId),
        ["a@1.1", "a@2.2"]
      )
    })
  )

  it.effect("that were removed have no slots, also when their last run fails once too often afterwards", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([{ ...everyMinute, failuresInARow: 1 }])
      yield* world.after(minute)
      yield* world.restart([])
      world.host.end("failed")
      yield* world.after(hour)
      assert.deepInclude(yield* world.summary("a"), { declared: false, state: "stopped", lastSlot: 1, stoppedSlot: 1 })
    })
  )

  it.effect("that were removed keep showing their stops", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([{ ...everyMinute, failuresInARow: 1 }])
      yield* world.after(minute)
      world.host.end("failed")
      yield* world.after(1000)
      yield* world.restart([])
      assert.strictEqual((yield* world.summary("a")).stops.length, 1)
    })
  )

  it.effect("whose interval changes while a slot is pending settle it first, by its old run id", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([everyMinute])
      world.host.manner = "silent"
      yield* world.after(minute)
      yield* world.restart([{ workflowId: "a", everySeconds: 300 }])
      assert.deepInclude(yield* world.summary("a"), { everySeconds: 60, generation: 1 })
      world.host.manner = "accepting"
      yield* world.after(10_000)
      assert.deepStrictEqual(
        world.host.submitted.map(({ runId }) => runId),
        ["a@1.1"]
      )
      assert.deepInclude(yield* world.summary("a"), {
        everySeconds: 300,
        generation: 2,
        nextAt: beginning + minute + 10_000 + 300_000
      })
    })
  )

  it.effect("are checked", () =>
    Effect.gen(function* () {
      const { disk, host, restart } = yield* makeWorld([])
      const seconds = (everySeconds: number) => restart([{ workflowId: "a", everySeconds }])
      for (const good of [60, 86_400]) yield* seconds(good)
      const bad = [59, 86_401, 60.5, Number.NaN, Infinity, JSON.parse('"60"') as number]
      for (const everySeconds of bad) {
        const error = yield* Effect.flip(seconds(everySeconds))
        assert.strictEqual(error._tag, "InvalidRequest")
        assert.include(error.message, "everySeconds is")
      }
      const cyclic: Array<unknown> = []
      cyclic.push(cyclic)
      const hostile = [Object.create(null), Symbol("no"), () => 60, {}, [], 1n, "x".repeat(100_000), -1, Infinity, null]
      const having = (field: string, value: unknown) => [{ ...everyMinute, [field]: value } as ScheduleJournal.Schedule]
      const wrong: ReadonlyArray<ReadonlyArray<ScheduleJournal.Schedule>> = [
        [everyMinute, everyMinute],
        [{ workflowId: "", everySeconds: 60 }],
        [{ workflowId: "a", cron: "* * * *" }],
        [{ workflowId: "a", cron: "61 * * * *" }],
        [{ workflowId: "a", cron: "0 0 30 2 *" }],
        [{ workflowId: "a", cron: "0 0 * * *", zone: "Mars/Olympus" }],
        having("failuresInARow", 0),
        having("failuresInARow", 101),
        having("input", Number.NaN),
        having("input", cyclic),
        having("input", "x".repeat(65_536)),
        having("lateWithin", "soon"),
        ...hostile.flatMap((value) => [having("workflowId", value), having("failuresInARow", value)]),
        ...hostile.map((everySeconds) => [{ workflowId: "a", everySeconds } as ScheduleJournal.Schedule]),
        ...hostile.map((cron) => [{ workflowId: "a", cron } as ScheduleJournal.Schedule]),
        [null as never],
        [(() => 60) as never],
        [
          {
            workflowId: "a",
            get everySeconds(): number {
              throw new Error("no")
            }
          }
        ],
        { length: 1, 0: everyMinute } as never,
        null as never
      ]
      for (const schedules of wrong) {
        assert.strictEqual((yield* Effect.flip(start(disk, host, schedules)))._tag, "InvalidRequest")
      }
    })
  )

  it.effect("of whatever id are kept apart, also when they are read again", () =>
    Effect.gen(function* () {
      const ids = ["a", "a@1.1", "@", "__proto__", "constructor", "\0", "\uD800", "\u00E9", "e\u0301", "x".repeat(200)]
      const world = yield* makeWorld(ids.map((workflowId) => ({ workflowId, everySeconds: 60 })))
      world.host.endsAtOnce = "succeeded"
      yield* world.after(minute)
      yield* world.restart()
      yield* world.after(minute)
      const expected = ids.flatMap((id) => [`${id}@1.1`, `${id}@1.2`])
      assert.sameMembers(
        world.host.submitted.map(({ runId }) => runId),
        expected
      )
      assert.sameMembers(
        (yield* world.journal.list).map(({ workflowId, ran }) => `${workflowId} ${ran}`),
        ids.map((id) => `${id} 2`)
      )
    })
  )

  it.effect("with options that make no sense are refused", () =>
    Effect.gen(function* () {
      const { disk, host } = yield* makeWorld([])
      const hostile = [null, {}, [], Symbol("no"), () => "x", Object.create(null), Number.NaN, Infinity, -1, 0]
      const wrong: ReadonlyArray<unknown> = [
        null,
        "schedules",
        { concurrency: 1001 },
        { concurrency: Number.MAX_SAFE_INTEGER },
        ...hostile.flatMap((value) => [{ log: value }, { concurrency: value }, { hostTimeout: value }])
      ]
      for (const options of wrong) {
        const error = yield* Effect.flip(start(disk, host, [], options as ScheduleJournal.Options))
        assert.strictEqual(error._tag, "InvalidRequest")
      }
    })
  )

  it.effect("keep the input as it was when they were made", () =>
    Effect.gen(function* () {
      const input: { topics: Array<unknown> } = { topics: ["sales"] }
      const { host, after } = yield* makeWorld([{ ...everyMinute, input: input as never }])
      input.topics.push(() => 1)
      yield* after(minute)
      assert.deepStrictEqual(host.submitted[0]?.input, { topics: ["sales"] })
    })
  )
})
