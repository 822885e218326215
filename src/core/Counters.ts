/**
 * What agents count, and the ledger that turns their counters into what each attempt used.
 *
 * Some agents report what one attempt used, others what the whole session has used so far, earlier attempts included.
 * Adding the latter up attempt by attempt counts the first attempt once for every attempt after it.
 */
import { Schema } from "effect"
import type { Usage } from "./Usage.ts"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

/** What a counter covers: this attempt alone, or all attempts of its session so far. */
export const CounterScope = Schema.Literals(["attempt", "session"])
export type CounterScope = typeof CounterScope.Type

/** What the counters of a result cover. */
export const Scopes = Schema.Struct({ usage: CounterScope, cost: CounterScope })
export type Scopes = typeof Scopes.Type

/** What is needed of a result: its session, its counters, and what they cover. Without `counters` they are the attempt's own. */
export interface Counted {
  readonly sessionId: string | null
  readonly usage: Usage | null
  readonly costUsd: number | null
  readonly counters?: Scopes | undefined
}

/** What one attempt used; `null` where that cannot be told. */
export interface Share {
  readonly usage: Usage | null
  readonly costUsd: number | null
}

interface Seen {
  readonly usage: Usage | null
  readonly costUsd: number | null
}

/** The last totals seen of each session. A value: hosts may build it anew from the results they have journaled. */
export interface Ledger {
  readonly sessions: { readonly [sessionId: string]: Seen }
}

// -----------------------------------------------------------------------------
// Ledger
// -----------------------------------------------------------------------------

/** Nothing has been seen of any session. */
export const empty: Ledger = { sessions: {} }

/**
 * What the attempt behind a result used, and the ledger with that result in it. Results must be given in the order of
 * their attempts.
 *
 * - A counter of the attempt is its share.
 * - A counter of the session is compared with the last one seen of that session. One that went down was started again
 *   and is taken whole.
 * - A total of zero after one that was not says nothing (a crashed agent prints one): the share is unknown, and the next
 *   total is compared with the one before it.
 * - The first total of a session that was already in use (`resumed`) cannot be divided: the share is unknown.
 */
export const share = (ledger: Ledger, result: Counted, resumed: boolean): readonly [Share, Ledger] => {
  const scopes = result.counters ?? { usage: "attempt", cost: "attempt" }
  const id = result.sessionId
  const before = id === null ? undefined : ledger.sessions[id]
  const fresh = !resumed && before === undefined
  const usage = scopes.usage === "attempt" ? result.usage : usageShare(before?.usage ?? null, result.usage, fresh)
  const costUsd =
    scopes.cost === "attempt" ? result.costUsd : difference(before?.costUsd ?? null, result.costUsd, fresh)
  if (id === null) return [{ usage, costUsd }, ledger]
  const seen: Seen = {
    usage: scopes.usage === "session" && !says(result.usage) ? (before?.usage ?? null) : result.usage,
    costUsd: scopes.cost === "session" && !result.costUsd ? (before?.costUsd ?? null) : result.costUsd
  }
  return [{ usage, costUsd }, { sessions: { ...ledger.sessions, [id]: seen } }]
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const fields = ["input", "output", "cacheRead", "cacheWrite", "reasoning"] as const

const says = (usage: Usage | null): boolean => usage !== null && fields.some((field) => (usage[field] ?? 0) > 0)

const difference = (before: number | null, now: number | null, fresh: boolean): number | null => {
  if (now === null) return null
  if (before === null) return fresh ? now : null
  if (now === 0 && before > 0) return null
  return now < before ? now : now - before
}

const usageShare = (before: Usage | null, now: Usage | null, fresh: boolean): Usage | null => {
  if (now === null) return null
  if (before === null) return fresh ? now : null
  if (says(before) && !says(now)) return null
  // A reset starts every counter of the session again, so it is judged for all fields together: one field alone may
  // stand still.
  const reset = fields.some((field) => (now[field] ?? 0) < (before[field] ?? 0))
  if (reset) return now
  const of = (field: (typeof fields)[number]): number | null => {
    const [last, next] = [before[field], now[field]]
    return last === null || next === null ? null : next - last
  }
  return {
    input: of("input"),
    output: of("output"),
    cacheRead: of("cacheRead"),
    cacheWrite: of("cacheWrite"),
    reasoning: of("reasoning")
  }
}
