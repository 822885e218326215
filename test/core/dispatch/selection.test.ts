import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Case, Dispatcher } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { cases, completedIds, history, layer, minutes, notes, onSlowLogs, passing, restart } from "./support.ts"

const done = () => Effect.succeed(Case.completed())

describe("options out of range are refused before anything is opened:", () => {
  const wrong: ReadonlyArray<readonly [Dispatcher.Options, RegExp]> = [
    [{ seats: 0 }, /the option seats is 0; give a whole number from 1 to 10000\./],
    [{ seats: 1.5 }, /seats is 1.5/],
    [{ seats: Infinity }, /seats is Infinity/],
    [{ seats: NaN }, /seats is NaN/],
    [{ applyAt: 0 }, /applyAt is 0; give a whole number from 1 to Infinity/],
    [{ failuresInARow: -1 }, /failuresInARow is -1/],
    [{ maxParks: "5" as never }, /maxParks is 5/],
    [{ stopWithin: "soon" as never }, /stopWithin is soon; give a duration of at most a day/],
    [{ grace: Infinity }, /grace is Infinity/]
  ]
  for (const [options, message] of wrong) {
    it.effect(JSON.stringify(options), () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Dispatcher.run({ cases: cases("a"), train: done }, options))
        assert.strictEqual(error._tag, "InvalidOption")
        assert.match(error.message, message)
        assert.deepStrictEqual(yield* history, [])
      }).pipe(Effect.provide(layer))
    )
  }
})

describe("a selection", () => {
  const invalid: ReadonlyArray<readonly [ReadonlyArray<Case.Case>, RegExp]> = [
    [[{ id: "a" }, { id: "b" }, { id: "a" }], /at case "a" \(duplicate id\): .* give each its own/],
    [[{ id: "a", rev: 0 }], /at case "a" \(invalid rev\): its rev is 0/],
    [[{ id: "a", rev: 1.5 }], /invalid rev/],
    [[{ id: "" }], /invalid id/],
    [[{ id: 7 as never }], /at case "7" \(invalid id\)/]
  ]
  for (const [selection, message] of invalid) {
    it.effect(`is refused: ${JSON.stringify(selection)}`, () =>
      Effect.gen(function* () {
        const { log, note } = notes()
        const error = yield* Effect.flip(
          Dispatcher.run({ cases: Effect.succeed(selection), train: (c) => Effect.as(note(c.id), Case.completed()) })
        )
        assert.strictEqual(error._tag, "InvalidSelection")
        assert.match(error.message, message)
        assert.deepStrictEqual(log, [])
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("with a rev lower than the log knows is refused", () =>
    Effect.gen(function* () {
      const run = (rev?: number) => Dispatcher.run({ cases: Effect.succeed([{ id: "a", rev }]), train: done })
      yield* run(3)
      const error = yield* Effect.flip(restart(run(2)))
      assert.match(
        error.message,
        /\(rev went back\): its rev is 2, but the log knows rev 3; give it a rev of at least that/
      )
      assert.strictEqual((yield* Effect.flip(restart(run())))._tag, "InvalidSelection")
      assert.deepStrictEqual(completedIds(yield* restart(run(3))), ["a"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("with a higher rev drops the steps of the lower and runs the case again", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const run = (rev: number) =>
        Dispatcher.run({
          cases: Effect.succeed([{ id: "a", rev }]),
          train: (_, seat) => Effect.as(seat.step("s", note(`rev ${seat.info.rev} ${seat.info.key}`)), Case.completed())
        })
      yield* run(1)
      yield* restart(run(1))
      yield* restart(run(2))
      assert.deepStrictEqual(log, ["rev 1 a/1", "rev 2 a/2"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("is read again when it runs out: a queue that grows is worked through", () =>
    Effect.gen(function* () {
      const queue = [{ id: "1" }]
      let reads = 0
      const summary = yield* passing(
        Dispatcher.run(
          {
            cases: Effect.sync(() => {
              reads++
              return queue
            }),
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* seat.step("s", Effect.sleep("1 minute"))
                if (queue.length < 5) queue.push({ id: `${Number(c.id) + 1}` })
                return Case.completed()
              })
          },
          { seats: 2 }
        )
      )
      assert.deepStrictEqual(completedIds(summary), ["1", "2", "3", "4", "5"])
      assert.isAtMost(reads, 12)
    }).pipe(Effect.provide(layer))
  )

  it.effect("is counted by who waits for a first seat, and new revs of it are said at once", () =>
    Effect.gen(function* () {
      const train = (c: Case.Case, seat: Dispatcher.Seat) =>
        Effect.gen(function* () {
          if (c.id === "fails") return yield* Effect.fail("no")
          if (c.id === "holds") yield* seat.hold("h", 1e12)
          if (c.id === "open") {
            yield* seat.step("s", Effect.void)
            return yield* Effect.never
          }
          return Case.completed()
        })
      const first = yield* Effect.forkChild(
        Dispatcher.run({ cases: cases("done", "grows", "fails", "holds", "open"), train }, { failuresInARow: 9 })
      )
      yield* minutes(1)
      yield* Dispatcher.stop
      yield* Fiber.join(first)
      const second = Effect.gen(function* () {
        const selection = [...["done", "fails", "holds", "open", "new"].map((id) => ({ id })), { id: "grows", rev: 2 }]
        const run = yield* Effect.forkChild(
          Dispatcher.run({ cases: Effect.succeed(selection), train: () => Effect.never }, { seats: 1 })
        )
        yield* minutes(1)
        const { seats, waiting } = yield* Dispatcher.snapshot
        assert.deepStrictEqual([seats[0]?.case, waiting.fresh, waiting.held], ["fails", 3, 1])
        yield* Dispatcher.stop
        yield* Fiber.join(run)
      })
      yield* restart(second)
      const events = yield* history
      const revised = events.filter(({ _tag }) => _tag === "CaseRevised")
      assert.lengthOf(revised, 1)
      assert.deepInclude(revised[0], { case: "grows", rev: 2, from: 1 })
      const started = events.filter((event) => event._tag === "RunStarted").at(-1)
      assert.deepStrictEqual(started?.found, { open: 1, parked: 0, woken: 0, held: 1, failed: 1 })
    }).pipe(Effect.provide(layer))
  )

  it.effect("that is read again does not count who is on a seat already", () =>
    Effect.gen(function* () {
      let reads = 0
      const run = yield* Effect.forkChild(
        Dispatcher.run({
          cases: Effect.sync(() => ["runs", "done", "later"].slice(0, ++reads + 1).map((id) => ({ id }))),
          train: (c) => (c.id === "done" ? Effect.succeed(Case.completed()) : Effect.never)
        })
      )
      yield* minutes(1)
      const { seats, waiting } = yield* Dispatcher.snapshot
      assert.deepStrictEqual(
        [seats.flatMap((seat) => seat?.case ?? []).toSorted(), waiting.fresh],
        [["later", "runs"], 0]
      )
      yield* Dispatcher.stop
      yield* Fiber.join(run)
    }).pipe(Effect.provide(layer))
  )

  it.effect("whose array the host changes in place is read as it is now", () =>
    Effect.gen(function* () {
      const queue = [{ id: "a" }, { id: "b" }]
      const summary = yield* Dispatcher.run(
        {
          cases: Effect.sync(() => queue),
          train: (c) =>
            Effect.sync(() => {
              if (c.id === "a") queue[1] = { id: "c" }
              return Case.completed()
            })
        },
        { seats: 1 }
      )
      assert.deepStrictEqual(completedIds(summary), ["a", "b", "c"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("with a higher rev of a case that runs is taken when that has left its seat", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const selection: Array<Case.Case> = [{ id: "a" }, { id: "b" }]
      yield* passing(
        Dispatcher.run(
          {
            cases: Effect.sync(() => [...selection]),
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* note(`${c.id} ${c.rev ?? 1}`)
                if (c.id === "b") selection[0] = { id: "a", rev: 2 }
                yield* seat.step("s", Effect.sleep(c.id === "b" ? "1 minute" : "5 minutes"))
                return Case.completed()
              })
          },
          { seats: 2 }
        )
      )
      assert.deepStrictEqual(log, ["a 1", "b 1", "a 2"])
      const revised = (yield* history).filter(({ _tag }) => _tag === "CaseRevised")
      assert.lengthOf(revised, 1)
      assert.deepInclude(revised[0], { case: "a", rev: 2, from: 1 })
    }).pipe(Effect.provide(layer))
  )

  it.effect("with a higher rev of a case that ignores its interruption is taken when that is gone", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const selection: Array<Case.Case> = [{ id: "a" }, { id: "b" }]
      yield* passing(
        Dispatcher.run(
          {
            cases: Effect.sync(() => [...selection]),
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* note(`${c.id} ${c.rev ?? 1}`)
                if (c.id === "b") {
                  yield* seat.step("s", Effect.sleep("1 minute"))
                  selection[0] = { id: "a", rev: 2 }
                } else if (c.rev !== 2) {
                  yield* Effect.addFinalizer(() => Effect.andThen(Effect.sleep("10 minutes"), note("a is gone")))
                  yield* Effect.sleep("10 seconds")
                  yield* seat.hold("h", 1e12)
                }
                return Case.completed()
              })
          },
          { seats: 2, stopWithin: "20 minutes" }
        )
      )
      assert.deepStrictEqual(log, ["a 1", "b 1", "a is gone", "a 2"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that fails ends the run with its own error", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Dispatcher.run({ cases: Effect.fail("no database" as const), train: done }))
      assert.strictEqual(error, "no database")
    }).pipe(Effect.provide(layer))
  )

  it.effect("that is empty, or done, ends the run at once", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* Dispatcher.run({ cases: cases(), train: done })).end, { _tag: "Finished" })
      yield* restart(Dispatcher.run({ cases: cases("a"), train: done }))
      const again = yield* restart(Dispatcher.run({ cases: cases("a"), train: () => Effect.die("ran again") }))
      assert.deepStrictEqual(completedIds(again), ["a"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that takes long to read is not waited for by a stop", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      const run = yield* Effect.forkChild(
        Dispatcher.run({ cases: Effect.andThen(Deferred.succeed(asked, undefined), Effect.never), train: done })
      )
      yield* Deferred.await(asked)
      yield* Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => dispatcher.stop)
      assert.strictEqual((yield* Fiber.join(run)).end._tag, "Stopped")
    }).pipe(Effect.provide(layer))
  )

  it.effect("may hold any strings as ids, and no two share anything", () =>
    Effect.gen(function* () {
      const ids = [
        "a",
        "a/1",
        "a/1/s",
        "A",
        "__proto__",
        "constructor",
        "%2F",
        "/",
        "\u0000",
        "é",
        "e\u0301",
        "\ud800",
        "x".repeat(10_000)
      ]
      const keys = new Set<string>()
      const run = Dispatcher.run({
        cases: cases(...ids),
        train: (_, seat) =>
          Effect.gen(function* () {
            keys.add(seat.info.key)
            return Case.completed(yield* seat.step("s", Effect.succeed(seat.info.case)))
          })
      })
      yield* run
      const summary = yield* restart(run)
      assert.deepStrictEqual(
        summary.completed.map((c) => [c.case, c.value]),
        ids.map((id) => [id, id])
      )
      assert.strictEqual(keys.size, ids.length)
    }).pipe(Effect.provide(layer))
  )
})

describe("the version", () => {
  for (const [how, version] of [
    ["takes long to read", Effect.never],
    ["ignores interruption", Effect.uninterruptible(Effect.never)]
  ] as const) {
    it.effect(`that ${how} is not waited for by a stop`, () =>
      Effect.gen(function* () {
        const run = yield* Effect.forkChild(Effect.exit(Dispatcher.run({ cases: cases("a"), version, train: done })))
        yield* Advance.settle
        const stopping = yield* Effect.forkChild(Dispatcher.stop)
        yield* Advance.advance("30 seconds", "1 second")
        assert.isDefined(stopping.pollUnsafe())
        assert.isDefined(run.pollUnsafe())
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("that cannot be read ends the run with the host's error", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Dispatcher.run({ cases: cases("a"), version: Effect.fail("no repository"), train: done })
      )
      assert.strictEqual(error, "no repository")
    }).pipe(Effect.provide(layer))
  )
})

describe("a case that was stopped before it began", () => {
  it.effect("does not begin when what has to be known before has been written", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const train = (c: Case.Case) => Effect.as(note(`${c.id} ${c.rev ?? 1}`), Case.completed())
      yield* passing(Dispatcher.run({ cases: cases("a"), train }), "15 seconds")
      const failing = () => Effect.fail("no")
      yield* passing(Dispatcher.run({ cases: cases("b"), train: failing }), "15 seconds")
      const run = yield* Effect.forkChild(Dispatcher.run({ cases: cases("b"), train }, { stopWithin: "10 minutes" }))
      // The start is written after a minute; then that the failed case is taken again.
      yield* Advance.advance("90 seconds", "30 seconds")
      const stopping = yield* Effect.forkChild(Dispatcher.stop)
      yield* minutes(5)
      assert.isDefined(stopping.pollUnsafe())
      yield* Fiber.join(run)
      assert.isTrue((yield* history).some(({ _tag }) => _tag === "CaseResumed"))
      assert.deepStrictEqual(log, ["a 1"])
    }).pipe(Effect.provide(onSlowLogs))
  )
})

describe("seats", () => {
  it.effect("are never more than asked for, and are all used", () =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases(...Array.from({ length: 20 }, (_, i) => `${i}`)),
            train: (_, seat) =>
              Effect.gen(function* () {
                most = Math.max(most, ++running)
                assert.isTrue(seat.info.seat >= 1 && seat.info.seat <= 3)
                yield* Effect.sleep("1 minute")
                running--
                return Case.completed()
              })
          },
          { seats: 3 }
        )
      )
      yield* minutes(7)
      yield* Advance.settle
      assert.strictEqual((yield* Fiber.join(run)).completed.length, 20)
      assert.strictEqual(most, 3)
    }).pipe(Effect.provide(layer))
  )

  it.effect("are given to a second run on the same log only after the first", () =>
    Effect.gen(function* () {
      const run = Dispatcher.run({
        cases: cases("a"),
        train: () => Effect.as(Effect.sleep("1 minute"), Case.completed())
      })
      const first = yield* Effect.forkChild(run)
      yield* Advance.settle
      const here = yield* Effect.flip(run)
      assert.match(here.message, /held by a run of this process .*Dispatcher.layerNamed/)
      assert.strictEqual((yield* Effect.flip(restart(run)))._tag, "LogHeld")
      yield* minutes(1)
      yield* Fiber.join(first)
    }).pipe(Effect.provide(layer))
  )
})
