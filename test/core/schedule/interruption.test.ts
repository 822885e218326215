import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Scheduler, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ScheduleJournal } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { makeDisk, makeWorld, minute, start } from "./kit.ts"

const everyMinute = (workflowId: string): ScheduleJournal.Schedule => ({ workflowId, everySeconds: 60 })
const many = Array.from({ length: 5 }, (_, i) => everyMinute(`w${i}`))

describe("an interruption", () => {
  for (const what of ["tick", "run"] as const) {
    it.effect(`of ${what} leaves no schedule behind, also none it had not come to`, () =>
      Effect.gen(function* () {
        const { host, journal } = yield* makeWorld(many, { concurrency: 1 })
        host.manner = "hanging"
        yield* TestClock.adjust(minute)
        const fiber = yield* Effect.forkChild(Effect.ignore(journal[what]))
        yield* Advance.settle
        yield* Fiber.interrupt(fiber)
        host.manner = "accepting"
        yield* TestClock.adjust(2000)
        yield* journal.tick
        assert.sameMembers(
          host.submitted.map(({ runId }) => runId),
          many.map(({ workflowId }) => `${workflowId}@1.1`)
        )
      })
    )
  }

  it.effect("of a request, or a failed write that was written, still has the schedule looked at", () =>
    Effect.gen(function* () {
      const { disk, host, journal } = yield* makeWorld([everyMinute("a")])
      yield* journal.pause("a")
      disk.fault = { kind: "fail", written: true, after: 0 }
      yield* Effect.flip(journal.resume("a"))
      assert.deepInclude((yield* journal.list)[0], { state: "active" })
      yield* Effect.forkChild(journal.run)
      yield* Advance.advance("70 seconds", "5 seconds")
      assert.strictEqual(host.submitted.length, 1)
    })
  )
})

describe("an interruption between any two steps", () => {
  for (const what of ["tick", "pause", "runNow"] as const) {
    it.effect(`of ${what} leaves nothing that drain would wait for, no schedule locked and nothing untold`, () =>
      Effect.gen(function* () {
        const { disk, host, journal, after } = yield* makeWorld([everyMinute("a")])
        const declared = (yield* disk.entries()).length
        const told: Array<ScheduleJournal.LiveEvent> = []
        yield* Effect.forkChild(Stream.runForEach(journal.events, (event) => Effect.sync(() => told.push(event))))
        yield* Advance.settle
        host.endsAtOnce = "succeeded"
        const requests = { tick: journal.tick, pause: journal.pause("a"), runNow: journal.runNow("a") }
        let hasEnded = false
        for (let turns = 0; !hasEnded; turns++) {
          yield* TestClock.adjust(minute)
          // One that yields at each step can be interrupted at each; with less it would not get on.
          const request = Effect.provideService(Effect.exit(requests[what]), Scheduler.MaxOpsBeforeYield, 3)
          const fiber = yield* Effect.forkChild(request)
          for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
          hasEnded = fiber.pollUnsafe() !== undefined
          yield* Fiber.interrupt(fiber)
          yield* journal.resume("a")
        }
        yield* after(minute)
        const draining = yield* Effect.forkChild(journal.drain)
        yield* Advance.settle
        assert.isDefined(draining.pollUnsafe())
        const recorded = (yield* disk.entries()).slice(declared)
        assert.deepStrictEqual(
          told.filter(({ _tag }) => _tag !== "LookFailed" && _tag !== "HostSilent" && _tag !== "EventsMissed"),
          recorded
        )
      })
    )
  }
})

describe("the end of the journal", () => {
  it.effect("while its log is read again leaves the log to others", () =>
    Effect.gen(function* () {
      const { host } = yield* makeWorld([])
      const disk = yield* makeDisk
      const gate = yield* Deferred.make<void>()
      let isSlow = false
      const { storage } = disk
      const open: typeof storage.open = (name) =>
        Effect.map(storage.open(name), (log) => ({
          ...log,
          replay: Stream.unwrap(Effect.as(isSlow ? Deferred.await(gate) : Effect.void, log.replay))
        }))
      const slow = { ...disk, storage: { ...storage, open } }
      const process = yield* start(slow, host, [everyMinute("a")])
      disk.fault = { kind: "fail", written: false, after: 0 }
      yield* Effect.flip(process.journal.pause("a"))
      isSlow = true
      const reading = yield* Effect.forkChild(Effect.exit(process.journal.list))
      yield* Advance.settle
      yield* process.stop
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(reading)
      yield* (yield* start(disk, host, [everyMinute("a")])).stop
    })
  )
})
