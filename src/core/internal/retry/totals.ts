/**
 * What the attempts of a turn used: each by itself, and together.
 */
import * as Counters from "../../Counters.ts"
import type { Attempt, AttemptEnding, AttemptSummary, End, State, Total, Totals, TurnOutcome } from "../../Turn.ts"
import type { Usage } from "../../Usage.ts"

const nothing: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }

const fields = ["input", "output", "cacheRead", "cacheWrite", "reasoning"] as const

const sum = (parts: ReadonlyArray<number | null>): Total => {
  const known = parts.filter((part) => part !== null)
  const total = known.reduce((sum, part) => sum + part, 0)
  return {
    total: known.length === parts.length ? total : null,
    known: known.length === 0 && parts.length > 0 ? null : total
  }
}

/** The session the attempt left behind, as far as the agent told. */
export const sessionOf = (attempt: Attempt | undefined): string | null => {
  if (attempt === undefined) return null
  return attempt.sessionSeen ?? (attempt.session._tag === "Resume" ? attempt.session.id : null)
}

/** Each attempt with what it used itself, in order: counters that go on over a session are taken apart. */
const summaries = (attempts: ReadonlyArray<Attempt>): ReadonlyArray<AttemptSummary> => {
  let ledger = Counters.empty
  return attempts.map((attempt) => {
    const { number, round, rule, startedAt, ending, session } = attempt
    const sessionId = sessionOf(attempt)
    const result = ending?.result ?? null
    let own: Counters.Share = ending?.ran === false ? { usage: nothing, costUsd: 0 } : { usage: null, costUsd: null }
    if (result !== null) {
      const counted = { ...result, sessionId: result.sessionId ?? sessionId }
      ;[own, ledger] = Counters.share(ledger, counted, session._tag === "Resume")
    }
    return {
      ...{ number, round, rule, startedAt, sessionId, usage: own.usage, costUsd: own.costUsd },
      model: result?.model ?? attempt.model,
      endedAt: ending?.at ?? null,
      failure: ending?.failure ?? null,
      estimatedCostUsd: ending?.estimatedCostUsd ?? null
    }
  })
}

/** What the last attempt used itself, when it ended so. */
export const ownUsage = (state: State | undefined, ending: AttemptEnding) => {
  const attempts = state?.attempts ?? []
  const ended = attempts.map((attempt, index) => (index === attempts.length - 1 ? { ...attempt, ending } : attempt))
  const { usage = null, costUsd = null } = summaries(ended).at(-1) ?? {}
  return { usage, costUsd }
}

/** What is known or estimated to be spent, in US dollars, and whether that is all. */
export const spent = (attempts: ReadonlyArray<Attempt>): { readonly usd: number; readonly verified: boolean } => {
  const costs = summaries(attempts).map((attempt) => attempt.costUsd ?? attempt.estimatedCostUsd)
  const { known, total } = sum(costs)
  return { usd: known ?? 0, verified: total !== null }
}

const totals = (attempts: ReadonlyArray<Attempt>): Totals => {
  const all = summaries(attempts)
  const usage = (field: keyof Usage) => sum(all.map((attempt) => attempt.usage?.[field] ?? null))
  const estimates = all.map((attempt) => attempt.estimatedCostUsd).filter((estimate) => estimate !== null)
  const [input, output, cacheRead, cacheWrite, reasoning] = fields.map(usage) as [Total, Total, Total, Total, Total]
  return {
    usage: { input, output, cacheRead, cacheWrite, reasoning },
    costUsd: sum(all.map((attempt) => attempt.costUsd)),
    estimatedCostUsd: estimates.length === 0 ? null : estimates.reduce((total, estimate) => total + estimate, 0),
    turns: sum(attempts.map(({ ending }) => (ending?.ran === false ? 0 : (ending?.result?.turns ?? null))))
  }
}

/** What came of a turn that ended so. */
export const outcome = (state: State, end: End, budgetUsd: number | undefined): TurnOutcome => {
  const { turnId, startedAt, head, attempts } = state
  const last = attempts.at(-1)
  return {
    ...{ ...end, turnId, startedAt, head, rounds: state.round },
    text: last?.ending?.result?.text ?? "",
    result: attempts.findLast((attempt) => attempt.ending?.result)?.ending?.result ?? null,
    sessionId: attempts.map(sessionOf).findLast((id) => id !== null) ?? null,
    attempts: summaries(attempts),
    totals: totals(attempts),
    budgetVerified: budgetUsd === undefined ? null : spent(attempts).verified
  }
}

/** US dollars for a million tokens of each sort. What is not given costs nothing. */
export interface Price {
  readonly input: number
  readonly output: number
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

/** What the usage costs by the price; `null` when a part with a price is not known. */
export const estimate = (usage: Usage | null, price: Price | undefined): number | null => {
  if (usage === null || price === undefined) return null
  const parts = (["input", "output", "cacheRead", "cacheWrite"] as const).map((field) => {
    const tokens = usage[field]
    const perMillion = price[field]
    if (perMillion === undefined) return 0
    return tokens === null ? null : (tokens * perMillion) / 1_000_000
  })
  return sum(parts).total
}
