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
 * their attempts, those of attempts that told nothing included.
 *
 * - A counter of the attempt is its share.
 * - A counter of the session is compared with the last one seen of that session. One that went down was started again
 *   and is taken whole.
 * - A total of zero after one that was not says nothing (a crashed agent prints one): the share is unknown, and the next
 *   total is compared with the one before it. So what an attempt used that told nothing is in the share of the next.
 * - The first total of a session that was in use before the ledger knew of it (`resumed`) cannot be divided: the share is
 *   unknown.
 */
export const share = (ledger: Ledger, result: Counted, resumed: boolean): readonly [Share, Ledger] => {
  const id = result.sessionId
  const known = id !== null && Object.hasOwn(ledger.sessions, id) ? ledger.sessions[id] : undefined
  const before = known ?? (resumed ? nothing : begun)
  const perSession = { usage: result.counters?.usage === "session", cost: result.counters?.cost === "session" }
  const usage = perSession.usage ? usageShare(before.usage, result.usage) : result.usage
  const costUsd = perSession.cost ? difference(before.costUsd, result.costUsd) : result.costUsd
  if (id === null) return [{ usage, costUsd }, ledger]
  const seen: Seen = {
    usage: perSession.usage && says(result.usage) ? result.usage : before.usage,
    costUsd: perSession.cost && (result.costUsd ?? 0) > 0 ? result.costUsd : before.costUsd
  }
  return [{ usage, costUsd }, { sessions: { ...ledger.sessions, [id]: seen } }]
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const fields = ["input", "output", "cacheRead", "cacheWrite", "reasoning"] as const

/** Of a session of which nothing has been seen. */
const nothing: Seen = { usage: null, costUsd: null }
/** Of a session that has just begun. */
const begun: Seen = { usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }, costUsd: 0 }

const says = (usage: Usage | null): boolean => usage !== null && fields.some((field) => (usage[field] ?? 0) > 0)

const difference = (before: number | null, now: number | null): number | null => {
  if (now === null || before === null || (now === 0 && before > 0)) return null
  return now < before ? now : now - before
}

const usageShare = (before: Usage | null, now: Usage | null): Usage | null => {
  if (now === null || before === null || (says(before) && !says(now))) return null
  // A reset starts every counter of the session again, so it is judged for all fields together: one field alone may
  // stand still.
  if (fields.some((field) => now[field] !== null && now[field] < (before[field] ?? 0))) return now
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
