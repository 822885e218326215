import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { ScheduleJournal } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { makeWorld, minute } from "./kit.ts"

const everyMinute = (workflowId: string): ScheduleJournal.Schedule => ({ workflowId, everySeconds: 60 })
const named = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}${i}`)

describe("a host that hangs on many schedules", () => {
  const [hanging, sound] = [named("hanging", 100), named("sound", 5)]
  const makeHanging = Effect.fnUntraced(function* (options: ScheduleJournal.Options) {
    const world = yield* makeWorld([...sound, ...hanging].map(everyMinute), options)
    for (const workflowId of hanging) world.host.mannerOf.set(workflowId, "hanging")
    world.host.endsAtOnce = "succeeded"
    return world
  })

  it.effect("makes no other one late by more than some seconds", () =>
    Effect.gen(function* () {
      const { host, journal } = yield* makeHanging({})
      yield* Effect.forkChild(journal.run)
      yield* Advance.advance("1 minute")
      yield* Advance.advance("8 seconds", "1 second")
      assert.strictEqual(host.submitted.length, sound.length)
    })
  )

  it.effect("makes no other one late at all once it is known, however many they are", () =>
    Effect.gen(function* () {
      const { host, journal } = yield* makeHanging({ concurrency: 1 })
      yield* Effect.forkChild(journal.run)
      yield* Advance.advance("3 minutes", "1 second")
      for (let i = 0; i < 3; i++) {
        const before = host.submitted.length
        yield* Advance.advance("1 minute", "1 second")
        assert.strictEqual(host.submitted.length, before + sound.length)
        assert.isTrue(host.submitted.slice(before).every(({ late }) => Duration.toMillis(late) === 0))
      }
    })
  )

  it.effect("does not make one late for good that was once among them", () =>
    Effect.gen(function* () {
      const { host, journal } = yield* makeHanging({ concurrency: 1 })
      host.mannerOf.set("sound0", "hanging")
      yield* Effect.forkChild(journal.run)
      yield* Advance.advance("2 minutes", "1 second")
      host.mannerOf.delete("sound0")
      yield* Advance.advance("5 minutes", "1 second")
      const before = host.submitted.length
      yield* Advance.advance("2 minutes", "1 second")
      const late = host.submitted.slice(before).map((firing) => Duration.toMillis(firing.late))
      assert.deepStrictEqual(
        late,
        Array.from({ length: 2 * sound.length }, () => 0)
      )
    })
  )

  it.effect("is asked by no more than so many at a time, and not for ever", () =>
    Effect.gen(function* () {
      const { host, journal, summary } = yield* makeHanging({})
      yield* TestClock.adjust(minute)
      const tick = yield* Effect.forkChild(journal.tick)
      yield* Advance.settle
      assert.isAtMost(host.asked, 16 + sound.length)
      yield* Advance.advance("1 minute", "1 second")
      yield* Fiber.join(tick)
      assert.strictEqual(host.asked, hanging.length + sound.length)
      assert.strictEqual((yield* summary("hanging99")).pending?._tag, "Run")
    })
  )

  it.effect("and answers again is asked about all of them soon", () =>
    Effect.gen(function* () {
      const { host, journal } = yield* makeHanging({})
      yield* Effect.forkChild(journal.run)
      yield* Advance.advance("3 minutes", "5 seconds")
      host.mannerOf.clear()
      yield* Advance.advance("70 seconds", "2 seconds")
      const first = host.submitted.filter(({ slot }) => slot === 1).map(({ workflowId }) => workflowId)
      assert.sameMembers(first, [...hanging, ...sound])
    })
  )
})

describe("a host that ignores interruption", () => {
  const makeStubborn = Effect.gen(function* () {
    const world = yield* makeWorld([everyMinute("a"), everyMinute("b")])
    const { host } = world
    const { submit } = host.workflows
    const answer = yield* Deferred.make<void>()
    const begun: Array<string> = []
    Object.assign(host.workflows, {
      submit: Effect.fnUntraced(function* (firing: ScheduleJournal.Firing) {
        begun.push(firing.runId)
        if (firing.runId === "a@1.1") yield* Deferred.await(answer)
        return yield* submit(firing)
      }, Effect.uninterruptible)
    })
    yield* TestClock.adjust(minute)
    const tick = yield* Effect.forkChild(world.journal.tick)
    yield* Advance.advance("31 seconds", "1 second")
    yield* Fiber.join(tick)
    return { ...world, answer, begun, journal: world.journal }
  })

  it.effect("holds up neither the tick nor others, and gets no second request while it is at the first", () =>
    Effect.gen(function* () {
      const { answer, begun, host, journal } = yield* makeStubborn
      assert.deepStrictEqual(begun, ["a@1.1", "b@1.1"])
      host.end("succeeded")
      yield* TestClock.adjust("30 seconds")
      const tick = yield* Effect.forkChild(journal.tick)
      yield* Advance.advance("35 seconds", "1 second")
      yield* Fiber.join(tick)
      assert.deepStrictEqual(begun, ["a@1.1", "b@1.1", "b@1.2"])
      yield* Deferred.succeed(answer, undefined)
      yield* Advance.advance("30 seconds", "1 second")
      yield* journal.tick
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "running" })
      assert.deepStrictEqual(
        begun.filter((runId) => runId === "a@1.1"),
        ["a@1.1"]
      )
    })
  )

  it.effect("does not hold up the end of the journal, or an interruption", () =>
    Effect.gen(function* () {
      const { answer, begun, journal, restart } = yield* makeStubborn
      yield* TestClock.adjust(5000)
      const tick = yield* Effect.forkChild(journal.tick)
      yield* Advance.settle
      yield* Fiber.interrupt(tick)
      yield* restart()
      assert.deepStrictEqual(begun, ["a@1.1", "b@1.1"])
      yield* Deferred.succeed(answer, undefined)
    })
  )
})
