import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Dispatcher, RecheckRule, Rechecks } from "shiftboss"
import { Advance, FaultyStorage } from "shiftboss/testing"
import { eventsOn } from "./lives.ts"
import { right, workload, wrong } from "./recheck-support.ts"
import { passing } from "./support.ts"

/** `a` has regressed by apply 001, and passes after its repair. */
const rechecked = workload({
  ids: ["a", "b", "ask"],
  recheck: (one, seat) =>
    Effect.gen(function* () {
      yield* seat.step("run", Effect.sleep("1 second"))
      return one.apply === "001" && one.case.id === "a" ? wrong(one) : right
    })
})

const options: Dispatcher.Options = { seats: 2, rechecks: 2 }

const dispatcher = Layer.fresh(Dispatcher.layer)

const verdicts = Effect.map(
  Effect.flatMap(Rechecks.Rechecks, ({ all }) => all),
  (all) => all.map(({ case: id, apply, state }) => `${id} ${apply} ${state}`).toSorted()
)

const expected = ["a 001 regressed", "a 002 passed", "b 001 passed", "b 002 passed"]

/** How many appends a run without faults makes. */
const appends = Effect.gen(function* () {
  const disk = FaultyStorage.make()
  yield* disk.run(passing(Dispatcher.run(rechecked, options), "10 seconds").pipe(Effect.provide(dispatcher)))
  return (yield* disk.history).filter((operation: FaultyStorage.Operation) => operation === "append").length
})

describe("whatever append of rechecks goes wrong", () => {
  for (const wrong of ["hang", "hang-after", "fail-after"] as const) {
    it.effect(`the run ends in its bounds and the next one ends with the same verdicts: ${wrong}`, () =>
      Effect.gen(function* () {
        const count = yield* appends
        assert.isAbove(count, 12)
        for (let at = 1; at <= count; at++) {
          const disk = FaultyStorage.make([{ on: "append", at, wrong }])
          const first = Effect.gen(function* () {
            const run = yield* Effect.forkChild(Effect.exit(Dispatcher.run(rechecked, options)))
            yield* Advance.advance("30 seconds", "10 seconds")
            const stop = yield* Effect.forkChild(Effect.flatMap(Dispatcher.Dispatcher, ({ stop }) => stop))
            // `stopWithin`, and `grace` three times.
            yield* Advance.advance("30 seconds", "10 seconds")
            assert.isDefined(stop.pollUnsafe(), `append ${at}`)
            assert.isDefined(run.pollUnsafe(), `append ${at}`)
            return yield* Fiber.join(run)
          }).pipe(Effect.provide(dispatcher))
          yield* disk.run(first)
          const next = disk.restart()
          const seen = yield* next.run(
            Effect.andThen(passing(Dispatcher.run(rechecked, options), "10 seconds"), verdicts).pipe(
              Effect.provide(dispatcher)
            )
          )
          assert.deepStrictEqual(seen?._tag === "Success" ? seen.value : seen, expected, `append ${at}`)
        }
      })
    )
  }
})

it.effect("what a try ended before a crash is said before another is made", () =>
  Effect.gen(function* () {
    const quick = workload({ ids: ["a", "b", "ask"], recheck: (one) => Effect.succeed(wrong(one)) })
    const run = Dispatcher.run(quick, {
      seats: 1,
      rechecks: 2,
      recheckRule: RecheckRule.allFail(1),
      requestsPerCase: 0
    })
    let cutOff = 0
    for (let at = 1; at <= 12; at++) {
      const disk = FaultyStorage.make([{ on: "append", at, wrong: "crash-after" }])
      yield* disk.run(Effect.provide(run, dispatcher))
      yield* disk.restart().run(Effect.provide(run, dispatcher))
      const tags = (yield* eventsOn(disk)).map(({ _tag }) => _tag)
      const second = tags.lastIndexOf("RunStarted")
      if (tags[second - 1] !== "TryEnded") continue
      cutOff++
      assert.strictEqual(tags[second + 1], "RecheckEnded")
    }
    assert.strictEqual(cutOff, 2)
  })
)
