/**
 * Options with their defaults, checked once.
 */
import { Duration, Effect } from "effect"
import type { Options } from "../../Dispatcher.ts"
import { InvalidOption } from "../../DispatcherError.ts"

export interface Checked {
  readonly seats: number
  readonly applyAt: number
  readonly failuresInARow: number
  readonly maxParks: number
  readonly stopWithin: Duration.Duration
  readonly grace: Duration.Duration
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

export const check = (options: Options): Effect.Effect<Checked, InvalidOption> =>
  Effect.all({
    seats: count("seats", options.seats ?? 4, 1, 10_000),
    applyAt: count("applyAt", options.applyAt ?? 4, 1, Infinity),
    failuresInARow: count("failuresInARow", options.failuresInARow ?? 3, 1, Infinity),
    maxParks: count("maxParks", options.maxParks ?? 5, 0, Infinity),
    stopWithin: duration("stopWithin", options.stopWithin ?? "15 seconds"),
    grace: duration("grace", options.grace ?? "5 seconds")
  })
