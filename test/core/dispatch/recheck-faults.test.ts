import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema, SchemaGetter } from "effect"
import { Case, Dispatcher, Improvements, RecheckRule, type Rechecks, Verdict } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { outcomes, rechecks, right, type Said, workload, wrong } from "./recheck-support.ts"
import { changes, history, layer, minutes, Missing, notes, passing, restart } from "./support.ts"

/** What only JavaScript can answer with. */
const wild = (answer: unknown) => Effect.succeed(answer as Said)

const throwing = (field: string) =>
  Object.defineProperty({ _tag: "Wrong", rubric: [], repair: { missing: "x" } }, field, {
    get: () => {
      throw new Error("a getter threw")
    }
  })

const rubricOf = (rubric: unknown) => wild({ _tag: "Right", rubric, repair: { missing: "x" } })

const wildAnswers: Readonly<Record<string, () => Effect.Effect<Said, unknown>>> = {
  "a defect of the function itself": () => {
    throw new Error("at once")
  },
  "no effect": () => undefined as never,
  "a promise": (() => Promise.resolve(right)) as never,
  "no verdict": () => wild(undefined),
  "a tag that throws": () => wild(throwing("_tag")),
  "a rubric that throws": () => wild(throwing("rubric")),
  "a repair that throws": () => wild(throwing("repair")),
  "a rubric that is no list": () => rubricOf({ length: 1 }),
  "a rubric of null": () => rubricOf([null]),
  "a rubric of strings": () => rubricOf(["says why"]),
  "a rubric with holes": () => rubricOf(new Array(2)),
  "a rubric item that passed as a string": () => rubricOf([{ name: "says why", passed: "false" }]),
  "a repair that does not fit": () => wild({ _tag: "Wrong", rubric: [], repair: { missing: 1n } }),
  "an error that cannot be shown": () =>
    Effect.fail({
      toString: () => {
        throw new Error("not this either")
      }
    })
}

describe("an answer of recheck that is none", () => {
  for (const [name, recheck] of Object.entries(wildAnswers)) {
    it.effect(`breaks the try and counts for neither side: ${name}`, () =>
      Effect.gen(function* () {
        const summary = yield* Dispatcher.run(workload({ ids: ["a", "ask"], recheck }), { rechecks: 1 })
        assert.deepStrictEqual(
          summary.rechecks.map(({ outcome }) => outcome._tag === "Void" && outcome.why),
          ["broke"]
        )
        assert.deepStrictEqual([summary.end._tag, summary.applies], ["Finished", ["001"]])
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("does not count for the breaker when it was an interruption", () =>
    Effect.gen(function* () {
      const summary = yield* Dispatcher.run(workload({ ids: ["a", "ask"], recheck: () => Effect.interrupt }), {
        rechecks: 1,
        failuresInARow: 1
      })
      assert.deepStrictEqual(outcomes(summary), ["a 001 Void"])
    }).pipe(Effect.provide(layer))
  )
})

describe("a rule of rechecks made by hand", () => {
  const rules: ReadonlyArray<unknown> = [
    { _tag: "AllFail", tries: 0 },
    { _tag: "AllFail", tries: Number.NaN },
    { _tag: "AllFail", tries: "2" },
    { ...RecheckRule.controlled({ controls: false }), runs: Infinity },
    { ...RecheckRule.controlled({ controls: false }), redos: -1 },
    { _tag: "None" },
    {},
    null,
    7
  ]
  it.effect("that is no rule is refused before anything is opened", () =>
    Effect.gen(function* () {
      for (const rule of rules) {
        const run = Dispatcher.run(workload({ recheck: () => Effect.succeed(right) }), {
          rechecks: 1,
          recheckRule: rule as RecheckRule.RecheckRule
        })
        const error = yield* Effect.flip(run)
        assert.instanceOf(error, Dispatcher.InvalidOption, JSON.stringify(rule))
        assert.strictEqual(error.option, "recheckRule")
      }
    }).pipe(Effect.provide(layer))
  )
})

/** Another process's run in which the recheck of `a` was left holding for a very long time. */
const leftHolding = Effect.gen(function* () {
  const holds = workload({ ids: ["a", "ask"], recheck: (_, seat) => Effect.as(seat.hold("quota", 4e12), right) })
  const run = yield* Effect.forkChild(Dispatcher.run(holds, { rechecks: 1 }))
  yield* minutes(1)
  yield* Effect.flatMap(Dispatcher.Dispatcher, ({ stop }) => stop)
  yield* Fiber.join(run)
})

describe("a recheck that holds", () => {
  const now: Readonly<Record<string, ReadonlyArray<Case.Case>>> = {
    "is no longer selected": [{ id: "ask" }],
    "has another rev": [{ id: "a", rev: 2 }, { id: "ask" }]
  }
  for (const [how, cases] of Object.entries(now)) {
    it.effect(`keeps no run open when its case ${how}: it is void at once`, () =>
      Effect.gen(function* () {
        yield* leftHolding
        const next = workload({ cases: Effect.succeed(cases), recheck: () => Effect.succeed(right) })
        const run = yield* Effect.forkChild(restart(Dispatcher.run(next, { rechecks: 1 })))
        yield* minutes(1)
        assert.isDefined(run.pollUnsafe())
        assert.deepStrictEqual(outcomes(yield* Fiber.join(run)), ["a 001 Void"])
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("says nothing of a case that was forgotten and completed again meanwhile", () =>
    Effect.gen(function* () {
      yield* leftHolding
      yield* Effect.flatMap(Dispatcher.Dispatcher, ({ forget }) => forget("a"))
      // It completes again in a run that cannot recheck.
      const { improve: _, ...without } = workload({ ids: ["a", "ask"], recheck: () => Effect.die("no") })
      yield* restart(Dispatcher.run({ cases: without.cases, train: () => Effect.succeed(Case.completed()) }))
      const { log, note } = notes()
      const last = workload({ ids: ["a", "ask"], recheck: (_, seat) => Effect.as(note(seat.info.key), right) })
      const summary = yield* restart(Dispatcher.run(last, { rechecks: 1 }))
      const [only] = summary.rechecks
      assert.deepStrictEqual(only?.outcome, { _tag: "Void", why: "case-changed", reason: "the case was begun anew" })
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(layer))
  )
})

describe("the request of a recheck", () => {
  it.effect("is never taken for one that a case asked for by itself, whatever both are called", () =>
    Effect.gen(function* () {
      const batches: Array<ReadonlyArray<string>> = []
      yield* Dispatcher.run(
        workload({
          ids: ["x/1/y", "ask", "x"],
          train: (case_, seat) =>
            Effect.gen(function* () {
              if (case_.id !== "x/1/y") yield* seat.park("p", { missing: case_.id })
              if (case_.id === "x") yield* seat.park("y@recheck-001", { missing: "mine" })
              return Case.completed()
            }),
          apply: (batch) => {
            batches.push(batch.requests.map(({ case: id, why }) => `${why} of ${id}`))
            return changes(batch)
          },
          recheck: (one) => Effect.succeed(one.apply === "001" ? wrong(one) : right)
        }),
        { seats: 1, rechecks: 1, applyAt: 2 }
      )
      assert.deepStrictEqual(batches.slice(0, 2), [
        ["improvement of ask", "improvement of x"],
        ["improvement of x", "repair of x/1/y"]
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("keeps no apply from its end while it is being encoded", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const Slow = Missing.pipe(
        Schema.decodeTo(Missing, {
          decode: SchemaGetter.passthrough(),
          encode: SchemaGetter.transformEffect((value) =>
            value.missing.startsWith("a on") ? Effect.as(Deferred.await(gate), value) : Effect.succeed(value)
          )
        })
      )
      const { improve, ...rest } = workload({
        ids: ["a", "ask 1", "ask 2"],
        train: (case_, seat) =>
          Effect.gen(function* () {
            if (case_.id === "ask 2") yield* Effect.sleep("1 minute")
            if (case_.id.startsWith("ask")) yield* seat.park("p", { missing: case_.id })
            return Case.completed()
          }),
        recheck: (one: Rechecks.Try) => Effect.succeed(one.apply === "001" ? wrong(one) : right)
      })
      const run = yield* Effect.forkChild(
        Dispatcher.run({ ...rest, improve: { ...improve, request: Slow } }, { rechecks: 1, applyAt: 1 })
      )
      yield* minutes(2)
      const { applies } = yield* Improvements.Improvements
      assert.deepStrictEqual(
        (yield* applies).map(({ name, outcome }) => [name, outcome._tag]),
        [
          ["001", "Changed"],
          ["002", "Changed"]
        ]
      )
      yield* Deferred.succeed(gate, undefined)
      yield* Advance.settle
      yield* passing(Fiber.join(run))
      assert.deepStrictEqual(
        (yield* rechecks).map(({ apply, state }) => [apply, state]),
        [
          ["001", "regressed"],
          ["002", "passed"],
          ["002", "passed"]
        ]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("may be of any size, and of any text that JSON has", () =>
    Effect.gen(function* () {
      const texts = ["\u{d800} alone", "x".repeat(2_000_000), "__proto__"]
      const taken: Array<string> = []
      const { improve, ...rest } = workload({
        ids: ["a", "ask"],
        apply: (batch) => {
          for (const { why, payload } of batch.requests) if (why === "repair") taken.push(payload.missing)
          return changes(batch)
        },
        recheck: (one) => {
          const missing = texts[Number(one.apply) - 1]
          return Effect.succeed(missing === undefined ? right : Verdict.wrong({ missing }))
        }
      })
      yield* Dispatcher.run({ ...rest, improve }, { rechecks: 1, requestsPerCase: 3 })
      assert.isTrue(texts.every((text, index) => taken[index] === text))
    }).pipe(Effect.provide(layer))
  )
})

describe("a try on a seat", () => {
  const ids = ["a", "b", "c", "d", "ask"]
  /** The environment is down, which is found out in the second minute; the try of `d` takes longer. */
  const down = (longer: `${number} ${"minutes" | "hours"}`) =>
    workload({
      ids,
      controls: true,
      recheck: (one) => Effect.delay(Effect.succeed(wrong(one)), one.case.id === "d" ? longer : "1 minute")
    })

  it.effect("is ended with all others of its apply", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(Dispatcher.run(down("5 hours"), { rechecks: 4 }))
      yield* minutes(3)
      assert.isDefined(run.pollUnsafe())
      assert.deepStrictEqual(outcomes(yield* Fiber.join(run)).toSorted(), [
        "a 001 Void",
        "b 001 Void",
        "c 001 Void",
        "d 001 Void"
      ])
    }).pipe(Effect.provide(layer))
  )

  it.effect("says nothing any more when it ends in the instant that ends all of its apply", () =>
    Effect.gen(function* () {
      yield* passing(Dispatcher.run(down("2 minutes"), { rechecks: 4 }))
      for (const { tries, endedAt } of yield* rechecks) for (const { at } of tries) assert.isAtMost(at, endedAt ?? 0)
      const tags = (yield* history).flatMap((event) =>
        "case" in event && event.case === "d" && event._tag !== "CaseCompleted" ? [event._tag] : []
      )
      assert.strictEqual(tags.at(-1), "RecheckEnded")
    }).pipe(Effect.provide(layer))
  )
})

describe("the breaker", () => {
  it.effect("begins to count anew with each try that says something", () =>
    Effect.gen(function* () {
      let tries = 0
      const recheck = () =>
        Effect.suspend(() => (tries++ % 2 === 0 ? Effect.fail("no sandbox") : Effect.succeed(right)))
      const summary = yield* Dispatcher.run(workload({ ids: ["a", "b", "c", "d", "ask"], recheck }), {
        seats: 1,
        rechecks: 4,
        failuresInARow: 2
      })
      assert.deepStrictEqual(
        summary.rechecks.map(({ outcome }) => outcome._tag),
        ["Void", "Passed", "Void", "Passed"]
      )
    }).pipe(Effect.provide(layer))
  )
})

it.effect("the repair of a control is not looked at: nobody is asked for it", () =>
  Effect.gen(function* () {
    const recheck = (one: Rechecks.Try) =>
      one.arm === "new" ? Effect.succeed(wrong(one)) : wild({ _tag: "Wrong", rubric: [], repair: undefined })
    const summary = yield* Dispatcher.run(workload({ ids: ["a", "ask"], controls: true, recheck }), { rechecks: 1 })
    assert.deepStrictEqual(
      summary.rechecks.map(({ outcome }) => outcome._tag === "Void" && outcome.why),
      ["baseline"]
    )
  }).pipe(Effect.provide(layer))
)
