import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal } from "shiftboss"
import { Advance, ScriptedWorkflows, WallClock } from "shiftboss/testing"
import { beginning, day, hour, makeDisk, makeWorld, minute, start } from "./kit.ts"

const everyMinute: ScheduleJournal.Schedule = { workflowId: "a", everySeconds: 60 }
const slotsOf = (firings: ReadonlyArray<ScheduleJournal.Firing>) => firings.map(({ slot }) => slot)

describe("the clock", () => {
  it.live("set back an hour makes no slot fire again and does not silence it for an hour", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start: beginning })
      const host = ScriptedWorkflows.make()
      host.endsAtOnce = "succeeded"
      const schedules = [everyMinute, { workflowId: "daily", everySeconds: 86_400 }]
      const { journal } = yield* Effect.provide(start(yield* makeDisk, host, schedules), clock.layer)
      const steps: Array<number> = []
      yield* Effect.forkChild(
        Stream.runForEach(journal.events, (event) =>
          Effect.sync(() => event._tag === "ClockStepped" && steps.push(event.byMillis))
        )
      )
      yield* Effect.forkChild(Effect.provide(journal.run, clock.layer))
      yield* clock.pass("3 minutes")
      assert.deepStrictEqual(slotsOf(host.submitted), [1, 2, 3])
      yield* clock.set(beginning + 3 * minute - hour)
      yield* clock.pass("5 minutes")
      // the loop notices within half a minute, and waits for the second slot from then on
      assert.deepStrictEqual(slotsOf(host.submitted), [1, 2, 3, 4, 5, 6, 7])
      yield* clock.suspend("2 hours")
      yield* clock.pass("2 minutes")
      const ids = host.submitted.map(({ runId }) => runId)
      assert.strictEqual(new Set(ids).size, ids.length)
      assert.isAtMost(host.submitted.length, 10)
      assert.deepStrictEqual(steps, [-hour, 2 * hour])
      const daily = (yield* journal.list).find(({ workflowId }) => workflowId === "daily")
      assert.strictEqual(daily?.nextAt, beginning + day)
    })
  )
})

describe("a run that goes on", () => {
  it.effect("is asked after no more often because the clock was set back", () =>
    Effect.gen(function* () {
      const { host, journal } = yield* makeWorld([{ workflowId: "a", everySeconds: 86_400 }])
      yield* TestClock.adjust(day)
      yield* journal.tick
      yield* TestClock.setTime(beginning)
      yield* Effect.forkChild(journal.run)
      yield* Advance.settle
      const before = host.asked
      yield* Advance.advance("5 minutes", "1 second")
      assert.isAtMost(host.asked - before, 12)
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

describe("a host that does not answer", () => {
  it.effect("is told of, with its schedule and why", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      const seen: Array<ScheduleJournal.LiveEvent> = []
      yield* Effect.forkChild(
        Stream.runForEach(journal.events, (event) => Effect.sync(() => void seen.push(event))),
        { startImmediately: true }
      )
      host.manner = "silent"
      yield* after(minute)
      yield* Advance.settle
      const silent = seen.find((event) => event._tag === "HostSilent")
      assert.deepInclude(silent, { at: beginning + minute, workflowId: "a" })
      assert.isTrue(silent?._tag === "HostSilent" && Cause.isCause(silent.cause))
    })
  )

  it("leaves requests unanswered, which says what to do and what the cause was", () => {
    const told = (cause?: unknown) =>
      new ScheduleJournal.SchedulesUnavailable({ reason: "JournalFailed", ...(cause === undefined ? {} : { cause }) })
    const advice = "the journal could not be written, and nothing has changed. Mend what the cause names and try again"
    assert.strictEqual(told(new Error("no space")).message, `${advice} (no space).`)
    assert.strictEqual(told().message, `${advice}.`)
  })
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

describe("a journal connected twice", () => {
  it.effect("stays connected when the older of the two scopes closes", () =>
    Effect.gen(function* () {
      const { journal, connect } = yield* ScheduleJournal.connection
      const world = yield* makeWorld([everyMinute])
      const older = yield* Scope.make()
      yield* Scope.provide(connect(world.journal), older)
      yield* connect(world.journal)
      yield* Scope.close(older, Exit.void)
      assert.strictEqual((yield* journal.list).length, 1)
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

describe("a host that answers something else", () => {
  it.effect("has not answered: nothing is decided, and it is asked again", () =>
    Effect.gen(function* () {
      const { host, journal, after, summary } = yield* makeWorld([everyMinute])
      const { submit, outcome } = host.workflows
      for (const odd of [null, undefined, 5, "Accepted", {}, { _tag: "Done" }, { _tag: "Refused", reason: 5 }]) {
        Object.assign(host.workflows, { submit: () => Effect.succeed(odd) })
        yield* after(minute)
        assert.deepInclude((yield* summary("a")).pending, { _tag: "Run", slot: 1 })
        assert.strictEqual((yield* Effect.flip(journal.pause("a")))._tag, "SchedulesUnavailable")
      }
      Object.assign(host.workflows, { submit })
      yield* after(minute)
      for (const odd of [null, undefined, 5, "done", {}]) {
        Object.assign(host.workflows, { outcome: () => Effect.succeed(odd) })
        yield* after(minute)
        assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "running" })
      }
      Object.assign(host.workflows, { outcome })
      host.end("succeeded")
      yield* after(minute)
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "succeeded" })
    })
  )

  it.effect("and is no effect at all is none", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      const { submit } = host.workflows
      const throwing = () => {
        throw new Error("no")
      }
      for (const odd of [() => undefined, () => Promise.resolve({ _tag: "Accepted" }), throwing, 5]) {
        Object.assign(host.workflows, { submit: odd })
        yield* after(minute)
        assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Pending" })
      }
      Object.assign(host.workflows, { submit })
      yield* after(minute)
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "running" })
    })
  )

  it.effect("at great length is kept in part", () =>
    Effect.gen(function* () {
      const { host, journal, after } = yield* makeWorld([everyMinute])
      const reason = "no ".repeat(400_000)
      Object.assign(host.workflows, { submit: () => Effect.succeed({ _tag: "Refused", reason }) })
      yield* after(minute)
      assert.deepInclude(yield* journal.explain("a", 1), { reason: "refused", detail: reason.slice(0, 1000) })
    })
  )
})

describe("a clock that gives fractions of milliseconds", () => {
  it.live("is rounded down", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start: beginning + 0.25 })
      const host = ScriptedWorkflows.make()
      const disk = yield* makeDisk
      const ticked = Effect.gen(function* () {
        const { journal } = yield* start(disk, host, [everyMinute])
        yield* clock.pass("60000500 micros")
        yield* journal.tick
        return yield* journal.list
      })
      const [summary] = yield* Effect.provide(ticked, clock.layer)
      assert.deepInclude(summary, { ran: 1, nextAt: beginning + 2 * minute })
    })
  )
})
