/**
 * What an agent says it used. Unknown is `null`, never zero.
 */
import { Schema } from "effect"

const Tokens = Schema.NullOr(Schema.Number)

/** Tokens by what they were; `null` where the agent does not say. */
export const Usage = Schema.Struct({
  /** Prompt tokens that were neither read from a cache nor written to one. */
  input: Tokens,
  /** Answer tokens, the reasoning included. */
  output: Tokens,
  cacheRead: Tokens,
  cacheWrite: Tokens,
  /** The part of `output` that was reasoning. */
  reasoning: Tokens
})
export type Usage = typeof Usage.Type

/** Nothing is known. */
export const unknown: Usage = { input: null, output: null, cacheRead: null, cacheWrite: null, reasoning: null }
