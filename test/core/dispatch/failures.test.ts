import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { Case, Dispatcher, Storage } from "shiftboss"
import { Advance, FaultyStorage } from "shiftboss/testing"
import { cases, changes, completedIds, history, layer, minutes, Missing, notes, passing, restart } from "./support.ts"

describe("a failed case", () => {
  it.effect("is taken again at the next start, once, with its steps kept; the failure is cleared and says so", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const run = (fails: boolean) =>
        Dispatcher.run({
          cases: cases("a"),
          train: (_, seat) =>
            Effect.gen(function* () {
              yield* seat.step("one", note("one"))
              yield* note(`start ${seat.info.start}`)
              if (fails) return yield* Effect.fail("no network")
              return Case.completed()
            })
        })
      const first = yield* run(true)
      assert.match(first.failed[0]!.reason, /no network/)
      yield* restart(run(true))
      assert.deepStrictEqual(completedIds(yield* restart(run(false))), ["a"])
      assert.deepStrictEqual(log, ["one", "start 1", "start 2", "start 3"])
      const resumed = (yield* history).filter((event) => event._tag === "CaseResumed")
      assert.deepStrictEqual(
        resumed.map((event) => event.reason.split("\n")[0]),
        ["Error: no network", "Error: no network"]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("does not touch the others, and a reason that is too long is cut", () =>
    Effect.gen(function* () {
      const summary = yield* Dispatcher.run({
        cases: cases("a", "b"),
        train: (c) => (c.id === "a" ? Effect.fail("x".repeat(9_000)) : Effect.succeed(Case.completed()))
      })
      assert.deepStrictEqual(completedIds(summary), ["b"])
      assert.isBelow(summary.failed[0]!.reason.length, 4_100)
    }).pipe(Effect.provide(layer))
  )
})

describe("the breaker", () => {
  it.effect("ends the run after so many failures in a row, naming each, and its trip stays visible", () =>
    Effect.gen(function* () {
      const run = Dispatcher.run(
        { cases: cases("a", "b", "c", "d"), train: (c) => Effect.fail(`${c.id} broke`) },
        { seats: 1, failuresInARow: 3 }
      )
      const error = yield* Effect.flip(run)
      assert.deepStrictEqual(error._tag === "BreakerTripped" && error.failures.map((f) => f.case), ["a", "b", "c"])
      assert.match(error.message, /3 cases failed in a row .*\(a: .*a broke; b: .*; c: .*\)\. Mend what they share/)
      const { end } = yield* Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => dispatcher.snapshot)
      assert.strictEqual(end?._tag === "BreakerTripped" && end.failures.length, 3)
    }).pipe(Effect.provide(layer))
  )

  it.effect(
    "counts again from nothing when a step goes through, and does not count holds, parks or interruptions",
    () =>
      Effect.gen(function* () {
        const summary = yield* passing(
          Dispatcher.run(
            {
              cases: cases("f1", "f2", "step", "f3", "hold", "park", "interrupted", "f4"),
              improve: { request: Missing, apply: changes },
              train: (c, seat) =>
                Effect.gen(function* () {
                  if (c.id.startsWith("f")) return yield* Effect.fail("broke")
                  if (c.id === "step") yield* seat.step("s", Effect.void)
                  if (c.id === "hold") yield* seat.hold("h", 60_000)
                  if (c.id === "park") yield* seat.park("p", { missing: "x" })
                  if (c.id === "interrupted") return yield* Effect.interrupt
                  return Case.difficult("")
                })
            },
            { seats: 1, failuresInARow: 3 }
          )
        )
        assert.deepStrictEqual(
          summary.failed.map((f) => f.case),
          ["f1", "f2", "f3", "interrupted", "f4"]
        )
      }).pipe(Effect.provide(layer))
  )

  it.effect("lets steps end that are under way", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      yield* Effect.flip(
        passing(
          Dispatcher.run(
            {
              cases: cases("long", "f"),
              train: (c, seat) =>
                c.id === "f"
                  ? Effect.fail("broke")
                  : Effect.as(
                      seat.step("s", Effect.andThen(Effect.sleep("10 minutes"), note("ended"))),
                      Case.completed()
                    )
            },
            { seats: 2, failuresInARow: 1, stopWithin: "1 hour" }
          )
        )
      )
      assert.deepStrictEqual(log, ["ended"])
    }).pipe(Effect.provide(layer))
  )
})

describe("SystemDown", () => {
  it.effect("ends the run at the first sign, from a case or an apply, and charges nobody", () =>
    Effect.gen(function* () {
      let down = true
      const { log, note } = notes()
      const run = Dispatcher.run(
        {
          cases: cases("a", "b"),
          improve: {
            request: Missing,
            apply: (batch) => (down ? Effect.fail(new Case.SystemDown({ reason: "the VPN is gone" })) : changes(batch))
          },
          train: (c, seat) =>
            Effect.gen(function* () {
              yield* seat.step("before", note(`${c.id} before`))
              if (c.id === "a") {
                yield* seat.park("p", { missing: "x" })
                return Case.completed()
              }
              yield* seat.step(
                "s",
                Effect.suspend(() => (down ? Effect.fail(new Case.SystemDown({ reason: "no disk" })) : note("s")))
              )
              return Case.completed()
            })
        },
        { seats: 1 }
      )
      const error = yield* Effect.flip(run)
      assert.strictEqual(error._tag === "SystemDown" && error.reason, "no disk")
      down = false
      yield* restart(run)
      assert.deepStrictEqual(log, ["a before", "b before", "s"])
      assert.isFalse((yield* history).some((event) => event._tag === "CaseFailed" || event._tag === "ApplyFailed"))
    }).pipe(Effect.provide(layer))
  )

  it.effect("of an apply leaves it begun: it is called again under its name", () =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const run = Dispatcher.run({
        cases: cases("a"),
        improve: {
          request: Missing,
          apply: (batch) => {
            calls.push(`${batch.name} ${batch.again}`)
            return batch.again ? changes(batch) : Effect.fail(new Case.SystemDown({ reason: "x" }))
          }
        },
        train: (_, seat) => Effect.as(seat.park("p", { missing: "x" }), Case.completed())
      })
      assert.strictEqual((yield* Effect.flip(run))._tag, "SystemDown")
      assert.deepStrictEqual(completedIds(yield* restart(run)), ["a"])
      assert.deepStrictEqual(calls, ["001 false", "001 true"])
    }).pipe(Effect.provide(layer))
  )
})

describe("a storage that fails", () => {
  it.effect("ends the run, whatever train catches, and is not the case's fault", () =>
    Effect.gen(function* () {
      const memory = Storage.makeMemory()
      const on = (faults: ReadonlyArray<FaultyStorage.Fault>) =>
        Layer.fresh(Dispatcher.layer).pipe(
          Layer.provide(Layer.succeed(Storage.Storage, FaultyStorage.make(faults, memory).storage))
        )
      const { log, note } = notes()
      const run = Dispatcher.run({
        cases: cases("a"),
        train: (_, seat) =>
          Effect.gen(function* () {
            yield* seat.step("one", note("one"))
            yield* Effect.catchCause(seat.step("two", note("two")), () => note("swallowed"))
            return Case.completed()
          })
      })
      // the appends before it are the start of the run and the first step
      const exit = yield* Effect.exit(Effect.provide(run, on([{ on: "append", at: 3, wrong: "fail" }])))
      assert.isTrue(
        Exit.isFailure(exit) &&
          exit.cause.reasons.some((reason) => reason._tag === "Fail" && reason.error._tag === "StorageError")
      )
      assert.deepStrictEqual(completedIds(yield* Effect.provide(run, on([]))), ["a"])
      assert.deepStrictEqual(log, ["one", "two", "two"])
    })
  )
})

describe("an interruption of the run", () => {
  it.effect("releases what the cases hold, and journals nothing half done", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const reached = yield* Deferred.make<void>()
      const run = Dispatcher.run({
        cases: cases("a"),
        train: (_, seat) =>
          Effect.gen(function* () {
            yield* Effect.acquireRelease(note("+"), () => note("-"))
            return yield* seat.step("s", Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
          })
      })
      const fiber = yield* Effect.forkChild(run)
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(log, ["+", "-"])
      assert.deepStrictEqual(
        (yield* history).map((event) => event._tag),
        ["RunStarted"]
      )
      const storage = yield* Storage.Storage
      yield* Effect.scoped(Effect.flatMap(storage.open("dispatch"), (opened) => Stream.runDrain(opened.replay)))
    }).pipe(Effect.provide(layer))
  )

  it.effect("waits for what cases, an apply and the selection still have to clean up", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const cleaning = (what: string) =>
        Effect.onInterrupt(Effect.never, () => Effect.delay(note(`${what} cleaned up`), "3 seconds"))
      const improve = { request: Missing, apply: () => cleaning("apply") }
      const ask = (_: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
        Effect.as(seat.park("p", { missing: "x" }), Case.completed())
      const runs: ReadonlyArray<Effect.Effect<unknown, unknown, Dispatcher.Dispatcher>> = [
        Dispatcher.run({ cases: cases("a"), train: () => cleaning("case") }),
        Dispatcher.run({ cases: cases("b"), improve, train: ask }, { applyAt: 1 }),
        Dispatcher.run({ cases: cleaning("selection"), train: () => Effect.succeed(Case.completed()) })
      ]
      for (const run of runs) {
        const fiber = yield* Effect.forkChild(run)
        yield* Advance.advance("1 second")
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
        yield* Advance.advance("2 seconds")
        assert.isUndefined(interrupting.pollUnsafe())
        yield* Advance.advance("1 second")
        assert.isDefined(interrupting.pollUnsafe())
      }
      assert.deepStrictEqual(log, ["case cleaned up", "apply cleaned up", "selection cleaned up"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("does not wait longer than the grace for a step that ignores it", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases("a"),
            train: (_, seat) => Effect.as(seat.step("s", Effect.uninterruptible(Effect.never)), Case.completed())
          },
          { grace: "5 seconds" }
        )
      )
      yield* minutes(1)
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
      yield* minutes(1)
      assert.isDefined(interrupting.pollUnsafe())
    }).pipe(Effect.provide(layer))
  )
})
