import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { Case, Dispatcher } from "shiftboss"
import { cases, layer, minutes, notes, passing, restart } from "./support.ts"

const failuresOf = <E, R>(
  train: (c: Case.Case, seat: Dispatcher.Seat) => Effect.Effect<Case.CaseResult<never>, E, R>
) =>
  Effect.map(Dispatcher.run({ cases: cases("a"), train }), (summary) =>
    summary.failed.map((failure) => failure.reason.split("\n")[0])
  )

describe("a step", () => {
  it.effect("is not run again after the run was killed", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const workload = {
        cases: cases("a"),
        train: (_: Case.Case, seat: Dispatcher.Seat) =>
          Effect.gen(function* () {
            const one = yield* seat.step("one", Effect.as(note("one"), { n: 1 }))
            const two = yield* seat.step(
              "two",
              { result: Schema.Date },
              Effect.andThen(note("two"), Effect.as(Effect.sleep("10 minutes"), new Date(5)))
            )
            return Case.completed({ sum: one.n + two.getTime() })
          })
      }
      const first = yield* Effect.forkChild(Dispatcher.run(workload))
      yield* minutes(1)
      yield* Fiber.interrupt(first)
      const summary = yield* restart(passing(Dispatcher.run(workload)))
      assert.deepStrictEqual(log, ["one", "two", "two"])
      assert.deepStrictEqual(summary.completed, [{ case: "a", value: { sum: 6 } }])
    }).pipe(Effect.provide(layer))
  )

  it.effect("gives what is journaled, live as in replay: what a host does to it changes nothing", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      let failing = true
      const workload = {
        cases: cases("a"),
        train: (_: Case.Case, seat: Dispatcher.Seat) =>
          Effect.gen(function* () {
            const zero = yield* seat.step("zero", Effect.succeed(-0))
            const list = yield* seat.step(
              "list",
              Effect.sync(() => [1, 2] as Array<number>)
            )
            seen.push(Object.is(zero, 0), [...list])
            list.push(3)
            if (failing) return yield* Effect.fail("not yet")
            return Case.completed()
          })
      }
      yield* Dispatcher.run(workload)
      failing = false
      yield* Dispatcher.run(workload)
      assert.deepStrictEqual(seen, [true, [1, 2], true, [1, 2]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("has a scope of its own, closed with it", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      yield* Dispatcher.run({
        cases: cases("a"),
        train: (_, seat) =>
          Effect.gen(function* () {
            yield* seat.step("one", Effect.asVoid(Effect.acquireRelease(note("open"), () => note("close"))))
            yield* note("after")
            return Case.completed()
          })
      })
      assert.deepStrictEqual(log, ["open", "close", "after"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("is run again when it failed, and its failure can be handled", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const summary = yield* Dispatcher.run({
        cases: cases("a"),
        train: (_, seat) =>
          Effect.gen(function* () {
            const first = yield* Effect.exit(seat.step("try-1", Effect.andThen(note("try-1"), Effect.fail("no"))))
            yield* seat.step("try-2", note(`try-2 after ${first._tag}`))
            return Case.completed()
          })
      })
      assert.deepStrictEqual([log, summary.completed.length], [["try-1", "try-2 after Failure"], 1])
    }).pipe(Effect.provide(layer))
  )

  it.effect("waits for the one before it", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const slow = (name: string) =>
        Effect.andThen(note(`${name} +`), Effect.andThen(Effect.sleep("1 minute"), note(`${name} -`)))
      yield* passing(
        Dispatcher.run({
          cases: cases("a"),
          train: (_, seat) =>
            Effect.as(
              Effect.all([seat.step("one", slow("one")), seat.step("two", slow("two"))], { concurrency: 2 }),
              Case.completed()
            )
        })
      )
      assert.deepStrictEqual(log, ["one +", "one -", "two +", "two -"])
    }).pipe(Effect.provide(layer))
  )
})

describe("misuse fails the case with what to do:", () => {
  it.effect("a name used twice", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* failuresOf((_, seat) =>
          Effect.andThen(seat.step("x", Effect.void), Effect.as(seat.step("x", Effect.void), Case.difficult("")))
        ),
        [`Error: the name "x" is used twice (case "a"): in a loop, number the names`]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("a step inside a step, also from a fiber forked there", () =>
    Effect.gen(function* () {
      const inside = `Error: the step "inner" is inside the step "outer" (case "a"): end that step first`
      assert.deepStrictEqual(
        yield* failuresOf((_, seat) =>
          Effect.as(seat.step("outer", seat.step("inner", Effect.void)), Case.difficult(""))
        ),
        [inside]
      )
      assert.deepStrictEqual(
        yield* failuresOf((_, seat) =>
          Effect.as(
            seat.step("outer", Effect.flatMap(Effect.forkChild(seat.step("inner", Effect.void)), Fiber.join)),
            Case.difficult("")
          )
        ).pipe(restart),
        [inside]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("a step without a name", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* failuresOf((_, seat) => Effect.as(seat.step("", Effect.void), Case.difficult(""))),
        [`Error: a step has no name (case "a"): give it one that is the same in every run of the case`]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("a result that its schema rejects, or that is not JSON", () =>
    Effect.gen(function* () {
      const [rejected] = yield* failuresOf((_, seat) =>
        Effect.as(
          seat.step("n", { result: Schema.Int.check(Schema.isGreaterThan(5)) }, Effect.succeed(1)),
          Case.difficult("")
        )
      )
      assert.match(rejected!, /the result of the step "n" does not fit its schema: .*greater than 5/)
      assert.include(rejected!, "return what the schema accepts")
      const [notJson] = yield* restart(
        failuresOf((_, seat) => Effect.as(seat.step("n", Effect.succeed(NaN)), Case.difficult("")))
      )
      assert.match(notJson!, /the result of the step "n" is not JSON: /)
      assert.include(notJson!, "return JSON, or give the step a schema as `result`")
      const [notJsonDeep] = yield* restart(
        failuresOf((_, seat) =>
          Effect.as(seat.step("n", Effect.succeed({ at: [new Date(0)] } as never)), Case.difficult(""))
        )
      )
      assert.match(notJsonDeep!, /the result of the step "n" is not JSON: /)
    }).pipe(Effect.provide(layer))
  )

  it.effect("a journaled result that a new schema no longer accepts", () =>
    Effect.gen(function* () {
      yield* failuresOf((_, seat) => Effect.andThen(seat.step("n", Effect.succeed("text")), Effect.fail("later")))
      const [reason] = yield* restart(
        failuresOf((_, seat) =>
          Effect.as(seat.step("n", { result: Schema.Number }, Effect.succeed(1)), Case.difficult(""))
        )
      )
      assert.match(
        reason!,
        /the journaled result of the step "n" does not fit its schema: .* accept what was journaled, or use another name/
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("a train that answers with something else, or completes with what is not JSON", () =>
    Effect.gen(function* () {
      const [other] = yield* failuresOf(() => Effect.succeed(undefined as never))
      assert.match(other!, /neither Case.completed nor Case.difficult/)
      const [value] = yield* restart(failuresOf(() => Effect.succeed(Case.completed(Infinity) as never)))
      assert.match(value!, /the value that case "a" completed with is not JSON/)
    }).pipe(Effect.provide(layer))
  )
})
