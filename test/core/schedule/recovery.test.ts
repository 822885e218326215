import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ScheduleJournal } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { beginning, day, hour, makeWorld, minute, revive, start, untilCrash } from "./kit.ts"

const everyMinute: ScheduleJournal.Schedule = { workflowId: "a", everySeconds: 60 }
const daily: ScheduleJournal.Schedule = { workflowId: "a", everySeconds: 86_400 }
const slotsOf = (firings: ReadonlyArray<ScheduleJournal.Firing>) => firings.map(({ slot }) => slot)

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

  it.effect("of a run that the host took and does not know any more is lost, and not submitted again", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      yield* after(minute)
      Object.assign(host.workflows, { outcome: () => Effect.succeed("unknown") })
      yield* after(2000)
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "lost" })
      assert.deepStrictEqual(slotsOf(host.submitted), [1])
    })
  )

  it.effect("of a schedule that is removed is refused when the host never saw it", () =>
    Effect.gen(function* () {
      const { host, restart, after, summary } = yield* leavePending("silent")
      yield* restart([])
      yield* after(0)
      assert.deepStrictEqual(host.submitted, [])
      const { declared, ran, skipped, lastSlot } = yield* summary("a")
      assert.deepStrictEqual([declared, ran, skipped.removed, lastSlot], [false, 0, 1, 1])
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

  it.effect("whose entries do not fit together is refused where they do not", () =>
    Effect.gen(function* () {
      const about = { workflowId: "a", at: 1 }
      const run = (slot: number) => ({ _tag: "Run", slot, runId: `a@1.${slot}`, dueAt: 1, input: null }) as const
      const pending = (slot: number) => ({ _tag: "SlotPending", ...about, nextAt: 2, plan: run(slot) }) as const
      const skip = { ...about, first: 1, last: 2, reason: "missed" } as const
      const skipping = {
        _tag: "SlotPending",
        ...about,
        nextAt: 2,
        plan: { _tag: "Skip", first: 1, last: 2, reason: "missed" }
      } as const
      const broken: ReadonlyArray<readonly [string, ReadonlyArray<ScheduleJournal.ScheduleEvent>]> = [
        ["not declared before", [{ _tag: "SchedulePaused", workflowId: "b", at: 1 }]],
        ["not declared before", [{ ...pending(1), workflowId: "b" }]],
        ["something else is pending", [pending(1), pending(1)]],
        ["not pending", [pending(1), { _tag: "RunAccepted", ...about, runId: "a@1.7" }]],
        ["not pending", [{ _tag: "RunAccepted", ...about, runId: "a@1.1" }]],
        ["not pending", [{ _tag: "RunRefused", ...about, runId: "a@1.1", reason: "refused" }]],
        ["not pending", [skipping, { _tag: "SlotsSkipped", ...skip, reason: "paused" }]],
        ["not pending", [skipping, { _tag: "SlotsSkipped", ...skip, first: 2 }]],
        ["not active", [{ _tag: "RunEnded", ...about, runId: "a@1.1", ending: "failed" }]]
      ]
      for (const [found, entries] of broken) {
        const { disk, restart } = yield* makeWorld([everyMinute])
        yield* disk.write(entries)
        const before = yield* disk.stored
        const refused = yield* Effect.flip(restart())
        assert.strictEqual(refused._tag, "LogCorrupt")
        assert.include(refused.message, found)
        assert.deepStrictEqual(yield* disk.stored, before)
      }
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

  const many = Array.from({ length: 20 }, (_, i) => ({ workflowId: `w${i}`, everySeconds: 60 }))

  it.effect("that cannot be rewritten is tried again when it has doubled, and loses nothing", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld(many)
      const { disk, host } = world
      host.endsAtOnce = "succeeded"
      disk.rewriting = "fail"
      // three entries a slot
      for (let i = 0; i < 40; i++) yield* world.after(minute)
      assert.deepStrictEqual([disk.rewrites, disk.opens], [2, 3])
      assert.strictEqual((yield* disk.entries()).length, 20 * 40 * 3)
      disk.rewriting = "done"
      for (let i = 0; i < 30; i++) yield* world.after(minute)
      assert.strictEqual(disk.rewrites, 3)
      assert.isBelow((yield* disk.entries()).length, 1000)
      const slots = (yield* world.journal.list).map(({ ran, lastSlot }) => [ran, lastSlot])
      assert.deepStrictEqual(
        slots,
        many.map(() => [70, 70])
      )
    })
  )

  it.effect("that was left long is rewritten by the next start", () =>
    Effect.gen(function* () {
      const { disk, host, after, restart } = yield* makeWorld(many)
      host.endsAtOnce = "succeeded"
      disk.rewriting = "fail"
      for (let i = 0; i < 20; i++) yield* after(minute)
      assert.strictEqual((yield* disk.entries()).length, 20 * 20 * 3)
      disk.rewriting = "done"
      yield* restart()
      assert.strictEqual((yield* disk.entries()).length, many.length)
    })
  )

  it.effect("that was taken over when it was to be rewritten ends the loop as well", () =>
    Effect.gen(function* () {
      const { disk, host, journal } = yield* makeWorld(many)
      host.endsAtOnce = "succeeded"
      disk.rewriting = "fence"
      const loop = yield* Effect.forkChild(Effect.flip(journal.run))
      yield* Advance.advance("20 minutes", "1 minute")
      assert.strictEqual((yield* Fiber.join(loop)).reason, "JournalLost")
      assert.strictEqual((yield* Effect.flip(journal.tick)).reason, "JournalLost")
      assert.strictEqual(disk.rewrites, 1)
    })
  )

  it.effect("that could not be written for one schedule is read again for the others at once", () =>
    Effect.gen(function* () {
      const { disk, host, after } = yield* makeWorld(many)
      // Of the third schedule: one is brought forward after the other, with two entries each.
      disk.fault = { kind: "fail", written: false, after: 4 }
      assert.strictEqual((yield* Effect.flip(after(minute))).reason, "JournalFailed")
      assert.strictEqual(host.submitted.length, many.length - 1)
      yield* after(5000)
      assert.strictEqual(host.submitted.length, many.length)
    })
  )
})
