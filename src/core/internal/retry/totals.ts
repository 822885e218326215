/**
 * What the attempts of a turn used: each by itself, and together.
 */
import * as Counters from "../../Counters.ts"
import type {
  Attempt,
  AttemptEnding,
  AttemptSummary,
  End,
  State,
  Total,
  Totals,
  TurnOutcome,
  UsageSoFar
} from "../../Turn.ts"
import type { Usage } from "../../Usage.ts"

const nothing: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }

const fields = ["input", "output", "cacheRead", "cacheWrite", "reasoning"] as const

const whole = (part: number | null): Total => ({ total: part, known: part })

const atLeast = (part: number | null): Total => ({ total: null, known: part })

const sum = (parts: ReadonlyArray<Total>): Total => {
  const known = parts.flatMap((part) => (part.known === null ? [] : [part.known]))
  const added = known.reduce((sum, part) => sum + part, 0)
  return {
    total: parts.some((part) => part.total === null) ? null : added,
    known: known.length === 0 && parts.length > 0 ? null : added
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
    const share = (counted: Counters.Counted): Counters.Share => {
      const [own, after] = Counters.share(ledger, counted, session._tag === "Resume")
      ledger = after
      return own
    }
    let own: Counters.Share = ending?.ran === false ? { usage: nothing, costUsd: 0 } : { usage: null, costUsd: null }
    if (result !== null) own = share({ ...result, sessionId: result.sessionId ?? sessionId })
    const told = own.usage === null ? attempt.usageSoFar : undefined
    return {
      ...{ number, round, rule, startedAt, sessionId, usage: own.usage, costUsd: own.costUsd },
      usageSoFar: told === undefined ? null : share(asCounted(told, sessionId)).usage,
      model: result?.model ?? attempt.model,
      endedAt: ending?.at ?? null,
      failure: ending?.failure ?? null,
      estimatedCostUsd: ending?.estimatedCostUsd ?? null
    }
  })
}

const asCounted = ({ usage, counter = "attempt" }: UsageSoFar, sessionId: string | null): Counters.Counted => ({
  ...{ sessionId, usage, costUsd: null, counters: { usage: counter, cost: "attempt" } }
})

/** What is known or estimated to be spent, in US dollars, and whether that is all. */
export const spent = (attempts: ReadonlyArray<Attempt>): { readonly usd: number; readonly verified: boolean } => {
  const costs = summaries(attempts).map(({ costUsd, usage, estimatedCostUsd }) =>
    costUsd === null && usage === null ? atLeast(estimatedCostUsd) : whole(costUsd ?? estimatedCostUsd)
  )
  const { known, total } = sum(costs)
  return { usd: known ?? 0, verified: total !== null }
}

const totals = (attempts: ReadonlyArray<Attempt>): Totals => {
  const all = summaries(attempts)
  const usage = (field: keyof Usage) =>
    sum(
      all.map(({ usage, usageSoFar }) => (usage === null ? atLeast(usageSoFar?.[field] ?? null) : whole(usage[field])))
    )
  const estimates = all.map((attempt) => attempt.estimatedCostUsd).filter((estimate) => estimate !== null)
  const [input, output, cacheRead, cacheWrite, reasoning] = fields.map(usage) as [Total, Total, Total, Total, Total]
  return {
    usage: { input, output, cacheRead, cacheWrite, reasoning },
    costUsd: sum(all.map((attempt) => whole(attempt.costUsd))),
    estimatedCostUsd: estimates.length === 0 ? null : estimates.reduce((total, estimate) => total + estimate, 0),
    turns: sum(attempts.map(({ ending }) => whole(ending?.ran === false ? 0 : (ending?.result?.turns ?? null))))
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

/** The ending of the turn's last attempt with what that cost by the host's prices, where the agent reports no cost. */
export const priced = (
  state: State | undefined,
  ending: Omit<AttemptEnding, "estimatedCostUsd">,
  prices: { readonly [model: string]: Price }
): AttemptEnding => {
  const unpriced = { ...ending, estimatedCostUsd: null }
  const last = state?.attempts.at(-1)
  if (state === undefined || last === undefined) return unpriced
  const own = summaries([...state.attempts.slice(0, -1), { ...last, ending: unpriced }]).at(-1)
  const model = own?.model ?? ""
  const price = Object.hasOwn(prices, model) ? prices[model] : undefined
  if (own === undefined || own.costUsd !== null || price === undefined) return unpriced
  const { usage, usageSoFar } = own
  const estimatedCostUsd = usage === null ? usageSoFar && cost(usageSoFar, price).known : cost(usage, price).total
  return { ...ending, estimatedCostUsd }
}

/** What the usage costs by the price, as far as it is known. */
const cost = (usage: Usage, price: Price): Total =>
  sum(
    (["input", "output", "cacheRead", "cacheWrite"] as const).map((field) => {
      const perMillion = price[field]
      const tokens = usage[field]
      if (perMillion === undefined) return whole(0)
      return whole(tokens === null ? null : (tokens * perMillion) / 1_000_000)
    })
  )
