/** Runs what docs/dispatcher.md shows. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Case, Dispatcher, type Improvements, Storage } from "shiftboss"
import { WallClock } from "shiftboss/testing"
import * as Cases from "./cases.ts"
import * as Control from "./control.ts"
import * as Improve from "./improve.ts"

/** Runs it over days, at once, on logs in memory. */
const passing = <A, E>(
  program: Effect.Effect<A, E, Dispatcher.Dispatcher | Improvements.Improvements | Storage.Storage>
) =>
  Effect.gen(function* () {
    const clock = yield* WallClock.make({ start: Date.UTC(2026, 5, 1) })
    const layer = Layer.fresh(Dispatcher.layer.pipe(Layer.provideMerge(Storage.layerMemory)))
    return yield* clock.passWhile(Effect.provide(program, layer))
  })

const ids = (...names: ReadonlyArray<string>) => names.map((id) => ({ id }))
const endless = Dispatcher.run({
  cases: Effect.succeed(ids("a")),
  train: (_, seat) =>
    Effect.gen(function* () {
      for (let n = 1; ; n++) yield* seat.step(`hour ${n}`, Effect.sleep("1 hour"))
    })
})

describe("the guide to the dispatcher", () => {
  it.live("works on cases in steps, and tells who follows, by cursor, also after a restart", () =>
    passing(
      Effect.gen(function* () {
        const summary = yield* Dispatcher.run(
          Cases.workload([
            { id: "a", text: "yes" },
            { id: "b", text: "what?" }
          ])
        )
        assert.deepStrictEqual(summary.completed, [{ case: "a", value: "YES" }])
        assert.deepStrictEqual(summary.difficult, [{ case: "b", reason: `"WHAT?" is not an answer` }])

        yield* Control.retryAll(summary)
        const seen: Array<number> = []
        const following = Control.follow(0, (entry) => Effect.sync(() => void seen.push(entry.cursor)))
        const again = Dispatcher.run(Cases.workload([{ id: "b", text: "no" }]))
        yield* Effect.all([following, Control.progress, again], { concurrency: "unbounded" })
        const dispatcher = yield* Dispatcher.Dispatcher
        const all = yield* Stream.runCollect(dispatcher.history())
        assert.deepStrictEqual(
          seen,
          all.map((entry) => entry.cursor)
        )
        assert.strictEqual((yield* dispatcher.snapshot).counts.completed, 2)
      })
    )
  )

  it.live("parks until an apply has edited the rules, and makes each edit once", () =>
    passing(
      Effect.gen(function* () {
        const summary = yield* Dispatcher.run(Improve.workload(ids("a", "b", "c")), { applyAt: 2, seats: 2 })
        assert.strictEqual(summary.completed.length, 3)
        assert.deepStrictEqual([...Improve.rules].toSorted(), ["a", "b", "c"])
        assert.deepStrictEqual([...Improve.commits.keys()], summary.applies)
      })
    )
  )

  it.live("holds until a quota is reset", () =>
    passing(
      Effect.gen(function* () {
        const summary = yield* Dispatcher.run({ cases: Effect.succeed(ids("a")), train: Improve.patient })
        assert.deepStrictEqual(summary.completed, [{ case: "a", value: "answered" }])
      })
    )
  )

  it.live("stops after a time", () =>
    passing(
      Effect.gen(function* () {
        const summary = yield* Control.until(endless)
        assert.strictEqual(summary.end._tag, "Stopped")
      })
    )
  )

  it.live("withdraws requests: the case is woken", () =>
    passing(
      Effect.gen(function* () {
        const run = Dispatcher.run(
          {
            cases: Effect.succeed(ids("a", "b")),
            train: (case_, seat) =>
              case_.id === "a"
                ? Effect.map(seat.park("rule", { rule: "x" }), (applied) => Case.completed(applied._tag))
                : Effect.as(seat.step("withdraw", Effect.asVoid(Control.withdraw({ id: "a" }))), Case.completed("b")),
            improve: Improve.workload([]).improve
          },
          { seats: 1 }
        )
        const summary = yield* Control.reported(run)
        assert.sameDeepMembers(
          [...summary.completed],
          [
            { case: "a", value: "Skipped" },
            { case: "b", value: "b" }
          ]
        )
      })
    )
  )

  it.live("runs two dispatchers beside each other, each on its own log", () =>
    passing(
      Effect.gen(function* () {
        const one = Dispatcher.run(Cases.workload([{ id: "a", text: "yes" }]))
        yield* Control.both(one, one)
        const storage = yield* Storage.Storage
        assert.deepStrictEqual((yield* Stream.runCollect(storage.list())).toSorted(), ["parsers", "prompts"])
      })
    )
  )
})
