/**
 * What conformance suites have in common.
 */
import { Data, Effect } from "effect"

/** One rule of the contract. `run` fails, saying what was found, when the rule is broken. */
export interface Case {
  readonly name: string
  readonly run: Effect.Effect<void, unknown>
}

export class BrokenRule extends Data.TaggedError("BrokenRule")<{ readonly message: string }> {}

export const broken = (message: string): Effect.Effect<never, BrokenRule> => Effect.fail(new BrokenRule({ message }))

export const check = (holds: boolean, otherwise: string): Effect.Effect<void, BrokenRule> =>
  holds ? Effect.void : broken(otherwise)
