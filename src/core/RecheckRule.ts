/**
 * When a recheck is over, and what it says: rules as data, and one pure function that judges by them.
 *
 * Agents are noisy: a case that passes four times in five fails twice in a row once in 25, with nothing changed. A rule
 * says how many failures are believed.
 */

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** The version a try runs on: the one the apply made, or the one before it. */
export type Arm = "new" | "control"

/** Runs only the new version: a case has regressed when each of the first `tries` fails. */
export interface AllFail {
  readonly _tag: "AllFail"
  readonly tries: number
}

/** Runs the previous version in turn with the new one, and goes by how much likelier the failures are with a break. */
export interface Controlled {
  readonly _tag: "Controlled"
  readonly bayesFactor: number
  readonly failures: number
  readonly controlPasses: number
  readonly controlFailures: number
  readonly runs: number
  readonly redos: number
  readonly controls: boolean
}

export type RecheckRule = AllFail | Controlled

export interface ControlledOptions {
  /** The Bayes factor from which a case has regressed. At most one in so many unbroken cases ever reaches it. Default: 20. */
  readonly bayesFactor?: number | undefined
  /** Failures on the new version without which no case has regressed. They come first, without a control. Default: 2. */
  readonly failures?: number | undefined
  /** Passes on the previous version without which no case has regressed. Default: 2. */
  readonly controlPasses?: number | undefined
  /** From so many failures on the previous version, when they outnumber its passes, the recheck is void. Default: 2. */
  readonly controlFailures?: number | undefined
  /** Runs a recheck may take, those not counted that say nothing. Default: 8. */
  readonly runs?: number | undefined
  /** How often one try that says nothing is made again, before the recheck is void. Default: 2. */
  readonly redos?: number | undefined
  /**
   * Whether the host can run the previous version. Without, nothing tells an edit that breaks from an environment that
   * does, so a regression is reported and asks for no repair. Default: true.
   */
  readonly controls?: boolean | undefined
}

/** All that a judgement rests on. Tries that say nothing are in none of the first six. */
export interface Counts {
  /** What was known of the case before this recheck, at unchanged quality. */
  readonly earlierPassed: number
  readonly earlierFailed: number
  /** In this recheck, on the version the apply made. */
  readonly newPassed: number
  readonly newFailed: number
  /** In this recheck, on the version before it. */
  readonly controlPassed: number
  readonly controlFailed: number
  /** Tries that said nothing since the last one that counted. */
  readonly voids: number
}

/** Why a recheck says nothing. */
export type VoidReason =
  /** The previous version fails as well: the environment drifted, or the case was never reliable. */
  | "baseline"
  /** The runs are used up, and neither side is likely enough. */
  | "inconclusive"
  /** A try said nothing, however often it was made again: it broke, was void or could not be read. */
  | "unjudged"

/** What comes next, or what the recheck says. */
export type Judgement =
  /** Make a try; `redo` when the last one said nothing. */
  | { readonly _tag: "Run"; readonly arm: Arm; readonly redo: boolean }
  /** `unstable`: it failed before it passed. */
  | { readonly _tag: "Passed"; readonly unstable: boolean }
  | { readonly _tag: "Regressed" }
  | { readonly _tag: "Void"; readonly reason: VoidReason }

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/** A case has regressed when every try fails. The rule of a host that cannot run the previous version. */
export const allFail = (tries = 2): AllFail => {
  checkCount("tries", tries, 1)
  return { _tag: "AllFail", tries }
}

/** The rule of a host that can run the previous version: far harder to fool. */
export const controlled = (options: ControlledOptions = {}): Controlled => {
  const { bayesFactor = 20, failures = 2, controlPasses = 2, controlFailures = 2, runs = 8, redos = 2 } = options
  if (!(bayesFactor > 1))
    throw new RangeError(`RecheckRule.controlled: bayesFactor must be above 1, not ${bayesFactor}.`)
  checkCount("failures", failures, 1)
  checkCount("controlPasses", controlPasses, 0)
  checkCount("controlFailures", controlFailures, 1)
  checkCount("runs", runs, failures)
  checkCount("redos", redos, 0)
  const { controls = true } = options
  return { _tag: "Controlled", bayesFactor, failures, controlPasses, controlFailures, runs, redos, controls }
}

/** The rule of a workload that names none. */
export const defaultFor = (controls: boolean): RecheckRule => (controls ? controlled() : allFail())

/** Whether a regression by this rule asks for a repair by itself. */
export const asksForRepair = (rule: RecheckRule): boolean => rule._tag === "AllFail" || rule.controls

// -----------------------------------------------------------------------------
// judging
// -----------------------------------------------------------------------------

/**
 * What comes next in a recheck with these counts, or what it says. It depends on nothing else: neither on the order of
 * the tries, nor on where a crash fell.
 */
export const verdict = (counts: Counts, rule: RecheckRule): Judgement => {
  if (counts.newPassed > 0) return { _tag: "Passed", unstable: counts.newFailed > 0 }
  const end = rule._tag === "AllFail" ? endOfAllFail(counts, rule) : endOfControlled(counts, rule)
  if (end !== undefined) return end
  const redos = rule._tag === "AllFail" ? 0 : rule.redos
  if (counts.voids > redos) return { _tag: "Void", reason: "unjudged" }
  return { _tag: "Run", arm: nextArm(counts, rule), redo: counts.voids > 0 }
}

/**
 * How much likelier the failures on the new version are when it is broken (it passes as `Beta(1, 9)` does, one run in
 * ten) than when the case passes as often as it always did (`Beta(1 + passes, 1 + failures)` of the earlier and the
 * control runs).
 *
 * *Details*: the ratio of two beta-binomial likelihoods; see R. E. Kass and A. E. Raftery, "Bayes Factors", Journal of
 * the American Statistical Association 90 (1995), 773–795, who call 20 and more strong evidence. In an unbroken case its
 * expectation is 1 after any number of runs, so that it ever reaches x in at most one of x cases (Ville's inequality),
 * however often one looks: stopping early and judging again after a crash are both sound.
 */
export const bayesFactor = (counts: Counts): number => {
  const passes = 1 + counts.earlierPassed + counts.controlPassed
  const failures = 1 + counts.earlierFailed + counts.controlFailed
  let factor = 1
  for (let j = 0; j < counts.newFailed; j++) {
    factor *= ((9 + j) / (10 + j)) * ((passes + failures + j) / (failures + j))
  }
  return factor
}

/** How often a case passes, as far as its counts say: the mean of `Beta(1 + passed, 1 + failed)`. */
export const passRate = (passed: number, failed: number): number => (1 + passed) / (2 + passed + failed)

// -----------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------

const checkCount = (name: string, value: number, least: number): void => {
  if (Number.isInteger(value) && value >= least) return
  throw new RangeError(`RecheckRule: ${name} must be a whole number of at least ${least}, not ${value}.`)
}

const endOfAllFail = (counts: Counts, rule: AllFail): Judgement | undefined =>
  counts.newFailed >= rule.tries ? { _tag: "Regressed" } : undefined

const endOfControlled = (counts: Counts, rule: Controlled): Judgement | undefined => {
  const { newFailed, controlPassed, controlFailed } = counts
  const confirmed = !rule.controls || controlPassed >= rule.controlPasses
  if (newFailed >= rule.failures && confirmed && bayesFactor(counts) >= rule.bayesFactor) return { _tag: "Regressed" }
  if (controlFailed >= rule.controlFailures && controlFailed > controlPassed) {
    return { _tag: "Void", reason: "baseline" }
  }
  if (newFailed + controlPassed + controlFailed >= rule.runs) return { _tag: "Void", reason: "inconclusive" }
  return undefined
}

/**
 * The first failures come without a control, which most rechecks then never need. After them control and new in turn,
 * counted and not remembered; once the failures are likely enough only controls are wanting, and another run of the new
 * version could not say more.
 */
const nextArm = (counts: Counts, rule: RecheckRule): Arm => {
  if (rule._tag === "AllFail" || !rule.controls || counts.newFailed < rule.failures) return "new"
  if (bayesFactor(counts) >= rule.bayesFactor) return "control"
  const controls = counts.controlPassed + counts.controlFailed
  return controls <= counts.newFailed - rule.failures ? "control" : "new"
}
