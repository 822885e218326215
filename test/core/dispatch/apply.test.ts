import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Case, Dispatcher, Improvements } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { cases, changes, completedIds, history, layer, minutes, Missing, notes, passing, restart } from "./support.ts"

const parkOnce = (_: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
  Effect.as(seat.park("p", { missing: seat.info.case }), Case.completed())

describe("an apply", () => {
  it.effect("fires at so many requests, takes all that is pending, and is named by number", () =>
    Effect.gen(function* () {
      const batches: Array<string> = []
      yield* Dispatcher.run(
        {
          cases: cases("a", "b", "c", "d", "e"),
          version: Effect.succeed("r1"),
          improve: {
            request: Missing,
            apply: (batch) => {
              const sent = batch.requests.map((r) => `${r.id}=${r.payload.missing}`)
              batches.push(`${batch.name} on ${batch.version} ${batch.again} ${sent.join(" ")}`)
              return changes(batch)
            }
          },
          train: parkOnce
        },
        { seats: 1, applyAt: 2 }
      )
      assert.deepStrictEqual(batches, [
        "001 on r1 false a/1/p=a b/1/p=b",
        "002 on r1 false c/1/p=c d/1/p=d",
        // fewer, because nothing else was left to do
        "003 on r1 false e/1/p=e"
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that has nothing to change is recorded as skipped and answers its requests", () =>
    Effect.gen(function* () {
      const summary = yield* Dispatcher.run({
        cases: cases("a"),
        improve: { request: Missing, apply: () => Effect.succeed(Improvements.skipped("known already")) },
        train: (_, seat) =>
          Effect.map(seat.park("p", { missing: "x" }), (applied) =>
            Case.completed(applied._tag === "Skipped" ? applied.reason : "?")
          )
      })
      assert.deepStrictEqual(summary.completed, [{ case: "a", value: "known already" }])
      const improvements = yield* Improvements.Improvements
      assert.deepStrictEqual(
        (yield* improvements.applies).map(({ name, requests, outcome }) => [name, requests, outcome._tag]),
        [["001", ["a/1/p"], "Skipped"]]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("that fails ends the run with its reason; its requests stay pending and the next start takes them", () =>
    Effect.gen(function* () {
      const names: Array<string> = []
      const run = (fails: boolean) =>
        Dispatcher.run({
          cases: cases("a"),
          improve: {
            request: Missing,
            apply: (batch) => {
              names.push(`${batch.name} ${batch.again}`)
              return fails ? Effect.fail("no disk") : changes(batch)
            }
          },
          train: parkOnce
        })
      const error = yield* Effect.flip(run(true))
      assert.strictEqual(error._tag === "ApplyFailed" && error.apply, "001")
      assert.match(error.message, /apply 001 failed: .*no disk/)
      const dispatcher = yield* Dispatcher.Dispatcher
      assert.strictEqual((yield* dispatcher.snapshot).end?._tag, "ApplyFailed")
      const improvements = yield* Improvements.Improvements
      assert.deepStrictEqual(
        (yield* improvements.pending).map((r) => r.id),
        ["a/1/p"]
      )
      const [failed] = yield* improvements.applies
      assert.deepStrictEqual([failed?.name, failed?.requests], ["001", ["a/1/p"]])
      assert.match(failed?.outcome._tag === "Failed" ? failed.outcome.reason : "", /no disk/)
      assert.deepStrictEqual(completedIds(yield* restart(run(false))), ["a"])
      // another batch has another name, for what the first left half done is known by its name
      assert.deepStrictEqual(names, ["001 false", "002 false"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("cut off is called again first of all, with the same name and batch, though more is pending by then", () =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const begun = yield* Deferred.make<void>()
      let hangs = true
      const run = Dispatcher.run(
        {
          cases: cases("a", "b", "c"),
          improve: {
            request: Missing,
            apply: (batch) => {
              calls.push(`${batch.name} ${batch.again} ${batch.requests.map((r) => r.case).join()}`)
              return hangs ? Effect.andThen(Deferred.succeed(begun, undefined), Effect.never) : changes(batch)
            }
          },
          train: (c, seat) =>
            Effect.andThen(seat.step("s", Effect.sleep(c.id === "c" ? "1 minute" : "1 second")), parkOnce(c, seat))
        },
        { seats: 3, applyAt: 2 }
      )
      const first = yield* Effect.forkChild(run)
      yield* Advance.advance("1 second")
      yield* Deferred.await(begun)
      yield* minutes(2) // c parks during the apply
      yield* Fiber.interrupt(first)
      hangs = false
      const summary = yield* restart(passing(run))
      assert.deepStrictEqual(calls, ["001 false a,b", "001 true a,b", "002 false c"])
      assert.strictEqual(summary.completed.length, 3)
      const started = (yield* history).filter((event) => event._tag === "ApplyStarted")
      assert.deepStrictEqual(
        started.map((event) => event.apply),
        ["001", "002"]
      )
      const starts = (yield* history).filter((event) => event._tag === "RunStarted")
      assert.deepStrictEqual(
        starts.map(({ start, found, again }) => [start, found.parked, again]),
        [
          [1, 0, null],
          [2, 3, "001"]
        ]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("that answers with no outcome fails, and says what to return", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Dispatcher.run({
          cases: cases("a"),
          improve: { request: Missing, apply: () => Effect.succeed(undefined as never) },
          train: parkOnce
        })
      )
      assert.match(error.message, /return Improvements.changed\(…\) or Improvements.skipped\(…\)/)
    }).pipe(Effect.provide(layer))
  )

  it.effect("takes nothing of a case that got a higher rev meanwhile", () =>
    Effect.gen(function* () {
      const taken: Array<string> = []
      const run = (rev: number, stops: boolean) =>
        Dispatcher.run(
          {
            cases: Effect.succeed([{ id: "a", rev }]),
            improve: {
              request: Missing,
              apply: (batch) => {
                taken.push(...batch.requests.map((r) => r.id))
                return stops ? Effect.fail("not now") : changes(batch)
              }
            },
            train: (_: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
              Effect.gen(function* () {
                yield* seat.step("s", Effect.succeed(rev))
                yield* seat.park("p", { missing: `rev ${rev}` })
                return Case.completed(rev)
              })
          },
          {}
        )
      yield* Effect.flip(run(1, true))
      const summary = yield* restart(run(2, false))
      assert.deepStrictEqual(taken, ["a/1/p", "a/2/p"])
      assert.deepStrictEqual(summary.completed, [{ case: "a", value: 2 }])
    }).pipe(Effect.provide(layer))
  )
})

describe("the gate", () => {
  it.effect("is phase-fair: no reader starts while an apply waits, all go after it, other steps run on", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      yield* passing(
        Dispatcher.run(
          {
            cases: cases("p", "r1", "r2", "r3", "free"),
            improve: {
              request: Missing,
              apply: (batch) =>
                note("apply").pipe(
                  Effect.andThen(Effect.sleep("10 minutes")),
                  Effect.andThen(note("applied")),
                  Effect.andThen(changes(batch))
                )
            },
            train: (c, seat) =>
              Effect.gen(function* () {
                if (c.id === "p") {
                  yield* seat.step("ask", Effect.sleep("1 minute"))
                  return yield* parkOnce(c, seat)
                }
                if (c.id === "free") {
                  yield* seat.step("f", Effect.andThen(Effect.sleep("7 minutes"), note("free ended")))
                  return Case.completed()
                }
                if (c.id !== "r1") yield* seat.step("before", Effect.sleep("2 minutes"))
                const reading = note(`${c.id} reads`).pipe(
                  Effect.andThen(Effect.sleep("5 minutes")),
                  Effect.andThen(note(`${c.id} read`))
                )
                yield* seat.step("read", { reads: true }, reading)
                return Case.completed()
              })
          },
          { seats: 5, applyAt: 1 }
        )
      )
      assert.deepStrictEqual(log, [
        "r1 reads",
        "r1 read",
        "apply",
        "free ended",
        "applied",
        "r2 reads",
        "r3 reads",
        "r2 read",
        "r3 read"
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("is not begun when the version it starts from cannot be read, which ends the run with that", () =>
    Effect.gen(function* () {
      let reads = 0
      const run = (fails: boolean) =>
        Dispatcher.run({
          cases: cases("a"),
          version: Effect.suspend(() => (fails && ++reads > 1 ? Effect.fail("no repository") : Effect.succeed("v0"))),
          improve: { request: Missing, apply: changes },
          train: parkOnce
        })
      assert.strictEqual(yield* Effect.flip(run(true)), "no repository")
      const events = yield* history
      assert.isFalse(events.some(({ _tag }) => _tag === "ApplyStarted"))
      const last = events.at(-1)
      const end = last?._tag === "RunEnded" ? last.end : undefined
      assert.strictEqual(end?._tag === "ApplyFailed" && end.apply, "001")
      assert.match(end?._tag === "ApplyFailed" ? end.reason : "", /no repository/)
      assert.deepStrictEqual(completedIds(yield* restart(run(false))), ["a"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("of what was asked for waits for a workload that has one", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const train = (c: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
        Effect.andThen(note(c.id), parkOnce(c, seat))
      const fails = { request: Missing, apply: () => Effect.fail("not now") }
      yield* Effect.flip(Dispatcher.run({ cases: cases("a"), improve: fails, train }))
      const without = { cases: cases("a", "b"), train: (c: Case.Case) => Effect.as(note(c.id), Case.completed()) }
      const { end, waiting } = yield* restart(Dispatcher.run(without, { applyAt: 1 }))
      assert.deepStrictEqual([end, waiting, log], [{ _tag: "Finished" }, ["a"], ["a", "b"]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("claims nothing while an apply waits or runs", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      yield* passing(
        Dispatcher.run(
          {
            cases: cases("p", "r", "new"),
            improve: {
              request: Missing,
              apply: (batch) => Effect.andThen(note("apply"), Effect.delay(changes(batch), "5 minutes"))
            },
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* note(c.id)
                if (c.id === "p") {
                  yield* seat.step("ask", Effect.sleep("1 minute"))
                  return yield* parkOnce(c, seat)
                }
                yield* seat.step("read", { reads: true }, Effect.sleep("5 minutes"))
                return Case.completed()
              })
          },
          { seats: 2, applyAt: 1 }
        )
      )
      assert.deepStrictEqual(log, ["p", "r", "apply", "p", "new"])
    }).pipe(Effect.provide(layer))
  )
})
