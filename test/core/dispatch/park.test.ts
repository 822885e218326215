import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Case, Dispatcher } from "shiftboss"
import { WallClock } from "shiftboss/testing"
import {
  cases,
  changes,
  completedIds,
  history,
  layer,
  minutes,
  Missing,
  notes,
  nothing,
  passing,
  restart
} from "./support.ts"

describe("a park", () => {
  it.effect("gives the seat back; the woken case goes before a new one and straight to where it was", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const summary = yield* passing(
        Dispatcher.run(
          {
            cases: cases("a", "b", "c"),
            improve: { request: Missing, apply: changes },
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* seat.step("try-1", Effect.andThen(note(`${c.id} try-1`), Effect.sleep("1 minute")))
                if (c.id !== "c") {
                  const applied = yield* seat.park("after-1", { missing: "x" })
                  yield* seat.step("try-2", note(`${c.id} try-2 on ${applied._tag === "Changed" ? applied.to : "?"}`))
                }
                return Case.completed()
              })
          },
          { seats: 1, applyAt: 2 }
        )
      )
      assert.strictEqual(summary.completed.length, 3)
      assert.deepStrictEqual(log, ["a try-1", "b try-1", "a try-2 on v001", "b try-2 on v001", "c try-1"])
    }).pipe(Effect.provide(layer))
  )

  // Each of these would keep its seat, or swallow that it was taken, if a park ended with an error.
  const stubborn: Record<string, (park: Effect.Effect<unknown>) => Effect.Effect<unknown>> = {
    catchCause: (park) => Effect.catchCause(park, () => Effect.die("swallowed")),
    exit: (park) => Effect.andThen(Effect.exit(park), Effect.die("swallowed")),
    race: (park) => Effect.raceFirst(park, Effect.sleep("1 day")),
    forEach: (park) => Effect.forEach([park, Effect.sleep("1 second")], (one) => one, { concurrency: 2 }),
    joined: (park) => Effect.flatMap(Effect.forkChild(park), Fiber.join),
    forked: (park) => Effect.andThen(Effect.forkChild(park), Effect.sleep("1 second")),
    detached: (park) => Effect.andThen(Effect.forkDetach(park), Effect.sleep("1 second")),
    forever: (park) => Effect.forever(Effect.ignoreCause(park)),
    masked: (park) => Effect.uninterruptible(Effect.catchCause(park, () => Effect.die("swallowed"))),
    "timed out": (park) => Effect.timeoutOption(park, "1 day"),
    ensured: (park) => Effect.ensuring(park, Effect.sleep("1 second"))
  }
  for (const [how, wrap] of Object.entries(stubborn)) {
    it.effect(`closes the scope of the case and takes its seat, whatever train does (${how})`, () =>
      Effect.gen(function* () {
        const { log, note } = notes()
        let first = true
        const summary = yield* passing(
          Dispatcher.run(
            {
              cases: cases("a"),
              improve: { request: Missing, apply: nothing },
              train: (_, seat) =>
                Effect.gen(function* () {
                  yield* Effect.acquireRelease(note("+"), () => note("-"))
                  yield* seat.step("s", note("step"))
                  const park = seat.park("p", { missing: "x" })
                  if (first) {
                    first = false
                    yield* wrap(park)
                    return Case.difficult("went on without an answer")
                  }
                  yield* park
                  return Case.completed()
                })
            },
            { seats: 1 }
          ),
          "1 seconds"
        )
        assert.deepStrictEqual([log, completedIds(summary)], [["+", "step", "-", "+", "-"], ["a"]])
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("takes the seat of a case that hangs uninterruptibly after the grace, and does not run it twice", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const run = Dispatcher.run(
        {
          cases: cases("hung", "b"),
          improve: { request: Missing, apply: nothing },
          train: (c, seat) =>
            Effect.gen(function* () {
              yield* note(c.id)
              if (c.id === "b") return Case.completed()
              return yield* Effect.uninterruptible(
                Effect.andThen(Effect.ignoreCause(seat.park("p", { missing: "x" })), Effect.never)
              )
            })
        },
        { seats: 1, grace: "5 seconds", stopWithin: "1 minute" }
      )
      const fiber = yield* Effect.forkChild(Effect.flip(run))
      yield* minutes(3)
      const error = yield* Fiber.join(fiber)
      assert.deepStrictEqual(log, ["hung", "b"])
      assert.deepStrictEqual(error._tag === "StopTimedOut" && [error.cases, error.storage], [["hung"], false])
      assert.deepStrictEqual((yield* Dispatcher.snapshot).end, { _tag: "StopTimedOut", cases: ["hung"] })
      // The log is held for as long as the fiber lives, so nobody can run the case beside it.
      assert.strictEqual((yield* Effect.flip(run))._tag, "LogHeld")
    }).pipe(Effect.provide(layer))
  )

  it.effect("of a case whose fiber ends late is answered once that is gone", () =>
    Effect.gen(function* () {
      let runs = 0
      const summary = yield* passing(
        Dispatcher.run(
          {
            cases: cases("slow"),
            improve: { request: Missing, apply: nothing },
            train: (_, seat) =>
              Effect.gen(function* () {
                if (runs++ === 0) {
                  return yield* Effect.ensuring(
                    Effect.andThen(seat.park("p", { missing: "x" }), Effect.never),
                    Effect.sleep("30 seconds")
                  )
                }
                yield* seat.park("p", { missing: "x" })
                return Case.completed()
              })
          },
          { grace: "5 seconds", stopWithin: "1 minute" }
        ),
        "1 seconds"
      )
      assert.deepStrictEqual([completedIds(summary), runs], [["slow"], 2])
    }).pipe(Effect.provide(layer))
  )

  it.effect("during an apply waits for the next one", () =>
    Effect.gen(function* () {
      const batches: Array<ReadonlyArray<string>> = []
      const summary = yield* passing(
        Dispatcher.run(
          {
            cases: cases("a", "b"),
            improve: {
              request: Missing,
              apply: (batch) => {
                batches.push(batch.requests.map((request) => request.id))
                return Effect.delay(changes(batch), "10 minutes")
              }
            },
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* seat.step("try", Effect.sleep(c.id === "a" ? "1 minute" : "5 minutes")) // b ends in the middle of the apply
                const applied = yield* seat.park("p", { missing: c.id })
                return applied._tag === "Changed" ? Case.completed(applied.to) : Case.difficult(applied.reason)
              })
          },
          { seats: 2, applyAt: 1 }
        )
      )
      assert.deepStrictEqual(batches, [["a/1/p"], ["b/1/p"]])
      assert.deepStrictEqual(summary.completed, [
        { case: "a", value: "v001" },
        { case: "b", value: "v002" }
      ])
      assert.deepStrictEqual(summary.applies, ["001", "002"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("one too many makes the case difficult", () =>
    Effect.gen(function* () {
      const summary = yield* Dispatcher.run(
        {
          cases: cases("a"),
          improve: { request: Missing, apply: nothing },
          train: (_, seat) =>
            Effect.gen(function* () {
              for (let n = 1; n <= 9; n++) yield* seat.park(`p${n}`, { missing: "x" })
              return Case.completed()
            })
        },
        { maxParks: 2 }
      )
      assert.deepStrictEqual(summary.difficult, [
        {
          case: "a",
          reason: `it parked 2 times and asks once more (for "p3")`
        }
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("asked again with another request under the same name answers with what became of the first", () =>
    Effect.gen(function* () {
      const taken: Array<unknown> = []
      const run = (missing: string, fails: boolean) =>
        Dispatcher.run({
          cases: cases("a"),
          improve: {
            request: Missing,
            apply: (batch) => {
              taken.push(...batch.requests.map((request) => request.payload))
              return changes(batch)
            }
          },
          train: (_, seat) =>
            Effect.gen(function* () {
              yield* seat.park("p", { missing })
              if (fails) return yield* Effect.fail("later")
              return Case.completed()
            })
        })
      yield* run("first", true)
      const summary = yield* restart(run("second", false))
      assert.deepStrictEqual([taken, completedIds(summary)], [[{ missing: "first" }], ["a"]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("with a request that its schema rejects fails the case and parks nothing", () =>
    Effect.gen(function* () {
      const summary = yield* Dispatcher.run({
        cases: cases("a"),
        improve: { request: Missing, apply: changes },
        train: (_, seat) => Effect.as(seat.park("p", { missing: 5 } as never), Case.completed())
      })
      assert.match(summary.failed[0]!.reason, /the request of the park "p" does not fit its schema/)
      assert.isFalse((yield* history).some((event) => event._tag === "CaseParked"))
    }).pipe(Effect.provide(layer))
  )

  it.effect("wakes in the order in which the cases parked", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      yield* passing(
        Dispatcher.run(
          {
            cases: cases("a", "b", "c"),
            improve: { request: Missing, apply: changes },
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* seat.step(
                  "wait",
                  Effect.sleep(c.id === "a" ? "9 minutes" : c.id === "b" ? "5 minutes" : "1 minute")
                )
                yield* seat.park("p", { missing: c.id })
                yield* note(c.id)
                return Case.completed()
              })
          },
          { seats: 3 }
        )
      )
      assert.deepStrictEqual(log, ["c", "b", "a"])
    }).pipe(Effect.provide(layer))
  )
})

describe("a hold", () => {
  const until = 5 * 3_600_000

  it.effect("gives the seat back, charges nobody, and goes before a new case when it is over", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const summary = yield* passing(
        Dispatcher.run(
          {
            cases: cases("a", "b", "c"),
            train: (c, seat) =>
              Effect.gen(function* () {
                if (c.id === "a") yield* seat.hold("quota", until)
                yield* note(c.id)
                if (c.id === "b") yield* seat.step("long", Effect.sleep("6 hours"))
                return Case.completed()
              })
          },
          { seats: 1, failuresInARow: 1 }
        ),
        "1 hours"
      )
      assert.deepStrictEqual(log, ["b", "a", "c"])
      assert.strictEqual(summary.completed.length, 3)
    }).pipe(Effect.provide(layer))
  )

  it.effect("keeps the run open, and outlives it: the next start waits for what is left, not again", () =>
    Effect.gen(function* () {
      const workload = {
        cases: cases("a"),
        // computed anew in each run: the first stands
        train: (_: Case.Case, seat: Dispatcher.Seat) =>
          Effect.gen(function* () {
            const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
            yield* seat.hold("quota", now + until)
            return Case.completed()
          })
      }
      const first = yield* Effect.forkChild(Dispatcher.run(workload))
      yield* minutes(60)
      const dispatcher = yield* Dispatcher.Dispatcher
      assert.deepStrictEqual(yield* dispatcher.explain("a"), {
        _tag: "Waiting",
        for: "hold",
        because: "it holds until a time",
        until
      })
      yield* dispatcher.stop
      assert.deepStrictEqual((yield* Fiber.join(first)).waiting, ["a"])
      const second = yield* Effect.forkChild(restart(Dispatcher.run(workload)))
      yield* minutes(239)
      assert.isUndefined(second.pollUnsafe())
      yield* minutes(1)
      assert.deepStrictEqual(completedIds(yield* Fiber.join(second)), ["a"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that is past answers at once, and one that is no time fails the case", () =>
    Effect.gen(function* () {
      yield* minutes(1)
      const summary = yield* Dispatcher.run({
        cases: cases("past", "never"),
        train: (c, seat) => Effect.as(seat.hold("h", c.id === "past" ? 1 : Infinity), Case.completed())
      })
      assert.deepStrictEqual(completedIds(summary), ["past"])
      assert.match(summary.failed[0]!.reason, /the hold "h" ends at Infinity .*: give it epoch milliseconds/)
    }).pipe(Effect.provide(layer))
  )

  it.effect("that ends while all seats are taken waits for one without looking again and again", () =>
    Effect.gen(function* () {
      const clock = yield* WallClock.make({ start: 0 })
      const run = Dispatcher.run(
        {
          cases: cases("held", "long"),
          train: (c, seat) =>
            Effect.gen(function* () {
              if (c.id === "held") yield* seat.hold("quota", until)
              else yield* seat.step("long", Effect.sleep("9 hours"))
              return Case.completed()
            })
        },
        { seats: 1 }
      )
      // A loop that looks again at once never comes to rest, and the clock says so.
      const summary = yield* clock.passWhile(Effect.provide(run, layer))
      assert.deepStrictEqual(completedIds(summary), ["long", "held"])
      assert.strictEqual(yield* clock.currentTimeMillis, 9 * 3_600_000)
    })
  )
})
