import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { type Dispatcher, RecheckRule } from "shiftboss"
import { check } from "../../../src/core/internal/dispatch/options.ts"

const problem = (options: Dispatcher.Options, controls = false) =>
  Effect.map(Effect.flip(check(options, controls)), (error) => error.message)

describe("options", () => {
  it.effect("that are not given are these", () =>
    Effect.gen(function* () {
      const { grace, stopWithin, ...rest } = yield* check({}, false)
      assert.deepStrictEqual([Duration.toMillis(grace), Duration.toMillis(stopWithin)], [5_000, 15_000])
      assert.deepStrictEqual(rest, {
        ...{ seats: 4, applyAt: 4, failuresInARow: 3, maxParks: 5, budgetUsd: Infinity },
        rechecks: { rule: RecheckRule.defaultFor(false), rechecks: 0, requestsPerCase: 2, seed: 1 }
      })
      const { rechecks } = yield* check({}, true)
      assert.deepStrictEqual(rechecks.rule, RecheckRule.defaultFor(true))
    })
  )

  it.effect("are taken as they are up to their bounds", () =>
    Effect.gen(function* () {
      const least: Dispatcher.Options = {
        ...{ seats: 1, applyAt: 1, failuresInARow: 1, maxParks: 0, budgetUsd: 0, rechecks: 0, requestsPerCase: 0 },
        ...{ seed: Number.MIN_SAFE_INTEGER, stopWithin: 0, grace: 0 }
      }
      const most: Dispatcher.Options = {
        ...{ seats: 10_000, applyAt: Infinity, failuresInARow: Infinity, maxParks: Infinity, budgetUsd: Infinity },
        ...{ rechecks: 10_000, requestsPerCase: Infinity, seed: Number.MAX_SAFE_INTEGER },
        ...{ stopWithin: "1 days", grace: 86_400_000 }
      }
      for (const options of [least, most]) {
        const checked = yield* check(options, false)
        const { rechecks, stopWithin, grace, ...rest } = checked
        assert.deepInclude(
          { ...rest, ...rechecks },
          {
            ...Object.fromEntries(Object.entries(options).filter(([name]) => name !== "stopWithin" && name !== "grace"))
          }
        )
        const day = options === most ? 86_400_000 : 0
        assert.deepStrictEqual([Duration.toMillis(stopWithin), Duration.toMillis(grace)], [day, day])
      }
    })
  )

  const whole = (least: number, most: number) => `a whole number from ${least} to ${most}.`
  const span = 'a duration of at most a day, as "15 seconds" or a number of milliseconds.'
  const usd = "an amount of at least 0 in US dollars."
  const wrong: ReadonlyArray<readonly [option: keyof Dispatcher.Options, allowed: string, values: Array<unknown>]> = [
    ["seats", whole(1, 10_000), [0, -1, 1.5, 10_001, Infinity, NaN, "4", null]],
    ["applyAt", whole(1, Infinity), [0, -1, 1.5, NaN, -Infinity, "4"]],
    ["failuresInARow", whole(1, Infinity), [0, -1, 1.5, NaN]],
    ["maxParks", whole(0, Infinity), [-1, 1.5, NaN]],
    ["budgetUsd", usd, [-0.01, NaN]],
    ["stopWithin", span, [-1, 86_400_001, "soon", "2 days", Infinity]],
    ["grace", span, [-1, 86_400_001, "soon"]],
    ["rechecks", whole(0, 10_000), [-1, 10_001, Infinity, 0.5]],
    ["requestsPerCase", whole(0, Infinity), [-1, 0.5, NaN]],
    ["seed", "a whole number.", [0.5, NaN, Infinity, 2 ** 53]]
  ]
  for (const [option, allowed, values] of wrong) {
    it.effect(`are refused with what is allowed: ${option}`, () =>
      Effect.gen(function* () {
        for (const value of values) {
          if (value === null) continue // the default
          const message = yield* problem({ [option]: value } as Dispatcher.Options)
          assert.strictEqual(message, `the option ${option} is ${String(value)}; give ${allowed}`)
        }
      })
    )
  }

  it.effect("may name a rule, which has to be one, and one with controls only where they can be run", () =>
    Effect.gen(function* () {
      for (const rule of [RecheckRule.allFail(2), RecheckRule.controlled({ controls: false })]) {
        assert.deepStrictEqual((yield* check({ recheckRule: rule }, false)).rechecks.rule, rule)
      }
      const controlled = RecheckRule.controlled({})
      assert.deepStrictEqual((yield* check({ recheckRule: controlled }, true)).rechecks.rule, controlled)
      assert.strictEqual(
        yield* problem({ recheckRule: controlled }),
        "the option recheckRule is Controlled; give RecheckRule.allFail(…) or controlled({ controls: false }), or say `controls: true` in the workload."
      )
      for (const odd of [{ _tag: "AllFail", tries: 0 }, { _tag: "Other" }, {}, null, 5, "AllFail"]) {
        if (odd === null) continue // the default
        assert.match(
          yield* problem({ recheckRule: odd as never }),
          /^the option recheckRule is no rule \(.+\); give one made by RecheckRule.allFail or RecheckRule.controlled\.$/
        )
      }
    })
  )
})
