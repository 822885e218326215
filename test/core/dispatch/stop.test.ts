import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { Case, Dispatcher, Storage } from "shiftboss"
import { Advance, FaultyStorage } from "shiftboss/testing"
import { cases, changes, completedIds, layer, minutes, Missing, notes, passing, restart } from "./support.ts"

const stop = Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => dispatcher.stop)

const long = (note: (line: string) => Effect.Effect<void>) => ({
  cases: cases("a", "b", "c"),
  train: (c: Case.Case, seat: Dispatcher.Seat) =>
    Effect.gen(function* () {
      yield* seat.step("one", Effect.andThen(Effect.sleep("5 minutes"), note(`${c.id} one`)))
      yield* Effect.sleep("1 minute") // between steps
      yield* seat.step("two", note(`${c.id} two`))
      return Case.completed()
    })
})

describe("a stop", () => {
  it.effect("lets a step end, keeps its result, starts no other; the next start goes on from there", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const first = yield* Effect.forkChild(Dispatcher.run(long(note), { seats: 2, stopWithin: "1 hour" }))
      yield* minutes(4)
      const stopping = yield* Effect.forkChild(stop)
      yield* minutes(1)
      assert.deepStrictEqual((yield* Fiber.join(first)).end, { _tag: "Stopped" })
      yield* Fiber.join(stopping)
      assert.deepStrictEqual(log, ["a one", "b one"])
      assert.strictEqual((yield* restart(passing(Dispatcher.run(long(note), { seats: 2 })))).completed.length, 3)
      assert.deepStrictEqual(log.slice(2).toSorted(), ["a two", "b two", "c one", "c two"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("takes the seat of a case between steps at once", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const first = yield* Effect.forkChild(Dispatcher.run(long(note), { seats: 1 }))
      yield* minutes(5)
      yield* stop // no time passes
      assert.deepStrictEqual([(yield* Fiber.join(first)).end._tag, log], ["Stopped", ["a one"]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("interrupts what is left when its time is over, and lets it clean up", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const first = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases("a"),
            train: (_, seat) =>
              Effect.as(
                seat.step(
                  "s",
                  Effect.andThen(
                    Effect.acquireRelease(note("+"), () => note("-")),
                    Effect.never
                  )
                ),
                Case.completed()
              )
          },
          { stopWithin: "15 seconds" }
        )
      )
      yield* minutes(1)
      yield* Effect.forkChild(stop)
      yield* Advance.advance("14999 millis")
      assert.deepStrictEqual(log, ["+"])
      yield* Advance.advance("1 millis")
      assert.deepStrictEqual(log, ["+", "-"])
      assert.deepStrictEqual((yield* Fiber.join(first)).end._tag, "Stopped")
    }).pipe(Effect.provide(layer))
  )

  it.effect(
    "ends within its bound though a step ignores interruption; its log is then held until the step is gone",
    () =>
      Effect.gen(function* () {
        const { log, note } = notes()
        const release = yield* Deferred.make<void>()
        const run = (stuck: boolean) =>
          Dispatcher.run(
            {
              cases: cases("a"),
              train: (_: Case.Case, seat: Dispatcher.Seat) =>
                Effect.gen(function* () {
                  const body = stuck ? Effect.uninterruptible(Deferred.await(release)) : Effect.void
                  yield* seat.step("stuck", Effect.andThen(note("stuck"), body))
                  yield* seat.step("after", note("after"))
                  return Case.completed()
                })
            },
            { stopWithin: "15 seconds", grace: "5 seconds" }
          )
        const first = yield* Effect.forkChild(Effect.flip(run(true)))
        yield* minutes(1)
        yield* Effect.forkChild(stop)
        yield* Advance.advance("20 seconds", "1 second")
        const error = yield* Fiber.join(first)
        assert.deepStrictEqual(error._tag === "StopTimedOut" && [error.cases, error.storage], [["a"], false])
        assert.match(error.message, /this ignores interruption and goes on: case a\. Its log stays held/)
        assert.strictEqual((yield* Effect.flip(restart(run(false))))._tag, "LogHeld")
        yield* Deferred.succeed(release, undefined)
        yield* Advance.settle
        assert.deepStrictEqual(completedIds(yield* restart(run(false))), ["a"])
        assert.deepStrictEqual(log, ["stuck", "stuck", "after"])
      }).pipe(Effect.provide(layer))
  )

  it.effect("lets an apply end, and gives up one that only waits for its turn", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const workload = {
        cases: cases("p", "r"),
        improve: {
          request: Missing,
          apply: (batch: Parameters<typeof changes>[0]) =>
            Effect.andThen(note("apply"), Effect.delay(changes(batch), "10 seconds"))
        },
        train: (c: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
          Effect.gen(function* () {
            if (c.id === "p") {
              yield* seat.step("ask", Effect.sleep("100 millis"))
              yield* seat.park("p", { missing: "x" })
            } else yield* seat.step("read", { reads: true }, Effect.sleep("1 minute"))
            return Case.completed()
          })
      }
      const first = yield* Effect.forkChild(Dispatcher.run(workload, { applyAt: 1, stopWithin: "2 minutes" }))
      yield* Advance.advance("1 second")
      yield* Effect.forkChild(stop) // the apply waits for the reader
      yield* minutes(2)
      assert.deepStrictEqual([(yield* Fiber.join(first)).waiting, log], [["p"], []])
      const second = yield* Effect.forkChild(
        restart(
          Effect.gen(function* () {
            const run = yield* Effect.forkChild(Dispatcher.run(workload, { applyAt: 1, stopWithin: "2 minutes" }))
            yield* Advance.settle
            const stopping = yield* Effect.forkChild(stop) // the apply runs
            yield* Advance.advance("10 seconds")
            yield* Fiber.join(stopping)
            return yield* Fiber.join(run)
          })
        )
      )
      assert.deepStrictEqual((yield* Fiber.join(second)).applies, ["001"])
      assert.deepStrictEqual(log, ["apply"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("without a run, or asked twice, succeeds", () =>
    Effect.gen(function* () {
      yield* stop
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          long(() => Effect.void),
          { seats: 1 }
        )
      )
      yield* Advance.settle
      const both = yield* Effect.forkChild(Effect.all([stop, stop], { concurrency: 2 }))
      yield* minutes(1)
      yield* Fiber.join(both)
      assert.strictEqual((yield* Fiber.join(run)).end._tag, "Stopped")
    }).pipe(Effect.provide(layer))
  )

  it.effect("comes from the signal that the main program provides", () =>
    Effect.gen(function* () {
      const signal = yield* Deferred.make<void>()
      const run = yield* Effect.forkChild(
        Effect.provideService(Dispatcher.run(long(() => Effect.void)), Dispatcher.StopSignal, Deferred.await(signal))
      )
      yield* minutes(5)
      yield* Deferred.succeed(signal, undefined)
      assert.strictEqual((yield* Fiber.join(run)).end._tag, "Stopped")
    }).pipe(Effect.provide(layer))
  )

  it.effect("requested on logs that no other process shares reaches the run of this one", () =>
    Effect.gen(function* () {
      yield* Dispatcher.requestStop
      const run = yield* Effect.forkChild(Dispatcher.run(long(() => Effect.void)))
      yield* minutes(5)
      yield* Dispatcher.requestStop
      assert.strictEqual((yield* Fiber.join(run)).end._tag, "Stopped")
    }).pipe(Effect.provide(layer))
  )

  it.effect("asked for through the log is seen within a second, and a stale request is not obeyed", () =>
    Effect.gen(function* () {
      const storage = yield* Storage.Storage
      const shared = Storage.Storage.of({ ...storage, shared: true })
      const here = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        effect.pipe(Effect.provide(Layer.fresh(Dispatcher.layer)), Effect.provideService(Storage.Storage, shared))
      yield* here(Dispatcher.requestStop)
      const run = yield* Effect.forkChild(here(Dispatcher.run(long(() => Effect.void))))
      yield* minutes(5)
      yield* Advance.advance("1 second")
      assert.isUndefined(run.pollUnsafe())
      yield* here(Dispatcher.requestStop)
      yield* Advance.advance("1 second")
      assert.strictEqual((yield* Fiber.join(run)).end._tag, "Stopped")
    }).pipe(Effect.provide(layer))
  )

  const hanging = (operation: "open" | "append" | "read" | "release", at: number) =>
    Effect.gen(function* () {
      const faulty = FaultyStorage.make([{ on: operation, at, wrong: "hang" }])
      const here = Layer.fresh(Dispatcher.layer).pipe(Layer.provide(Layer.succeed(Storage.Storage, faulty.storage)))
      return yield* Effect.gen(function* () {
        const run = yield* Effect.forkChild(
          Effect.exit(
            Dispatcher.run(
              long(() => Effect.void),
              { stopWithin: "15 seconds", grace: "5 seconds" }
            )
          )
        )
        yield* minutes(7)
        const stopping = yield* Effect.forkChild(stop)
        yield* Advance.advance("30 seconds", "1 second")
        assert.isDefined(run.pollUnsafe(), "the run ended")
        assert.isDefined(stopping.pollUnsafe(), "the stop ended")
        const exit = yield* Fiber.join(run)
        return Exit.isSuccess(exit) ? exit.value.end._tag : (exit.cause.reasons[0] as { error?: unknown }).error
      }).pipe(Effect.provide(here))
    })

  it.effect("ends within its bound when the storage does not answer an append", () =>
    Effect.gen(function* () {
      for (let at = 1; at <= 4; at++) {
        const error = yield* hanging("append", at)
        assert.strictEqual((error as { _tag: string })._tag, "StopTimedOut", `append ${at}`)
        assert.isTrue((error as Dispatcher.StopTimedOut).storage, `append ${at}`)
      }
    })
  )

  it.effect("ends within its bound when the storage does not open", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* hanging("open", 1), "Stopped")
      assert.strictEqual(yield* hanging("read", 1), "Stopped")
    })
  )
})
