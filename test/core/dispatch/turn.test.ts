import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { AgentLauncher, Case, Dispatcher, Failure, Shiftboss, Storage, Verdict } from "shiftboss"
import { Advance, FaultyStorage, ScriptedLauncher } from "shiftboss/testing"
import { changes, completedIds, minutes, Missing, notes, passing } from "./support.ts"

type Script = Parameters<typeof ScriptedLauncher.layer>[0]

const on = (script: Script) =>
  Shiftboss.layer.pipe(Layer.provideMerge(Layer.merge(Storage.layerMemory, ScriptedLauncher.layer(script))))

const launched = Effect.gen(function* () {
  const launches = yield* ScriptedLauncher.Launches
  return (yield* launches.all).map((attempt) => `${attempt.turnId} #${attempt.number}`)
})

const failed = (kind: Failure.FailureKind, resetAt?: number) =>
  AgentLauncher.failed(Failure.make(kind, kind, resetAt === undefined ? {} : { resetAt }))

const prompts = (...ids: ReadonlyArray<string>) => Effect.succeed(ids.map((id) => ({ id })))

const ask = (c: Case.Case, seat: Dispatcher.Seat) =>
  Effect.map(seat.turn("run", { prompt: `do ${c.id}` }), (done) =>
    Case.completed({ text: done.text, n: done.attempts })
  )

describe("a turn on a seat", () => {
  it.effect("waits out capacity off its seat: the other case runs meanwhile, and it comes back as woken", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: prompts("a", "b", "c"),
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* note(c.id)
                if (c.id === "b") yield* seat.step("long", Effect.sleep("2 minutes"))
                return yield* ask(c, seat)
              })
          },
          { seats: 1, failuresInARow: 1 }
        )
      )
      yield* Advance.advance("30 seconds")
      const dispatcher = yield* Dispatcher.Dispatcher
      const held = yield* dispatcher.explain("a")
      assert.strictEqual(held._tag === "Waiting" && held.for, "hold")
      yield* minutes(10)
      const summary = yield* Fiber.join(run)
      // b runs on the seat meanwhile, and meets the cooldown that a has raised for its model
      assert.deepStrictEqual(log.slice(0, 3), ["a", "b", "a"])
      assert.deepStrictEqual(completedIds(summary).toSorted(), ["a", "b", "c"])
      assert.deepStrictEqual(
        (yield* launched).filter((launch) => launch.startsWith("a")),
        ["a/1/run #1", "a/1/run #2"]
      )
    }).pipe(
      Effect.provide(
        on((attempt, { launch: n }) => (n === 1 ? failed("Capacity") : AgentLauncher.succeeded(attempt.prompt)))
      )
    )
  )

  it.effect("is not run again when it has answered, though the case is", () =>
    Effect.gen(function* () {
      const workload = (fails: boolean) => ({
        cases: prompts("a"),
        train: (c: Case.Case, seat: Dispatcher.Seat) =>
          Effect.flatMap(ask(c, seat), (result) => (fails ? Effect.fail("later") : Effect.succeed(result)))
      })
      yield* Dispatcher.run(workload(true))
      const summary = yield* Dispatcher.run(workload(false))
      assert.deepStrictEqual(summary.completed, [{ case: "a", value: { text: "do a", n: 1 } }])
      assert.deepStrictEqual(yield* launched, ["a/1/run #1"])
    }).pipe(Effect.provide(on((attempt) => AgentLauncher.succeeded(attempt.prompt))))
  )

  it.effect("that failed fails the case, and begins another round when the case is taken again", () =>
    Effect.gen(function* () {
      const first = yield* Dispatcher.run({ cases: prompts("a"), train: ask })
      assert.match(first.failed[0]!.reason, /TurnFailed: the turn "a\/1\/run" failed/)
      const second = yield* Dispatcher.run({ cases: prompts("a"), train: ask })
      assert.deepStrictEqual(completedIds(second), ["a"])
      assert.deepStrictEqual(yield* launched, ["a/1/run #1", "a/1/run #2"])
    }).pipe(
      Effect.provide(
        on((attempt, { launch: n }) => (n === 1 ? failed("Auth") : AgentLauncher.succeeded(attempt.prompt)))
      )
    )
  )

  it.effect("in a wait is ended by a stop at once, and goes on at the next start with what is left", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(Dispatcher.run({ cases: prompts("a"), train: ask }))
      yield* minutes(60)
      yield* Dispatcher.stop // no time passes
      const { end, waiting } = yield* Fiber.join(run)
      assert.deepStrictEqual([end._tag, waiting], ["Stopped", ["a"]])
      const again = yield* Effect.forkChild(Dispatcher.run({ cases: prompts("a"), train: ask }))
      yield* minutes(3 * 60)
      assert.isUndefined(again.pollUnsafe())
      yield* minutes(2 * 60)
      assert.deepStrictEqual(completedIds(yield* Fiber.join(again)), ["a"])
      assert.deepStrictEqual(yield* launched, ["a/1/run #1", "a/1/run #2"])
    }).pipe(
      Effect.provide(
        on((attempt, { launch: n }) =>
          n === 1 ? failed("RateLimited", 5 * 3_600_000 - 600_000) : AgentLauncher.succeeded(attempt.prompt)
        )
      )
    )
  )

  it.effect("that waits keeps neither gate nor seat from an apply", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      yield* passing(
        Dispatcher.run(
          {
            cases: prompts("reader", "parks"),
            improve: { request: Missing, apply: (batch) => Effect.andThen(note("apply"), changes(batch)) },
            train: (c, seat) =>
              Effect.gen(function* () {
                if (c.id === "parks") yield* seat.park("p", { missing: "x" })
                else yield* seat.turn("run", { prompt: "x", reads: true })
                yield* note(c.id)
                return Case.completed()
              })
          },
          { seats: 2, applyAt: 1 }
        )
      )
      assert.deepStrictEqual(log, ["apply", "parks", "reader"])
    }).pipe(Effect.provide(on((_, { launch: n }) => (n === 1 ? failed("Network") : AgentLauncher.succeeded("done")))))
  )

  it.effect("is counted against the run's budget: once it is spent nothing more is claimed, and the run says so", () =>
    Effect.gen(function* () {
      const run = (budgetUsd: number) =>
        Dispatcher.run({ cases: prompts("a", "b", "c"), train: ask }, { seats: 1, budgetUsd })
      const first = yield* run(2)
      assert.deepStrictEqual([completedIds(first), first.end], [["a", "b"], { _tag: "BudgetSpent", spentUsd: 2.5 }])
      // what earlier runs cost is not this one's
      assert.deepStrictEqual((yield* run(2)).end, { _tag: "Finished" })
    }).pipe(Effect.provide(on((attempt) => AgentLauncher.succeeded(attempt.prompt, { costUsd: 1.25 }))))
  )

  it.effect("whose journal cannot be written ends the run, and is not the case's fault", () =>
    Effect.gen(function* () {
      // the appends before it are of the dispatcher's log: its start
      const { storage } = FaultyStorage.make([{ on: "append", at: 2, wrong: "fail" }])
      const here = Shiftboss.layer.pipe(
        Layer.provide([
          Layer.succeed(Storage.Storage, storage),
          ScriptedLauncher.layer(() => AgentLauncher.succeeded("x"))
        ])
      )
      const error = yield* Effect.flip(
        passing(Effect.provide(Dispatcher.run({ cases: prompts("a"), train: ask }), here))
      )
      assert.strictEqual(error._tag, "StorageError")
    })
  )

  it.effect("answers with the model and the cost that the agent told, and with none where it told none", () =>
    Effect.gen(function* () {
      const answers = yield* Dispatcher.run({
        cases: prompts("told", "silent"),
        train: (c, seat) =>
          Effect.map(seat.turn("run", { prompt: c.id }), ({ model, costUsd, text }) =>
            Case.completed({ model, costUsd, text })
          )
      })
      assert.deepStrictEqual(
        answers.completed.map(({ value }) => value),
        [
          { model: "large-2", costUsd: 0.5, text: "told" },
          { model: null, costUsd: null, text: "silent" }
        ]
      )
    }).pipe(
      Effect.provide(
        on(({ prompt }) => AgentLauncher.succeeded(prompt, prompt === "told" ? { model: "large-2", costUsd: 0.5 } : {}))
      )
    )
  )

  it.effect("is told of in the usage of its stage and model, of cases and of rechecks, once and across restarts", () =>
    Effect.gen(function* () {
      const workload = (fails: boolean) => ({
        cases: prompts("a", "ask"),
        train: (c: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
          Effect.gen(function* () {
            yield* seat.turn("run-1", { prompt: "run", model: "large" })
            yield* seat.turn("run-2", { prompt: "run", model: "large" })
            yield* seat.turn("look", { prompt: "look", stage: "review" })
            if (fails) return yield* Effect.fail("later")
            if (c.id === "ask") yield* seat.park("p", { missing: "x" })
            return Case.completed()
          }),
        improve: {
          request: Missing,
          apply: changes,
          recheck: (_: unknown, seat: Dispatcher.Seat) =>
            Effect.as(seat.turn("run", { prompt: "again", model: "large" }), Verdict.right<never>())
        }
      })
      yield* Effect.ignore(Dispatcher.run(workload(true), { failuresInARow: Infinity, rechecks: 1 }))
      yield* Dispatcher.run(workload(false), { rechecks: 1 })
      const { usage } = yield* Effect.provide(Dispatcher.snapshot, Layer.fresh(Dispatcher.layer))
      assert.deepStrictEqual(
        usage.map(({ of, stage, model, attempts, costUsd, usage }) => [
          of,
          stage,
          model,
          attempts,
          costUsd,
          usage.output,
          usage.reasoning
        ]),
        [
          ["cases", "run", "large", 4, { total: 8, known: 8 }, { total: 40, known: 40 }, { total: null, known: null }],
          ["cases", "review", null, 2, { total: 4, known: 4 }, { total: 20, known: 20 }, { total: null, known: null }],
          [
            "rechecks",
            "run",
            "large",
            1,
            { total: 2, known: 2 },
            { total: 10, known: 10 },
            { total: null, known: null }
          ]
        ]
      )
    }).pipe(
      Effect.provide(
        on(() =>
          AgentLauncher.succeeded("done", {
            costUsd: 2,
            usage: { input: 5, output: 10, cacheRead: null, cacheWrite: null, reasoning: null }
          })
        )
      )
    )
  )

  it.effect("that failed is told of, and what is told of is not told again when it is taken up", () =>
    Effect.gen(function* () {
      const workload = {
        cases: prompts("a"),
        train: (_: Case.Case, seat: Dispatcher.Seat) => Effect.as(seat.turn("run", { prompt: "run" }), Case.completed())
      }
      yield* Dispatcher.run(workload)
      assert.deepStrictEqual(
        (yield* Dispatcher.snapshot).usage.map(({ attempts }) => attempts),
        [1]
      )
      yield* Dispatcher.run(workload)
      assert.deepStrictEqual(
        (yield* Dispatcher.snapshot).usage.map(({ attempts }) => attempts),
        [2]
      )
    }).pipe(Effect.provide(on((_, { launch: n }) => (n === 1 ? failed("Auth") : AgentLauncher.succeeded("done")))))
  )

  it.effect(
    "that was cut off is told of as far as its agent had told: the known part beside a sum that is not known",
    () =>
      Effect.gen(function* () {
        const used = { input: 5, output: 10, cacheRead: null, cacheWrite: null, reasoning: null }
        const script: Script = (_, { launch, emit }) =>
          launch === 1
            ? Effect.as(emit({ _tag: "UsageSoFar", usage: used }), failed("Interrupted"))
            : AgentLauncher.succeeded("done", { usage: used, costUsd: 1 })
        yield* Effect.provide(
          Dispatcher.run({
            cases: prompts("a"),
            train: (_: Case.Case, seat: Dispatcher.Seat) =>
              Effect.as(seat.turn("run", { prompt: "run" }), Case.completed())
          }).pipe(Effect.andThen(Dispatcher.snapshot)),
          on(script)
        ).pipe(
          Effect.map(({ usage }) =>
            usage.map((row) => [row.attempts, row.usage.output, row.usage.reasoning, row.costUsd])
          ),
          Effect.map((rows) =>
            assert.deepStrictEqual(rows, [
              [2, { total: null, known: 20 }, { total: null, known: null }, { total: null, known: 1 }]
            ])
          )
        )
      })
  )
})
