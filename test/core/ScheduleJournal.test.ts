import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Exit, Fiber, Layer, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal, Storage } from "shiftboss"
import { Advance } from "shiftboss/testing"
import {
  beginning,
  day,
  hour,
  makeDisk,
  makeWallClock,
  makeWorld,
  minute,
  revive,
  start,
  untilCrash
} from "./schedule/kit.ts"

const everyMinute: ScheduleJournal.Schedule = { workflowId: "a", everySeconds: 60 }
const daily: ScheduleJournal.Schedule = { workflowId: "a", everySeconds: 86_400 }
const slotsOf = (firings: ReadonlyArray<ScheduleJournal.Firing>) => firings.map(({ slot }) => slot)

describe("overlap", () => {
  it.effect("skips the slot, moves on, and starts nothing late when the run ends", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary } = yield* makeWorld([everyMinute])
      yield* after(minute)
      yield* after(minute)
      host.end("succeeded")
      yield* after(20_000)
      assert.deepStrictEqual(slotsOf(host.submitted), [1])
      assert.deepInclude(yield* journal.explain("a", 2), { _tag: "Skipped", reason: "overlap", first: 2, last: 2 })
      yield* after(40_000)
      assert.deepStrictEqual(slotsOf(host.submitted), [1, 3])
      const { ran, skipped, lastSlot } = yield* summary("a")
      assert.deepStrictEqual([ran, skipped.overlap, lastSlot], [2, 1, 3])
    })
  )

  it.effect("skips what the host refuses, with its reason", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      host.manner = "refusing"
      yield* after(minute)
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Skipped", reason: "refused", detail: "as scripted" })
    })
  )
})

describe("missed slots", () => {
  it.effect("are one record, and the newest runs late when it may, told how late it is", () =>
    Effect.gen(function* () {
      const schedule = { workflowId: "a", everySeconds: 3600, lateWithin: "30 minutes" } as const
      const world = yield* makeWorld([schedule])
      yield* TestClock.adjust(10 * hour + 20 * minute)
      yield* world.restart()
      const { host, journal, after } = world
      yield* after(0)
      assert.deepInclude(yield* journal.explain("a", 4), { _tag: "Skipped", reason: "missed", first: 1, last: 9 })
      assert.deepStrictEqual(slotsOf(host.submitted), [10])
      assert.strictEqual(host.submitted[0]?.dueAt, beginning + 10 * hour)
      assert.deepStrictEqual(
        host.submitted.map(({ late }) => Duration.toMinutes(late)),
        [20]
      )
      yield* after(hour + 11 * minute)
      assert.deepInclude(yield* journal.explain("a", 11), { _tag: "Skipped", reason: "missed" })
    })
  )

  it.effect("of ten years cost one record and no loop", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary, disk } = yield* makeWorld([
        everyMinute,
        { workflowId: "cron", cron: "*/5 * * * *", zone: "Europe/Berlin" }
      ])
      const before = disk.appends
      yield* after(3652 * day + 30_000)
      assert.strictEqual((yield* summary("a")).lastSlot, 3652 * 1440)
      assert.strictEqual((yield* summary("cron")).lastSlot, 3652 * 288)
      assert.isAtMost(disk.appends - before, 4)
      assert.isAtMost(host.submitted.length, 2)
      assert.deepInclude(yield* journal.explain("a", 1_000_000), { _tag: "Skipped", first: 1 })
    })
  )
})

describe("pause and resume", () => {
  it.effect("fires nothing at once after many slots, and begins a grid", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      yield* journal.pause("a", "the vendor is down")
      yield* after(7 * hour)
      const resumed = yield* journal.resume("a", "it is back")
      assert.deepInclude(resumed, {
        state: "active",
        lastSlot: 0,
        note: "it is back",
        nextAt: beginning + 7 * hour + minute
      })
      yield* after(minute - 1)
      assert.deepStrictEqual(host.submitted, [])
      yield* after(1)
      assert.deepStrictEqual(slotsOf(host.submitted), [1])
    })
  )

  it.effect("answer and change nothing when there is nothing to change", () =>
    Effect.gen(function* () {
      const { journal, after, disk } = yield* makeWorld([everyMinute])
      yield* after(10_000)
      const active = yield* journal.list
      assert.deepStrictEqual(yield* journal.resume("a", "again"), active[0])
      const paused = yield* journal.pause("a", "first")
      assert.strictEqual(paused.nextAt, null)
      const before = disk.appends
      yield* after(hour)
      assert.deepStrictEqual(yield* journal.pause("a", "second"), paused)
      assert.strictEqual(disk.appends, before)
    })
  )

  it.effect("record slots that were due and not taken up as skipped by the pause", () =>
    Effect.gen(function* () {
      const { journal } = yield* makeWorld([everyMinute])
      yield* TestClock.adjust(3 * minute)
      assert.deepInclude(yield* journal.pause("a"), { lastSlot: 3, ran: 0 })
      assert.deepInclude(yield* journal.explain("a", 3), { _tag: "Skipped", reason: "paused", first: 1 })
    })
  )
})

describe("reading", () => {
  it.effect("changes nothing", () =>
    Effect.gen(function* () {
      const { journal, disk, host, summary } = yield* makeWorld([everyMinute])
      yield* TestClock.adjust(5 * minute)
      const before = [disk.appends, yield* summary("a")]
      yield* journal.list
      yield* journal.preview("a", 10)
      yield* journal.explain("a", 3)
      assert.deepStrictEqual([disk.appends, yield* summary("a")], before)
      assert.strictEqual(host.asked, 0)
    })
  )

  it.effect("previews the grid and explains what is to come", () =>
    Effect.gen(function* () {
      const { journal } = yield* makeWorld([everyMinute])
      assert.deepStrictEqual(
        yield* journal.preview("a", 3),
        [1, 2, 3].map((n) => beginning + n * minute)
      )
      assert.deepInclude(yield* journal.explain("a", 5), { _tag: "ToCome", dueAt: beginning + 5 * minute })
      yield* journal.pause("a")
      assert.deepStrictEqual(yield* journal.preview("a", 3), [])
      assert.deepInclude(yield* journal.explain("a", 5), { _tag: "ToCome", dueAt: null, state: "paused" })
    })
  )
})

describe("what a crash leaves pending", () => {
  const leavePending = Effect.fnUntraced(function* (manner: "silent" | "deaf") {
    const world = yield* makeWorld([daily])
    world.host.manner = manner
    yield* world.after(day)
    world.host.manner = "accepting"
    assert.deepInclude(yield* world.journal.explain("a", 1), { _tag: "Pending", plan: "Run" })
    yield* world.restart()
    return world
  })

  it.effect("is submitted again when the host never saw it", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* leavePending("silent")
      yield* after(hour)
      assert.deepStrictEqual(slotsOf(host.submitted), [1])
      assert.deepStrictEqual(
        host.submitted.map(({ late }) => Duration.toMinutes(late)),
        [60]
      )
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "running" })
    })
  )

  it.effect("is not submitted again when the host saw it", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* leavePending("deaf")
      host.end("failed")
      yield* after(hour)
      assert.deepStrictEqual(slotsOf(host.submitted), [1])
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "failed" })
    })
  )

  it.effect("as a skip is skipped", () =>
    Effect.gen(function* () {
      const { disk, restart, after } = yield* makeWorld([everyMinute])
      const plan = { _tag: "Skip", first: 1, last: 2, reason: "missed" } as const
      yield* disk.write([{ _tag: "SlotPending", workflowId: "a", at: beginning, nextAt: beginning + minute, plan }])
      yield* restart([everyMinute])
      yield* after(0)
      assert.deepInclude((yield* disk.entries()).at(-1), { _tag: "SlotsSkipped", first: 1, last: 2, reason: "missed" })
    })
  )

  it.effect("of a run whose host died is lost, and the next slot runs", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary } = yield* makeWorld([everyMinute])
      yield* after(minute)
      host.end("lost")
      yield* after(minute)
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "lost" })
      assert.deepStrictEqual(slotsOf(host.submitted), [1, 2])
      assert.strictEqual((yield* summary("a")).failuresInRow, 0)
    })
  )
})

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

describe("a save that fails", () => {
  for (const written of [false, true]) {
    for (const after of [0, 1, 2, 3]) {
      it.effect(
        `after ${after} others (${written ? "written" : "not written"}) leaves memory and disk in agreement`,
        () =>
          Effect.gen(function* () {
            const world = yield* makeWorld([everyMinute])
            const { disk, host, journal } = world
            const loop = yield* Effect.forkChild(journal.run)
            disk.fault = { kind: "fail", written, after }
            for (let i = 0; i < 6; i++) {
              yield* Advance.advance("1 minute", "10 seconds")
              host.end("succeeded")
            }
            assert.isUndefined(disk.fault)
            const memory = yield* journal.list
            assert.isUndefined(loop.pollUnsafe())
            yield* Fiber.interrupt(loop)
            yield* world.restart()
            assert.deepStrictEqual(yield* world.journal.list, memory)
            assert.isAtLeast(host.submitted.length, 5)
          })
      )
    }
  }

  it.effect("is told, to who asked and in the events", () =>
    Effect.gen(function* () {
      const { disk, journal, after } = yield* makeWorld([everyMinute])
      const events = yield* Effect.forkChild(Stream.runCollect(Stream.take(journal.events, 1)))
      yield* Effect.yieldNow
      disk.fault = { kind: "fail", written: false, after: 0 }
      const ticked = yield* Effect.result(after(minute))
      assert.isTrue(Result.isFailure(ticked) && ticked.failure.reason === "JournalFailed")
      assert.deepInclude((yield* Fiber.join(events))[0], { _tag: "LookFailed", workflowId: "a" })
      disk.fault = { kind: "fail", written: false, after: 0 }
      const paused = yield* Effect.flip(journal.pause("a"))
      assert.strictEqual(paused._tag, "SchedulesUnavailable")
      assert.deepInclude((yield* journal.list)[0], { state: "active", lastSlot: 0 })
    })
  )
})

describe("crashes", () => {
  it.effect("at every append of a day lose no slot and start no run twice", () =>
    Effect.gen(function* () {
      for (const written of [false, true]) {
        for (let after = 0; after < 12; after++) {
          const world = yield* makeWorld([everyMinute])
          world.disk.fault = { kind: "crash", written, after }
          for (let i = 0; i < 6; i++) {
            yield* TestClock.adjust(minute)
            if (yield* untilCrash(world.disk, world.journal.tick)) {
              yield* revive(world.disk)
              yield* world.restart()
              yield* world.journal.tick
            }
            world.host.end("succeeded")
          }
          yield* world.after(1)
          const { ran, lastSlot } = yield* world.summary("a")
          assert.deepStrictEqual([ran, lastSlot], [6, 6])
          assert.deepStrictEqual(slotsOf(world.host.submitted), [1, 2, 3, 4, 5, 6])
        }
      }
    })
  )
})

describe("the clock", () => {
  it.effect("set back an hour makes no slot fire again and does not silence it for an hour", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(beginning)
      const wall = yield* makeWallClock
      yield* wall.advance(beginning)
      const disk = yield* makeDisk
      const host = (yield* makeWorld([])).host
      host.endsAtOnce = "succeeded"
      const { journal } = yield* wall.provide(
        start(disk, host, [everyMinute, { workflowId: "daily", everySeconds: 86_400 }])
      )
      const events: Array<ScheduleJournal.LiveEvent> = []
      yield* Effect.forkChild(Stream.runForEach(journal.events, (event) => Effect.sync(() => void events.push(event))))
      yield* Effect.forkChild(wall.provide(journal.run))
      const pass = Effect.fnUntraced(function* (seconds: number) {
        for (let i = 0; i < seconds / 10; i++) {
          yield* wall.advance(10_000)
          yield* Advance.settle
        }
      })
      yield* pass(180)
      assert.strictEqual(host.submitted.length, 3)
      yield* wall.step(-hour)
      yield* pass(300)
      assert.deepStrictEqual(slotsOf(host.submitted), [1, 2, 3, 4, 5, 6, 7].slice(0, host.submitted.length))
      assert.isAtLeast(host.submitted.length, 6)
      yield* wall.step(2 * hour)
      yield* pass(120)
      const ids = host.submitted.map(({ runId }) => runId)
      assert.strictEqual(new Set(ids).size, ids.length)
      assert.isAtMost(host.submitted.length, 10)
      const steps = events.flatMap((event) => (event._tag === "ClockStepped" ? [event.byMillis] : []))
      assert.deepStrictEqual(steps, [-hour, 2 * hour])
      const summary = (yield* wall.provide(journal.list)).find(({ workflowId }) => workflowId === "daily")
      assert.strictEqual(summary?.nextAt, beginning + day)
    })
  )
})

describe("the journal", () => {
  it.effect("is held by one process at a time", () =>
    Effect.gen(function* () {
      const { disk, host, restart } = yield* makeWorld([everyMinute])
      const second = yield* Effect.flip(start(disk, host, [everyMinute]))
      assert.strictEqual(second._tag, "LogHeld")
      yield* restart()
    })
  )

  it.effect("that another process took over ends the loop, and is not opened again", () =>
    Effect.gen(function* () {
      const { disk, host, journal } = yield* makeWorld([everyMinute])
      const loop = yield* Effect.forkChild(Effect.flip(journal.run))
      disk.fault = { kind: "fence", written: false, after: 0 }
      yield* Advance.advance("70 seconds", "5 seconds")
      assert.strictEqual((yield* Fiber.join(loop)).reason, "JournalLost")
      assert.strictEqual((yield* Effect.flip(journal.list)).reason, "JournalLost")
      assert.deepStrictEqual(host.submitted, [])
    })
  )

  it.effect("that is absent is empty, and one that makes no sense is refused and left as it is", () =>
    Effect.gen(function* () {
      const { disk, host, journal, restart } = yield* makeWorld([everyMinute])
      assert.strictEqual((yield* journal.list).length, 1)
      yield* disk.write([{ _tag: "SchedulePaused", workflowId: "a", at: 1 }])
      yield* restart()
      yield* disk.write([{ _tag: "ScheduleStopped", workflowId: "a", at: 1, slot: 7 }])
      const before = yield* disk.entries()
      const refused = yield* Effect.flip(restart())
      assert.strictEqual(refused._tag, "LogCorrupt")
      assert.include(refused.message, "breaking the rule")
      assert.deepStrictEqual(yield* disk.entries(), before)
      assert.strictEqual(host.asked, 0)
    })
  )

  it.effect("that is damaged or from a newer version is refused and left as it is", () =>
    Effect.gen(function* () {
      const damaged = yield* makeWorld([everyMinute])
      yield* damaged.disk.writeStored([{ version: 1, value: { _tag: "SlotPending", workflowId: 7 } }])
      const stored = yield* damaged.disk.stored
      assert.strictEqual((yield* Effect.flip(damaged.restart()))._tag, "LogCorrupt")
      assert.deepStrictEqual(yield* damaged.disk.stored, stored)

      const newer = yield* makeWorld([everyMinute])
      yield* newer.disk.write([{ _tag: "SchedulePaused", workflowId: "a", at: 1 }], 99)
      assert.strictEqual((yield* Effect.flip(newer.restart()))._tag, "LogTooNew")
    })
  )

  it.effect("is compacted, so that a restart reads what there is and not what there was", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld([everyMinute])
      world.host.endsAtOnce = "succeeded"
      for (let i = 0; i < 1200; i++) yield* world.after(minute)
      const before = yield* world.summary("a")
      assert.isBelow((yield* world.disk.entries()).length, 1100)
      yield* world.restart()
      assert.deepStrictEqual(yield* world.summary("a"), before)
      assert.deepInclude(yield* world.journal.explain("a", 3), { _tag: "Forgotten" })
      assert.deepInclude(yield* world.journal.explain("a", 1190), { _tag: "Ran" })
    })
  )
})

describe("events", () => {
  it.effect("tell a subscriber that is too slow how many it missed, and keep the newest", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      host.endsAtOnce = "succeeded"
      const gate = yield* Deferred.make<void>()
      const seen: Array<ScheduleJournal.LiveEvent> = []
      yield* Effect.forkChild(
        Stream.runForEach(journal.events, (event) =>
          Effect.andThen(
            Effect.sync(() => void seen.push(event)),
            Deferred.await(gate)
          )
        ),
        { startImmediately: true }
      )
      for (let i = 0; i < 500; i++) yield* after(minute)
      assert.strictEqual(seen.length, 1)
      yield* Deferred.succeed(gate, undefined)
      yield* Advance.settle
      const missed = seen.flatMap((event) => (event._tag === "EventsMissed" ? [event.count] : []))
      const told = seen.length - missed.length
      assert.strictEqual(missed.length, 1)
      // a slot is written, accepted and, a look later, ended
      assert.strictEqual(told + (missed[0] ?? 0), 500 * 3 - 1)
      assert.deepInclude(seen.at(-1), { _tag: "RunAccepted", runId: "a@1.500" })
    })
  )
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
      const wrong: ReadonlyArray<ReadonlyArray<ScheduleJournal.Schedule>> = [
        [everyMinute, everyMinute],
        [{ workflowId: "", everySeconds: 60 }],
        [{ workflowId: "a", cron: "* * * *" }],
        [{ workflowId: "a", cron: "61 * * * *" }],
        [{ workflowId: "a", cron: "0 0 30 2 *" }],
        [{ workflowId: "a", cron: "0 0 * * *", zone: "Mars/Olympus" }],
        [{ ...everyMinute, failuresInARow: 0 }],
        [{ ...everyMinute, input: Number.NaN }]
      ]
      for (const schedules of wrong) {
        assert.strictEqual((yield* Effect.flip(start(disk, host, schedules)))._tag, "InvalidRequest")
      }
    })
  )
})

describe("runNow", () => {
  it.effect("runs beside the grid: neither slots nor streak change", () =>
    Effect.gen(function* () {
      const { journal, host, after, summary } = yield* makeWorld([everyMinute])
      yield* after(10_000)
      const before = yield* summary("a")
      assert.deepStrictEqual(yield* journal.runNow("a"), { runId: "a@manual.1" })
      assert.strictEqual((yield* Effect.flip(journal.runNow("a")))._tag, "InvalidRequest")
      host.end("failed")
      yield* after(2000)
      const { nextAt, lastSlot, failuresInRow } = yield* summary("a")
      assert.deepStrictEqual([nextAt, lastSlot, failuresInRow], [before.nextAt, before.lastSlot, 0])
      assert.deepStrictEqual(slotsOf(host.submitted), [null])
      yield* journal.pause("a")
      assert.deepStrictEqual(yield* journal.runNow("a"), { runId: "a@manual.2" })
    })
  )

  it.effect("of a workflow that is not declared is an error that names the declared ones", () =>
    Effect.gen(function* () {
      const { journal } = yield* makeWorld([everyMinute])
      const error = yield* Effect.flip(journal.runNow("b"))
      assert.strictEqual(error._tag, "UnknownSchedule")
      assert.include(error.message, 'declared are: "a"')
    })
  )
})

describe("a connection", () => {
  it.effect("refuses requests before the journal is there and after it has gone", () =>
    Effect.gen(function* () {
      const { journal, connect } = yield* ScheduleJournal.connection
      const world = yield* makeWorld([everyMinute])
      const early = yield* Effect.flip(journal.list)
      assert.strictEqual(early.reason, "NotConnected")
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* connect(world.journal)
          assert.strictEqual((yield* journal.list).length, 1)
          yield* journal.pause("a")
        })
      )
      assert.strictEqual((yield* Effect.flip(journal.list)).reason, "NotConnected")
      yield* world.journal.drain
      assert.strictEqual((yield* Effect.flip(world.journal.list)).reason, "Ended")
      assert.strictEqual((yield* Effect.flip(world.journal.run)).reason, "Ended")
    })
  )
})

describe("a host that hangs", () => {
  it.effect("costs its own schedule a timeout and no other one anything", () =>
    Effect.gen(function* () {
      const { host, journal, summary } = yield* makeWorld([everyMinute], { hostTimeout: "5 seconds" })
      yield* Effect.forkChild(journal.run)
      host.manner = "hanging"
      yield* Advance.advance("62 seconds", "1 second")
      assert.strictEqual((yield* summary("a")).pending?._tag, "Run")
      host.manner = "accepting"
      yield* Advance.advance("10 seconds", "1 second")
      assert.deepStrictEqual(slotsOf(host.submitted), [1])
    })
  )

  it.effect("or does not: drain ends the loop at once", () =>
    Effect.gen(function* () {
      const { journal } = yield* makeWorld([everyMinute])
      const loop = yield* Effect.forkChild(Effect.flip(journal.run))
      yield* Advance.settle
      yield* journal.drain
      assert.strictEqual((yield* Fiber.join(loop)).reason, "Ended")
    })
  )

  it.effect("is waited for by drain", () =>
    Effect.gen(function* () {
      const { host, journal } = yield* makeWorld([everyMinute], { hostTimeout: "5 seconds" })
      host.manner = "hanging"
      yield* TestClock.adjust(minute)
      yield* Effect.forkChild(Effect.ignore(journal.tick))
      yield* Advance.settle
      const drained = yield* Effect.forkChild(journal.drain)
      yield* Advance.settle
      assert.isUndefined(drained.pollUnsafe())
      yield* Advance.advance("5 seconds")
      assert.isDefined(drained.pollUnsafe())
    })
  )
})

describe("effects of this process", () => {
  const build = Effect.fnUntraced(function* (
    storage: Storage.Storage["Service"],
    run: Effect.Effect<unknown, unknown>
  ) {
    const layer = ScheduleJournal.layerEffects({ a: { everySeconds: 60, run: () => run } })
    const context = yield* Layer.build(Layer.fresh(layer.pipe(Layer.provide(Layer.succeed(Storage.Storage, storage)))))
    return yield* ScheduleJournal.ScheduleJournal.pipe(Effect.provideContext(context))
  })

  it.effect("run on their slots and their failures stop the schedule", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const journal = yield* build(disk.storage, Effect.fail("no"))
      yield* Effect.forkChild(journal.run)
      yield* Advance.advance("4 minutes", "1 second")
      assert.deepInclude((yield* journal.list)[0], { state: "stopped", failuresInRow: 3, ran: 3 })
    })
  )

  it.effect("need what each of them needs", () =>
    Effect.gen(function* () {
      class Mail extends Context.Service<Mail, { readonly sent: Array<string> }>()("test/Mail") {}
      class Desk extends Context.Service<Desk, { readonly name: string }>()("test/Desk") {}
      const schedules = ScheduleJournal.layerEffects({
        report: {
          everySeconds: 60,
          input: { to: "all" },
          run: ({ runId, input }) => Effect.map(Mail, ({ sent }) => void sent.push(`${runId} ${JSON.stringify(input)}`))
        },
        sweep: {
          cron: "* * * * *",
          run: Effect.fnUntraced(function* ({ runId }) {
            const { name } = yield* Desk
            ;(yield* Mail).sent.push(`${runId} ${name}`)
          })
        },
        idle: { everySeconds: 3600, run: () => Effect.void }
      })
      // Fails to compile when a need is lost or one too many is there.
      type Needs = Layer.Services<typeof schedules>
      const exactly: [Needs, Storage.Storage | Mail | Desk] extends [Storage.Storage | Mail | Desk, Needs]
        ? true
        : false = true
      assert.isTrue(exactly)
      yield* TestClock.setTime(beginning)
      const disk = yield* makeDisk
      const sent: Array<string> = []
      const context = yield* Layer.build(
        schedules.pipe(
          Layer.provide([
            Layer.succeed(Storage.Storage, disk.storage),
            Layer.succeed(Mail, { sent }),
            Layer.succeed(Desk, { name: "front" })
          ])
        )
      )
      yield* TestClock.adjust(minute)
      yield* Context.get(context, ScheduleJournal.ScheduleJournal).tick
      yield* Advance.settle
      assert.sameMembers(sent, ['report@1.1 {"to":"all"}', "sweep@1.1 front"])
    })
  )

  it.effect("that a crash cuts off are lost, and never run twice", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const begun = yield* Deferred.make<void>()
      const scope = yield* Effect.scoped(
        Effect.gen(function* () {
          const journal = yield* build(disk.storage, Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
          yield* TestClock.adjust(minute)
          yield* journal.tick
          yield* Deferred.await(begun)
          // The process dies: nothing of it is written any more.
          disk.fault = { kind: "fail", written: false, after: 0 }
          return Exit.void
        })
      )
      assert.isTrue(Exit.isSuccess(scope))
      yield* revive(disk)
      let runs = 0
      const journal = yield* build(
        disk.storage,
        Effect.sync(() => void runs++)
      )
      yield* journal.tick
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "lost" })
      assert.strictEqual(runs, 0)
      yield* TestClock.adjust(minute)
      yield* journal.tick
      yield* Advance.settle
      assert.strictEqual(runs, 1)
    })
  )
})
