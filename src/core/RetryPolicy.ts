/**
 * Takes a turn to its end through as many attempts as the rules allow, journaled.
 */
export { decide, type Decision, type Moment } from "./internal/retry/decide.ts"
export { evolve } from "./internal/retry/evolve.ts"
