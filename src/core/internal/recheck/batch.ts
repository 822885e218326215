/**
 * What the first tries of all rechecks of one apply say together: an edit that breaks everything, or an environment that
 * does, would otherwise be found out, and paid for, once a case.
 */
import { passRate } from "../../RecheckRule.ts"

/** One recheck of the apply. */
export interface Member {
  readonly case: string
  /** Before this apply, at unchanged quality. */
  readonly passed: number
  readonly failed: number
  /** Its first try that counted; `null` while there is none. One that became void without leaves the batch. */
  readonly first: "passed" | "failed" | null
  /**
   * Its first run of the previous version; `void` when that said nothing, however often it was made again; `gone` when its
   * recheck came to an end without.
   */
  readonly control: "passed" | "failed" | "void" | "gone" | null
}

export type BatchFinding =
  /** Nothing unusual: each recheck goes on by itself. */
  | { readonly _tag: "Usual" }
  /** Make no other try: run the previous version on these cases. */
  | { readonly _tag: "Check"; readonly cases: ReadonlyArray<string> }
  /** The previous version fails as well: every recheck of the apply is void. */
  | { readonly _tag: "EnvironmentDown" }
  /** The edit is broken at large: all have regressed, with one repair for the apply (`repair`) instead of one a case. */
  | { readonly _tag: "EditBroken"; readonly repair: boolean }

const leastFailures = 3
const checks = 2
/** As for a single recheck: at most one batch of twenty reaches it with nothing broken. */
const leastFactor = 20

/** Whether so many first tries failed that they say something together. */
export const isUnusual = (failures: number, members: number): boolean =>
  failures >= leastFailures && 2 * failures >= members

/**
 * Judges the batch of an apply; `isRepair` when the apply took a repair, which never asks for another at large.
 *
 * *Details*: it steps in when at least three and at least half of the first tries fail, half of all that there are to
 * be, so that it does not depend on which try ended first. Passes on the previous version acquit the environment; they
 * convict the edit only when so many failures are unlikely for cases such as these.
 */
export const judgeBatch = (members: ReadonlyArray<Member>, isRepair: boolean): BatchFinding => {
  const failed = members.filter(({ first }) => first === "failed")
  if (!isUnusual(failed.length, members.length)) return { _tag: "Usual" }
  const candidates = failed.filter(({ control }) => control !== "gone")
  if (candidates.length < checks) return { _tag: "Usual" }
  const checked = candidates.toSorted(byReliability).slice(0, checks)
  const open = checked.filter(({ control }) => control === null)
  if (open.length > 0) return { _tag: "Check", cases: open.map((member) => member.case) }
  if (checked.every(({ control }) => control === "passed")) {
    return batchFactor(members) >= leastFactor ? { _tag: "EditBroken", repair: !isRepair } : { _tag: "Usual" }
  }
  return checked.some(({ control }) => control === "passed") ? { _tag: "Usual" } : { _tag: "EnvironmentDown" }
}

/**
 * How much likelier the first tries are when every other case is broken (and passes one run in ten) than when each
 * passes as often as it always did.
 */
const batchFactor = (members: ReadonlyArray<Member>): number =>
  members.reduce((factor, { passed, failed, first }) => {
    if (first === null) return factor
    const usual = first === "passed" ? passRate(passed, failed) : 1 - passRate(passed, failed)
    const broken = first === "passed" ? 0.1 : 0.9
    return (factor * (usual + broken)) / (2 * usual)
  }, 1)

/**
 * Only cases that failed are worth a control: one that passed has acquitted the environment already. Those with a
 * control first, so that the choice stands while other tries still end; then the most reliable.
 */
const byReliability = (one: Member, other: Member): number =>
  Number(other.control !== null) - Number(one.control !== null) ||
  passRate(other.passed, other.failed) - passRate(one.passed, one.failed) ||
  (one.case < other.case ? -1 : 1)
