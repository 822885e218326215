import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Duration, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal, Storage } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { beginning, day, type Disk, hour, makeDisk, minute, revive } from "./kit.ts"
import { makeInProcess } from "../../../src/core/internal/schedule/inProcess.ts"

const build = Effect.fnUntraced(function* (
  storage: Storage.Storage["Service"],
  run: () => Effect.Effect<unknown, unknown>
) {
  const layer = ScheduleJournal.layerEffects({ a: { everySeconds: 60, run } })
  const context = yield* Layer.build(Layer.fresh(layer.pipe(Layer.provide(Layer.succeed(Storage.Storage, storage)))))
  return yield* ScheduleJournal.ScheduleJournal.pipe(Effect.provideContext(context))
})

describe("effects of this process", () => {
  it.effect("run on their slots and their failures stop the schedule", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const journal = yield* build(disk.storage, () => Effect.fail("no"))
      yield* Effect.forkChild(journal.run)
      yield* Advance.advance("4 minutes", "1 second")
      assert.deepInclude((yield* journal.list)[0], { state: "stopped", failuresInRow: 3, ran: 3 })
    })
  )

  it.effect("that throw, or are no effects, fail", () =>
    Effect.gen(function* () {
      const runs: ReadonlyArray<() => unknown> = [
        () => {
          throw new Error("no")
        },
        () => undefined,
        () => Promise.resolve()
      ]
      for (const run of runs) {
        const { storage } = yield* makeDisk
        const journal = yield* build(storage, run as () => Effect.Effect<unknown>)
        yield* TestClock.adjust(minute)
        yield* journal.tick
        yield* Advance.settle
        yield* TestClock.adjust(2000)
        yield* journal.tick
        assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "failed" })
      }
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
          const journal = yield* build(disk.storage, () =>
            Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
          )
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
      const journal = yield* build(disk.storage, () => Effect.sync(() => void runs++))
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

describe("a run that the end of its process cuts off", () => {
  /** A process with one workflow, whose runs go on until the process ends. */
  const live = Effect.fnUntraced(function* (disk: Disk, firings: Array<ScheduleJournal.EffectFiring>) {
    const scope = yield* Scope.make()
    const layer = ScheduleJournal.layerEffects({
      a: {
        everySeconds: 86_400,
        input: { topic: "sales" },
        resumable: true,
        run: (firing) =>
          Effect.andThen(
            Effect.sync(() => firings.push(firing)),
            Effect.never
          )
      }
    }).pipe(Layer.provide(Layer.succeed(Storage.Storage, disk.storage)))
    const context = yield* Layer.buildWithScope(Layer.fresh(layer), scope)
    const { tick, explain } = Context.get(context, ScheduleJournal.ScheduleJournal)
    return { tick: Effect.andThen(tick, Advance.settle), explain, stop: Scope.close(scope, Exit.void) }
  })
  /** Nothing of it is written any more. */
  const crash = Effect.fnUntraced(function* (disk: Disk, { stop }: Effect.Success<ReturnType<typeof live>>) {
    disk.fault = { kind: "fail", written: false, after: 0 }
    yield* stop
    yield* revive(disk)
  })

  /** A process that crashed under the run of its first slot. */
  const cutOff = Effect.gen(function* () {
    const disk = yield* makeDisk
    const firings: Array<ScheduleJournal.EffectFiring> = []
    const process = yield* live(disk, firings)
    yield* TestClock.adjust(day)
    yield* process.tick
    yield* crash(disk, process)
    return { disk, firings }
  })

  it.effect("goes on in the next one when it is resumable, under its run id, and is told", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(beginning)
      const { disk, firings } = yield* cutOff
      yield* TestClock.adjust(hour)
      const second = yield* live(disk, firings)
      yield* second.tick
      yield* second.tick
      assert.deepStrictEqual(
        firings.map(({ runId, slot, dueAt, input, again, late }) => [runId, slot, dueAt, input, again, late]),
        [
          ["a@1.1", 1, beginning + day, { topic: "sales" }, false, Duration.zero],
          ["a@1.1", 1, beginning + day, { topic: "sales" }, true, Duration.millis(hour)]
        ]
      )
      assert.deepInclude(yield* second.explain("a", 1), { _tag: "Ran", ending: "running" })
    })
  )

  it.effect("goes on however often its process ends in good order", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(beginning)
      const disk = yield* makeDisk
      const firings: Array<ScheduleJournal.EffectFiring> = []
      for (let i = 0; i < 6; i++) {
        const process = yield* live(disk, firings)
        yield* TestClock.adjust(i === 0 ? day : minute)
        yield* process.tick
        yield* process.stop
      }
      assert.deepStrictEqual(
        firings.map(({ runId, again }) => [runId, again]),
        [["a@1.1", false], ...Array.from({ length: 5 }, () => ["a@1.1", true])]
      )
    })
  )

  it.effect("goes on also when that could not be written at first", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(beginning)
      for (const written of [false, true]) {
        const { disk, firings } = yield* cutOff
        const second = yield* live(disk, firings)
        disk.fault = { kind: "fail", written, after: 0 }
        yield* second.tick
        assert.strictEqual(firings.length, 1)
        yield* TestClock.adjust(minute)
        yield* second.tick
        assert.deepStrictEqual(
          firings.map(({ runId, again }) => [runId, again]),
          [
            ["a@1.1", false],
            ["a@1.1", true]
          ]
        )
        assert.deepInclude(yield* second.explain("a", 1), { _tag: "Ran", ending: "running" })
        yield* second.stop
      }
    })
  )

  it.effect("is not given up for writes that fail: those are no crashes", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(beginning)
      const { disk, firings } = yield* cutOff
      const second = yield* live(disk, firings)
      for (let i = 0; i < 8; i++) {
        disk.fault = { kind: "fail", written: true, after: 0 }
        yield* second.tick
        assert.isUndefined(disk.fault)
        yield* TestClock.adjust(minute)
      }
      yield* second.tick
      assert.strictEqual(firings.length, 2)
      assert.deepInclude(yield* second.explain("a", 1), { _tag: "Ran", ending: "running" })
    })
  )

  it.effect("is begun by the next one when it is asked for while its process ends", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const begun: Array<string> = []
      let isSlow = true
      const workflow = {
        run: ({ runId }: ScheduleJournal.EffectFiring) =>
          Effect.sync(() => begun.push(runId)).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => (isSlow ? Effect.sleep("5 seconds") : Effect.void))
          ),
        resumable: true
      }
      const host = makeInProcess(disk.storage, "runs", new Map([["a", workflow]]), Context.empty())
      const firing = (slot: number): ScheduleJournal.Firing => {
        return { workflowId: "a", slot, runId: `a@1.${slot}`, input: null, dueAt: 0, late: Duration.zero }
      }
      const scope = yield* Scope.make()
      const first = yield* Scope.provide(host, scope)
      yield* first.submit(firing(1))
      yield* Advance.settle
      const ending = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* Advance.settle
      yield* Effect.exit(first.submit(firing(2)))
      yield* Effect.exit(first.outcome("a@1.1"))
      yield* Advance.advance("6 seconds")
      yield* Fiber.join(ending)
      isSlow = false
      const second = yield* host
      assert.strictEqual(yield* second.outcome("a@1.2"), "unknown")
      assert.strictEqual(yield* second.outcome("a@1.1"), "running")
      const last = (yield* Stream.runCollect(disk.storage.read("runs"))).at(-1)
      assert.include(JSON.stringify(last), '"crashes":0')
      yield* second.submit(firing(2))
      yield* Advance.settle
      assert.deepStrictEqual(begun, ["a@1.1", "a@1.1", "a@1.2"])
    })
  )

  it.effect("is lost when three processes crashed under it", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(beginning)
      const disk = yield* makeDisk
      const firings: Array<ScheduleJournal.EffectFiring> = []
      for (let i = 0; i < 3; i++) {
        const process = yield* live(disk, firings)
        yield* TestClock.adjust(i === 0 ? day : minute)
        yield* process.tick
        yield* crash(disk, process)
      }
      const last = yield* live(disk, firings)
      yield* last.tick
      assert.strictEqual(firings.length, 3)
      assert.deepInclude(yield* last.explain("a", 1), { _tag: "Ran", ending: "lost" })
    })
  )
})

describe("an ending that could not be written", () => {
  it.effect("is written when the run is asked after", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(beginning)
      const disk = yield* makeDisk
      const journal = yield* build(disk.storage, () => Effect.sleep("10 seconds"))
      yield* TestClock.adjust(minute)
      yield* journal.tick
      disk.fault = { kind: "fail", written: false, after: 0 }
      yield* Advance.advance("11 seconds")
      const runs = Stream.runCollect(disk.storage.read("schedules/runs"))
      assert.strictEqual((yield* runs).length, 1)
      yield* journal.tick
      assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran", ending: "succeeded" })
      assert.include(JSON.stringify((yield* runs)[1]), "succeeded")
      assert.strictEqual((yield* runs).length, 2)
    })
  )
})

describe("a start that could not be written", () => {
  for (const written of [false, true]) {
    it.effect(`is made by the next request, once (${written ? "it was written" : "it was not written"})`, () =>
      Effect.gen(function* () {
        yield* TestClock.setTime(beginning)
        const disk = yield* makeDisk
        let runs = 0
        const journal = yield* build(disk.storage, () => Effect.sync(() => void runs++))
        yield* TestClock.adjust(minute)
        // after the pending slot, the start
        disk.fault = { kind: "fail", written, after: 1 }
        yield* journal.tick
        assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Pending" })
        yield* TestClock.adjust(5000)
        yield* journal.tick
        yield* Advance.settle
        assert.strictEqual(runs, 1)
        assert.deepInclude(yield* journal.explain("a", 1), { _tag: "Ran" })
      })
    )
  }
})

describe("declarations of effects", () => {
  it.effect("are checked", () =>
    Effect.gen(function* () {
      const { storage } = yield* makeDisk
      const run = () => Effect.void
      const wrong: ReadonlyArray<unknown> = [
        null,
        undefined,
        7,
        { a: null },
        { a: { everySeconds: 60 } },
        { a: { everySeconds: 60, run: Effect.void } },
        { a: { everySeconds: 60, run, resumable: "yes" } },
        { a: { everySeconds: 59, run } },
        { "": { everySeconds: 60, run } },
        {
          get a() {
            throw new Error("no")
          }
        }
      ]
      for (const workflows of wrong) {
        const layer = ScheduleJournal.layerEffects(workflows as { a: ScheduleJournal.EffectSchedule<never> })
        const error = yield* Effect.flip(Layer.build(Layer.provide(layer, Layer.succeed(Storage.Storage, storage))))
        assert.strictEqual(error._tag, "InvalidRequest")
      }
    })
  )
})
