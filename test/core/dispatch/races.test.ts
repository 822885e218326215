import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, References } from "effect"
import { Case, Dispatcher, Improvements, RecheckRule, Storage, Verdict } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { cases, changes, history, layer, minutes, Missing, notes, onSlowLogs, passing } from "./support.ts"

const seam = (change: (memory: Storage.Encoded) => Partial<Storage.Encoded>) =>
  Layer.unwrap(
    Effect.sync(() => {
      const memory = Storage.makeMemory()
      const storage = Storage.fromEncoded({ ...memory, ...change(memory) }, { alive: () => Effect.succeed(false) })
      return Layer.provideMerge(Dispatcher.layer, Layer.succeed(Storage.Storage, storage))
    })
  )
const difficult = { cases: cases("a"), train: () => Effect.succeed(Case.difficult("no")) }
const steps = (seconds: number) => ({
  cases: cases("a"),
  train: (_: Case.Case, seat: Dispatcher.Seat) =>
    Effect.as(seat.step("s", Effect.sleep(`${seconds} seconds`)), Case.completed())
})

describe("what is asked for, or happens, while something is being written:", () => {
  it.effect("a higher rev is run, though its case is claimed while that is written", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      let rev = 1
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: Effect.sync(() => [{ id: "a", rev }, { id: "b" }]),
          train: (c: Case.Case, seat) =>
            Effect.gen(function* () {
              if (c.id === "b") {
                yield* Effect.sleep("10 minutes")
                rev = 2
                return Case.completed(0)
              }
              if (c.rev === 1) yield* seat.hold("h", 12.5 * 60_000) // over while CaseRevised is being written
              yield* seat.step("s", note(`rev ${c.rev}`))
              return Case.completed(c.rev ?? 1)
            })
        })
      )
      yield* Advance.advance("40 minutes", "10 seconds")
      const summary = yield* Fiber.join(run)
      assert.include(log, "rev 2")
      assert.strictEqual(summary.completed.find((one) => one.case === "a")?.value, 2)
    }).pipe(Effect.provide(onSlowLogs))
  )

  it.effect("a storage that fails in a stop is told of", () => {
    let failing = false
    return Effect.gen(function* () {
      const run = yield* Effect.forkChild(Dispatcher.run(steps(5)))
      yield* Advance.advance("1 second")
      yield* Effect.forkChild(Dispatcher.stop)
      yield* Advance.advance("1 second")
      failing = true
      yield* minutes(1)
      const exit = yield* Fiber.await(run)
      assert.isTrue(Exit.isFailure(exit), JSON.stringify(exit))
    }).pipe(
      Effect.provide(
        seam(({ append }) => ({
          append: (...args) => Effect.suspend(() => (failing ? Effect.fail("disk gone") : append(...args)))
        }))
      )
    )
  })

  it.effect("a request that an apply is about to take cannot be cancelled", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const improvements = yield* Improvements.Improvements
      const workload = (apply: Effect.Effect<void>) => ({
        cases: cases("a", "b"),
        train: (c: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
          Effect.gen(function* () {
            yield* note(`${c.id} ${(yield* seat.park("p", { missing: c.id }))._tag}`)
            return Case.completed()
          }),
        improve: {
          request: Missing,
          apply: (batch: Improvements.Batch<typeof Missing.Type>) =>
            Effect.gen(function* () {
              yield* note(`${batch.name} takes ${batch.requests.map((one) => one.case)}`)
              yield* apply
              return yield* changes(batch)
            })
        }
      })
      const run = yield* Effect.forkChild(
        Dispatcher.run(workload(Effect.sleep("10 minutes")), { applyAt: 2, stopWithin: "1 second" })
      )
      while ((yield* Dispatcher.snapshot).applying === null) yield* minutes(1)
      yield* Effect.forkChild(Effect.exit(improvements.cancel("a/1/p")))
      yield* minutes(5)
      yield* Effect.forkChild(Dispatcher.stop)
      yield* minutes(3)
      yield* Fiber.await(run)
      yield* passing(Dispatcher.run(workload(Effect.void)))
      assert.deepStrictEqual(log.slice(0, 2), ["001 takes a,b", "001 takes a,b"])
    }).pipe(Effect.provide(onSlowLogs))
  )

  it.effect("no apply is called for nothing, when its only request is being cancelled", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const improvements = yield* Improvements.Improvements
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a", "b"),
          train: (c, seat) =>
            Effect.gen(function* () {
              if (c.id === "b") yield* Effect.sleep("10 minutes")
              else yield* seat.park("p", { missing: "x" })
              return Case.completed()
            }),
          improve: {
            request: Missing,
            apply: (batch) => Effect.andThen(note(`${batch.requests.length} requests`), changes(batch))
          }
        })
      )
      yield* Advance.advance("690 seconds", "10 seconds") // b's end is being written
      yield* Effect.forkChild(improvements.cancel("a/1/p"))
      yield* minutes(20)
      yield* Fiber.join(run)
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(onSlowLogs))
  )

  it.effect("a case that is forgotten runs as new, or forget says that it is on a seat", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const dispatcher = yield* Dispatcher.Dispatcher
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a"),
          train: (_, seat) =>
            Effect.gen(function* () {
              yield* seat.step("s", note(seat.info.key))
              yield* seat.hold("h", 10.5 * 60_000)
              return Case.completed()
            })
        })
      )
      yield* minutes(10)
      const forgetting = yield* Effect.forkChild(Effect.exit(dispatcher.forget("a")))
      yield* Advance.advance("20 minutes", "10 seconds")
      yield* Fiber.join(run)
      if (Exit.isSuccess(yield* Fiber.join(forgetting))) assert.deepStrictEqual(log, ["a/1", "a/1.2"])
    }).pipe(Effect.provide(onSlowLogs))
  )

  it.effect("a key names its round for ever, also when retry is asked for twice", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const dispatcher = yield* Dispatcher.Dispatcher
      let easy = false
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a", "b"),
          train: (c, seat) =>
            Effect.gen(function* () {
              if (c.id === "b") return yield* Effect.as(Effect.sleep("1 hour"), Case.completed())
              if (!easy) return Case.difficult("no")
              yield* note(seat.info.key)
              yield* seat.hold("h", 30 * 60_000)
              return Case.completed()
            })
        })
      )
      yield* minutes(10)
      easy = true
      yield* Effect.forkChild(dispatcher.retry("a"))
      yield* Advance.advance("30 seconds", "10 seconds")
      yield* Effect.forkChild(Effect.exit(dispatcher.retry("a")))
      yield* minutes(90)
      yield* Fiber.join(run)
      assert.strictEqual(log[0], log[1])
    }).pipe(Effect.provide(onSlowLogs))
  )

  it.effect("a change made while the end is written does not fail the run", () =>
    Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      const run = yield* Effect.forkChild(Dispatcher.run(difficult))
      while ((yield* Dispatcher.snapshot).counts.difficult === 0) yield* minutes(1)
      yield* Effect.forkChild(dispatcher.retry("a"))
      yield* minutes(10)
      const exit = yield* Fiber.await(run)
      assert.isTrue(Exit.isSuccess(exit), JSON.stringify(exit))
    }).pipe(Effect.provide(onSlowLogs))
  )

  it.effect("a retry that is in the log before the end is run", () =>
    Effect.gen(function* () {
      let runs = 0
      const dispatcher = yield* Dispatcher.Dispatcher
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a", "b"),
          train: (c) =>
            c.id === "b"
              ? Effect.as(Effect.sleep("10 minutes"), Case.completed())
              : Effect.sync(() => (++runs === 1 ? Case.difficult("no") : Case.completed()))
        })
      )
      yield* Advance.advance("690 seconds", "10 seconds") // b's end is being written
      yield* Effect.forkChild(dispatcher.retry("a"))
      yield* minutes(20)
      yield* Fiber.join(run)
      const tags = (yield* history).map(({ _tag }) => _tag)
      assert.isBelow(tags.indexOf("CaseRetried"), tags.indexOf("RunEnded"))
      assert.strictEqual(runs, 2)
    }).pipe(Effect.provide(onSlowLogs))
  )

  it.effect("a change asked for while the log is being released is answered", () =>
    Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      const run = yield* Effect.forkChild(Dispatcher.run(difficult))
      yield* Advance.advance("1 second")
      const retry = yield* Effect.forkDetach(Effect.exit(dispatcher.retry("a")))
      yield* minutes(10)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(run)))
      assert.isDefined(retry.pollUnsafe())
    }).pipe(
      Effect.provide(seam(({ release }) => ({ release: (...args) => Effect.delay(release(...args), "2 seconds") })))
    )
  )

  it.effect("interrupted while its start is written, leaves the log free within the grace", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(Dispatcher.run(steps(1)))
      for (let i = 0; i < 100; i++) yield* Effect.yieldNow
      const again = Effect.andThen(Fiber.interrupt(run), Dispatcher.run(steps(1)))
      const next = yield* Effect.exit(passing(again, "1 seconds"))
      assert.isTrue(Exit.isSuccess(next), JSON.stringify(next))
    }).pipe(Effect.provide(seam(({ append }) => ({ append: (...args) => Effect.delay(append(...args), "1 second") }))))
  )

  it.effect("interrupted between any two operations, ends at once", () =>
    Effect.gen(function* () {
      const late: Array<number> = []
      for (let k = 40; k < 90; k++) {
        yield* Effect.gen(function* () {
          const run = yield* Effect.forkChild(
            Effect.provideService(
              Dispatcher.run({
                cases: cases("a", "b"),
                train: (c, seat) =>
                  Effect.as(
                    c.id === "a" ? seat.step("s", Effect.void) : seat.park("p", { missing: "x" }),
                    Case.completed()
                  ),
                improve: { request: Missing, apply: changes }
              }),
              References.MaxOpsBeforeYield,
              6
            )
          )
          for (let i = 0; i < k; i++) yield* Effect.yieldNow
          run.interruptUnsafe()
          for (let i = 0; run.pollUnsafe() === undefined && i < 1000; i++) yield* Effect.yieldNow
          if (run.pollUnsafe() === undefined) late.push(k)
          yield* minutes(1)
        }).pipe(Effect.provide(layer, { local: true }))
      }
      assert.deepStrictEqual(late, [])
    })
  )

  it.effect("a retry is seen by the run though its caller gave up while it was written", () =>
    Effect.gen(function* () {
      let runs = 0
      const dispatcher = yield* Dispatcher.Dispatcher
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("b", "a"),
          train: (c) =>
            c.id === "b"
              ? Effect.as(Effect.sleep("10 hours"), Case.completed())
              : Effect.sync(() => (++runs === 1 ? Case.difficult("no") : Case.completed()))
        })
      )
      yield* minutes(10)
      yield* Effect.forkChild(Effect.timeout(dispatcher.retry("a"), "30 seconds"))
      yield* minutes(60)
      assert.isTrue((yield* history).some(({ _tag }) => _tag === "CaseRetried"))
      assert.strictEqual(runs, 2)
      void run
    }).pipe(Effect.provide(onSlowLogs))
  )

  it.effect("a case that waits for its first seat is counted once, also when it is forgotten", () =>
    Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      const first = yield* Effect.forkChild(
        Dispatcher.run({
          cases: cases("a"),
          train: (_, seat) => Effect.andThen(seat.step("s", Effect.void), Effect.never)
        })
      )
      yield* minutes(1)
      yield* Dispatcher.stop
      yield* Fiber.join(first)
      yield* Effect.forkChild(Dispatcher.run({ cases: cases("b", "a"), train: () => Effect.never }, { seats: 1 }))
      yield* minutes(1)
      assert.strictEqual((yield* Dispatcher.snapshot).waiting.fresh, 1)
      yield* dispatcher.forget("a")
      assert.strictEqual((yield* Dispatcher.snapshot).waiting.fresh, 1)
    }).pipe(Effect.provide(layer))
  )

  it.effect("a recheck whose case gets a higher rev during its try is void, and asks for no repair", () =>
    Effect.gen(function* () {
      let rev = 1
      const applied: Array<string> = []
      const summary = yield* passing(
        Dispatcher.run(
          {
            cases: Effect.sync(() => [{ id: "a", rev }, { id: "ask" }]),
            train: (c: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
              Effect.gen(function* () {
                if (c.id === "a") return Case.completed()
                yield* seat.park("p", { missing: "ask" })
                yield* Effect.sleep("1 minute")
                rev = 2
                return Case.difficult("")
              }),
            improve: {
              request: Missing,
              apply: (batch) => {
                applied.push(...batch.requests.map((one) => `${one.id} of rev ${one.rev}`))
                return changes(batch)
              },
              recheck: () => Effect.delay(Effect.succeed(Verdict.wrong({ missing: "x" })), "5 minutes")
            }
          },
          { seats: 2, applyAt: 1, rechecks: 1, recheckRule: RecheckRule.allFail(1) }
        )
      )
      assert.strictEqual(summary.rechecks[0]?.outcome._tag, "Void", applied.join())
    }).pipe(Effect.provide(layer))
  )

  it.effect("a case whose step fails during a stop leaves its seat at once", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases("a"),
            train: (_, seat) =>
              Effect.gen(function* () {
                yield* Effect.ignore(seat.step("s", Effect.andThen(Effect.sleep("5 seconds"), Effect.fail("no"))))
                yield* note("goes on")
                return yield* Effect.never
              })
          },
          { stopWithin: "1 hour" }
        )
      )
      yield* Advance.advance("1 second")
      yield* Effect.forkChild(Dispatcher.stop)
      yield* minutes(30)
      assert.isDefined(run.pollUnsafe())
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(layer))
  )
})
