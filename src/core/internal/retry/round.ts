/**
 * The attempts of the present round, and which of them count for its ladders.
 */
import type { Purpose, State } from "../../Turn.ts"

export const inRound = (state: State) => state.attempts.filter((attempt) => attempt.round === state.round)

const charged: ReadonlyArray<Purpose> = ["first", "round", "retry", "fresh", "fallback"]

/** The step of a ladder of retries is this, less one. */
export const counted = (state: State) => inRound(state).filter((attempt) => charged.includes(attempt.purpose)).length
