/**
 * Options with their defaults, checked once.
 */
import { Duration, Effect } from "effect"
import type { Options } from "../../Dispatcher.ts"
import { InvalidOption } from "../../DispatcherError.ts"
import { defaultFor, type RecheckRule } from "../../RecheckRule.ts"
import type { Rules } from "../recheck/decide.ts"

export interface Checked {
  readonly seats: number
  readonly applyAt: number
  readonly failuresInARow: number
  readonly maxParks: number
  readonly budgetUsd: number
  readonly stopWithin: Duration.Duration
  readonly grace: Duration.Duration
  readonly rechecks: Rules
}

const count = (option: string, value: number, least: number, most: number) =>
  (Number.isInteger(value) && value >= least && value <= most) || (value === Infinity && most === Infinity)
    ? Effect.succeed(value)
    : Effect.fail(
        new InvalidOption({
          option,
          value,
          allowed: `a whole number from ${least} to ${most === Infinity ? "Infinity" : most}`
        })
      )

const duration = (option: string, value: Duration.Input) => {
  const allowed = `a duration of at most a day, as "15 seconds" or a number of milliseconds`
  const parsed = Duration.fromInput(value)
  return parsed._tag === "Some" && Duration.toMillis(parsed.value) >= 0 && Duration.toMillis(parsed.value) <= 86_400_000
    ? Effect.succeed(parsed.value)
    : Effect.fail(new InvalidOption({ option, value, allowed }))
}

const money = (option: string, value: number) =>
  value >= 0
    ? Effect.succeed(value)
    : Effect.fail(new InvalidOption({ option, value, allowed: "an amount of at least 0 in US dollars" }))

/** A seed only has to be the same number again. */
const seed = (value: number) =>
  Number.isSafeInteger(value)
    ? Effect.succeed(value)
    : Effect.fail(new InvalidOption({ option: "seed", value, allowed: "a whole number" }))

const recheckRule = (rule: RecheckRule | undefined, controls: boolean) => {
  if (rule === undefined) return Effect.succeed(defaultFor(controls))
  const needs = rule._tag === "Controlled" && rule.controls
  return needs && !controls
    ? Effect.fail(
        new InvalidOption({
          option: "recheckRule",
          value: rule._tag,
          allowed: "RecheckRule.allFail(…) or controlled({ controls: false }), or say `controls: true` in the workload"
        })
      )
    : Effect.succeed(rule)
}

/** `controls`: the workload can run the version before an apply. */
export const check = (options: Options, controls: boolean): Effect.Effect<Checked, InvalidOption> =>
  Effect.all({
    seats: count("seats", options.seats ?? 4, 1, 10_000),
    applyAt: count("applyAt", options.applyAt ?? 4, 1, Infinity),
    failuresInARow: count("failuresInARow", options.failuresInARow ?? 3, 1, Infinity),
    maxParks: count("maxParks", options.maxParks ?? 5, 0, Infinity),
    budgetUsd: money("budgetUsd", options.budgetUsd ?? Infinity),
    stopWithin: duration("stopWithin", options.stopWithin ?? "15 seconds"),
    grace: duration("grace", options.grace ?? "5 seconds"),
    rechecks: Effect.all({
      rule: recheckRule(options.recheckRule, controls),
      rechecks: count("rechecks", options.rechecks ?? 0, 0, 10_000),
      requestsPerCase: count("requestsPerCase", options.requestsPerCase ?? 2, 0, Infinity),
      seed: seed(options.seed ?? 1)
    })
  })
