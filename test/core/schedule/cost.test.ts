/**
 * What schedules cost, counted: a time would say the same only on a quiet machine.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Scheduler, Stream } from "effect"
import { TestClock } from "effect/testing"
import { type ScheduleJournal, Storage } from "shiftboss"
import { ScriptedWorkflows, WallClock } from "shiftboss/testing"
import { Agenda } from "../../../src/core/internal/schedule/agenda.ts"
import { beginning, day, type Disk, makeDisk, minute, start } from "./kit.ts"

/** Steps that effects took, and elements of tables that were gone through. */
const counts = { steps: 0, visits: 0 }

/** A scheduler that counts: it is asked before every step. */
const counting = (scheduler: Scheduler.Scheduler): Scheduler.Scheduler => ({
  executionMode: scheduler.executionMode,
  makeDispatcher: () => scheduler.makeDispatcher(),
  shouldYield: (fiber) => {
    counts.steps++
    return scheduler.shouldYield(fiber)
  }
})

type Cost = typeof counts

/** The same but for what is done once, such as building what a library builds at its first use. */
const assertSame = (cost: Cost | undefined, other: Cost | undefined) => {
  for (const what of ["steps", "visits"] as const) {
    assert.closeTo(cost?.[what] ?? Number.NaN, other?.[what] ?? Number.NaN, 20, what)
  }
}

const iterators = [Map.prototype, Set.prototype].flatMap((table) =>
  ["keys", "values", "entries", Symbol.iterator].map((way) => ({
    table,
    way,
    iterate: Reflect.get(table, way) as () => Iterator<unknown>
  }))
)

/** Counts what an effect does; tables are watched while it runs, whoever made them. */
const counted = Effect.fnUntraced(function* (effect: Effect.Effect<unknown, unknown>) {
  const scheduler = yield* Scheduler.Scheduler
  for (const { table, way, iterate } of iterators) {
    Reflect.set(table, way, function* (this: unknown) {
      for (const one of { [Symbol.iterator]: () => Reflect.apply(iterate, this, []) as Iterator<unknown> }) {
        counts.visits++
        yield one
      }
    })
  }
  Object.assign(counts, { steps: 0, visits: 0 })
  yield* effect.pipe(
    Effect.provideService(Scheduler.Scheduler, counting(scheduler)),
    Effect.ensuring(Effect.sync(() => iterators.forEach(({ table, way, iterate }) => Reflect.set(table, way, iterate))))
  )
  return { ...counts }
})

/** `due` of the schedules come due every minute, the others every day. */
const many = (count: number, due: number): ReadonlyArray<ScheduleJournal.Schedule> =>
  Array.from({ length: count }, (_, i) => ({ workflowId: `workflow-${i}`, everySeconds: i < due ? 60 : 86_400 }))

const open = Effect.fnUntraced(function* (count: number, due: number) {
  yield* TestClock.setTime(beginning)
  const disk = yield* makeDisk
  const host = ScriptedWorkflows.make()
  host.endsAtOnce = "succeeded"
  const { journal } = yield* start(disk, host, many(count, due))
  return { disk, host, journal }
})

describe("a tick", () => {
  it.effect("with nothing due costs the same with any number of schedules", () =>
    Effect.gen(function* () {
      const costs: Array<Cost> = []
      for (const count of [10, 5000]) {
        const { journal } = yield* open(count, 0)
        yield* journal.tick
        costs.push(yield* counted(journal.tick))
      }
      assertSame(costs[1], costs[0])
    })
  )

  it.effect("costs what is due, and not what there is", () =>
    Effect.gen(function* () {
      const costs: Array<Cost> = []
      for (const [count, due] of [
        [20, 10],
        [5000, 10],
        [5000, 1000]
      ] as const) {
        const { disk, host, journal } = yield* open(count, due)
        yield* TestClock.adjust(minute)
        const { appends } = disk
        costs.push(yield* counted(journal.tick))
        assert.strictEqual(host.submitted.length, due)
        assert.strictEqual(disk.appends - appends, 2 * due)
      }
      const [few, fewOfMany, moreOfMany] = costs
      assertSame(fewOfMany, few)
      assert.isAtMost(moreOfMany?.steps ?? Infinity, 110 * (few?.steps ?? 0))
      assert.isAtMost(moreOfMany?.visits ?? Infinity, 110 * (few?.visits ?? 0))
    })
  )
})

describe("a machine that was asleep", () => {
  it.live("costs those that came due, not a look at all", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start: beginning })
      const host = ScriptedWorkflows.make()
      host.endsAtOnce = "succeeded"
      const looked = Effect.gen(function* () {
        const { journal } = yield* start(yield* makeDisk, host, many(5000, 10))
        yield* journal.tick
        yield* clock.suspend("1 hour")
        return yield* counted(journal.tick)
      })
      const { visits } = yield* Effect.provide(looked, clock.layer)
      assert.isAtMost(visits, 500)
    })
  )
})

describe("the agenda", () => {
  it("keeps no more than what it needs of schedules that are set again and again", () => {
    const agenda = new Agenda()
    agenda.set("far", 1e9)
    for (let at = 0; at < 10_000; at++) agenda.set("near", 1e6 - at)
    assert.isAtMost(agenda.size, 100)
    assert.strictEqual(agenda.earliest, 1e6 - 9999)
    assert.deepStrictEqual(agenda.take(1e6), ["near"])
    assert.deepStrictEqual(agenda.take(1e9), ["far"])
    assert.strictEqual(agenda.earliest, Infinity)
  })

  it("takes again what is set again for the same time, and once what is set twice", () => {
    const agenda = new Agenda()
    for (let i = 0; i < 2; i++) agenda.set("a", 5)
    assert.deepStrictEqual(agenda.take(5), ["a"])
    assert.deepStrictEqual(agenda.take(5), [])
    agenda.set("a", 5)
    assert.deepStrictEqual(agenda.take(5), ["a"])
  })
})

describe("a long life", () => {
  /** Bytes that went to the log, by appending and by rewriting it. */
  const weigh = (disk: Disk) => {
    const written = { appended: 0, rewritten: 0, longest: 0 }
    const { open: openLog } = disk.storage
    const storage = Storage.Storage.of({
      ...disk.storage,
      open: (name) =>
        Effect.map(openLog(name), (log) => ({
          ...log,
          append: (entries) =>
            Effect.suspend(() => {
              written.appended += JSON.stringify(entries).length
              return log.append(entries)
            }),
          replace: (entries) =>
            Effect.suspend(() => {
              written.rewritten += JSON.stringify(entries).length
              return log.replace(entries)
            })
        }))
    })
    return { written, weighed: { ...disk, storage } }
  }

  it.effect("leaves a log that does not grow, rewritten at a share of what was appended", () =>
    Effect.gen(function* () {
      const lengths: Array<number> = []
      for (const rounds of [150, 1000]) {
        yield* TestClock.setTime(beginning)
        const host = ScriptedWorkflows.make()
        host.endsAtOnce = "succeeded"
        const { written, weighed } = weigh(yield* makeDisk)
        const process = yield* start(weighed, host, many(3, 3))
        for (let i = 0; i < rounds; i++) {
          yield* TestClock.adjust(minute)
          yield* process.journal.tick
        }
        yield* process.stop
        assert.isAtMost(written.rewritten, written.appended)
        const stored = yield* Stream.runCollect(weighed.storage.read("schedules"))
        lengths.push(stored.length)
        const again = yield* start(weighed, host, many(3, 3))
        const slots = (yield* again.journal.list).map(({ lastSlot }) => lastSlot)
        assert.deepStrictEqual(
          slots,
          Array.from({ length: 3 }, () => rounds)
        )
        yield* again.stop
      }
      for (const length of lengths) assert.isAtMost(length, 1010)
    })
  )

  it.effect("of days in which nobody looked costs one record", () =>
    Effect.gen(function* () {
      const { disk, journal } = yield* open(1, 1)
      yield* TestClock.adjust(day)
      const few = { ...(yield* counted(journal.tick)), entries: (yield* disk.entries()).length }
      const { disk: other, journal: later } = yield* open(1, 1)
      yield* TestClock.adjust(3652 * day)
      const most = { ...(yield* counted(later.tick)), entries: (yield* other.entries()).length }
      assertSame(most, few)
      assert.strictEqual(most.entries, few.entries)
    })
  )
})
