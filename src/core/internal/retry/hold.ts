/**
 * How long a limit is waited out.
 */
import { Duration } from "effect"
import type { Complete } from "../../RetryRules.ts"
import type { Attempt, State } from "../../Turn.ts"
import { counted } from "./round.ts"

interface Limit {
  readonly at: number
  readonly resetAt: number | undefined
}

/** The attempt met something that is waited out and charged to nobody. */
export const isLimited = (rules: Complete, { ending }: Attempt): boolean =>
  ending !== null && ending.failure !== null && rules.remedies[ending.failure.kind]._tag === "Hold"

/** The attempts that met a limit one after the other, up to the last one. */
const limits = (rules: Complete, state: State): ReadonlyArray<Limit> => {
  const other = state.attempts.findLastIndex((attempt) => !isLimited(rules, attempt) || attempt.round !== state.round)
  return state.attempts
    .slice(other + 1)
    .flatMap(({ ending }) => (ending?.failure ? [{ at: ending.at, resetAt: ending.failure.resetAt }] : []))
}

/** When the first of the present run of limits was met. */
export const limitedSince = (rules: Complete, state: State): number | undefined => limits(rules, state)[0]?.at

const at = (ladder: ReadonlyArray<Duration.Input>, step: number): number =>
  Duration.toMillis(ladder[Math.min(step, ladder.length - 1)] ?? 0)

/** The end of the hold after the last attempt, which met a limit. `jitter` is a number from 0 to below 1. */
export const holdUntil = (
  rules: Complete,
  state: State,
  jitter: number
): { readonly rule: string; readonly due: number } => {
  const met = limits(rules, state)
  const last = met.at(-1) ?? { at: 0, resetAt: undefined }
  const millis = (duration: Duration.Input) => Duration.toMillis(duration)
  const isAhead = (limit: Limit) => limit.resetAt !== undefined && limit.resetAt > limit.at
  const isTold = (limit: Limit) => limit.resetAt !== undefined && limit.resetAt >= limit.at - millis(rules.resetPast)
  const afterReset = (resetAt: number) =>
    Math.max(last.at, resetAt + millis(rules.resetBuffer) + Math.floor(jitter * millis(rules.resetJitter)))

  if (last.resetAt !== undefined && isAhead(last)) return { rule: "limit-reset", due: afterReset(last.resetAt) }
  const earlier = met.slice(0, -1)
  const first = earlier[0]
  const told = Math.max(earlier.findLastIndex(isAhead), first !== undefined && isTold(first) ? 0 : -1)
  if (told >= 0) {
    const step = earlier.length - 1 - told
    return { rule: `limit-outlived-its-reset-${step + 1}`, due: last.at + at(rules.resetOutlived, step) }
  }
  if (last.resetAt !== undefined && isTold(last)) return { rule: "limit-reset-past", due: afterReset(last.resetAt) }
  return { rule: `limit-unknown-reset-${met.length}`, due: last.at + at(rules.unknownReset, met.length - 1) }
}

/** Until when other turns had better not launch where the last attempt failed; `undefined`: they may. */
export const wallUntil = (rules: Complete, state: State): number | undefined => {
  const ending = state.attempts.at(-1)?.ending
  const failure = ending?.failure
  if (!ending || !failure) return undefined
  const remedy = rules.remedies[failure.kind]
  if (remedy._tag === "Hold") return holdUntil(rules, state, 0).due
  if (remedy._tag !== "Retry") return undefined
  return Math.max(ending.at + at(remedy.waits, counted(state) - 1), failure.resetAt ?? 0)
}
