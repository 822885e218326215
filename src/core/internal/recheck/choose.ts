/**
 * Which completed cases an apply rechecks.
 */
import { passRate } from "../../RecheckRule.ts"
import { hash } from "./hash.ts"

/** What is known of a case from its completion and its rechecks, at unchanged quality. */
export interface History {
  readonly passed: number
  readonly failed: number
  /** How its last recheck ended, when it has regressed: `confirmed` by passes on the previous version. */
  readonly regressed: "confirmed" | "unconfirmed" | undefined
  /** Then: the last version that was not blamed. */
  readonly good: string | undefined
}

/** Of a case that was completed and never rechecked. */
export const completedOnce: History = { passed: 1, failed: 0, regressed: undefined, good: undefined }

/** Cases that passed less often fail for no reason, and say little about an edit. */
const leastRate = 0.6

export interface Candidates {
  /** The ids of all completed cases, each once, in any order. */
  readonly completed: Iterable<string>
  /** Of those that are not `completedOnce`. */
  readonly histories: ReadonlyMap<string, History>
  /** Whether a case may be rechecked: completed, and without an open recheck. */
  readonly isFree: (id: string) => boolean
}

export interface ChooseOptions {
  /** How many at most. */
  readonly rechecks: number
  readonly seed: number
  readonly apply: string
  /** Whether only regressions come first that passes on the previous version confirmed. */
  readonly confirmedOnly: boolean
}

/**
 * Those whose last recheck regressed first, then those that pass often enough; both in an order that depends on seed,
 * apply and case id alone. So it is the same in every process, and a case that is added moves no other.
 */
export const choose = (candidates: Candidates, options: ChooseOptions): ReadonlyArray<string> => {
  const { completed, histories, isFree } = candidates
  const { rechecks, confirmedOnly } = options
  const key = hash(`${options.seed}/${options.apply}`, 0)
  const isFirst = ({ regressed }: History) => regressed === "confirmed" || (!confirmedOnly && regressed !== undefined)
  const regressed = [...histories].flatMap(([id, history]) => (isFirst(history) ? [id] : []))
  const first = least(regressed, key, rechecks, isFree)
  const isNext = (id: string): boolean => {
    const history = histories.get(id) ?? completedOnce
    return passRate(history.passed, history.failed) >= leastRate && !isFirst(history) && isFree(id)
  }
  return [...first, ...least(completed, key, rechecks - first.length, isNext)]
}

interface Ranked {
  readonly id: string
  readonly rank: number
}

/** Ids of equal rank in an order of their own, so that it does not depend on which came first. */
const byRank = (one: Ranked, other: Ranked): number => one.rank - other.rank || (one.id < other.id ? -1 : 1)

/**
 * The `count` accepted ids with the least hash. Sorting them all would cost many times their hashing; so only the best
 * are kept, and nothing is asked of an id but its hash unless it is among them so far.
 */
const least = (
  ids: Iterable<string>,
  key: number,
  count: number,
  accepts: (id: string) => boolean
): ReadonlyArray<string> => {
  if (count <= 0) return []
  const best: Array<Ranked> = []
  let worst = Infinity
  const cut = () => {
    best.sort(byRank)
    best.length = Math.min(best.length, count)
    worst = best[count - 1]?.rank ?? Infinity
  }
  for (const id of ids) {
    const rank = hash(id, key)
    if (rank > worst || !accepts(id)) continue
    best.push({ id, rank })
    if (best.length >= 2 * count) cut()
  }
  cut()
  return best.map(({ id }) => id)
}
