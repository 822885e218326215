/**
 * What a graded run says about a case.
 */

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** One thing a grader looks for beyond the answer itself. */
export interface RubricItem {
  readonly name: string
  readonly passed: boolean
}

/** The answer is right. With a rubric item that failed, the run counts as a failure all the same. */
export interface Right<out Req = never> {
  readonly _tag: "Right"
  readonly rubric: ReadonlyArray<RubricItem>
  /** What a repair is asked for should a rubric item have failed; `null` without a rubric. */
  readonly repair: Req | null
}

/** The answer is wrong. */
export interface Wrong<out Req> {
  readonly _tag: "Wrong"
  readonly rubric: ReadonlyArray<RubricItem>
  /** What a repair is asked for: the payload of its request. */
  readonly repair: Req
}

/** The run says nothing about the case: what it would have been graded by was missing, or cannot be graded. */
export interface Void {
  readonly _tag: "Void"
  readonly reason: string
}

/** The run was graded, and the grading could not be read. */
export interface Unread {
  readonly _tag: "Unread"
  readonly reason: string
}

export type Verdict<Req = never> = Right<Req> | Wrong<Req> | Void | Unread

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

export const right = <Req = never>(graded?: {
  readonly rubric: ReadonlyArray<RubricItem>
  readonly repair: Req
}): Right<Req> => ({ _tag: "Right", rubric: graded?.rubric ?? [], repair: graded?.repair ?? null })

export const wrong = <Req>(repair: Req, rubric: ReadonlyArray<RubricItem> = []): Wrong<Req> => ({
  _tag: "Wrong",
  rubric,
  repair
})

const void_ = (reason: string): Void => ({ _tag: "Void", reason })

export {
  /** Named as the verdict is, though the word is reserved: `Verdict.void("the reference answer is missing")`. */
  void_ as void
}

export const unread = (reason: string): Unread => ({ _tag: "Unread", reason })

// -----------------------------------------------------------------------------
// reading
// -----------------------------------------------------------------------------

/** What a verdict counts as. Only a graded failure counts against a case; one that says nothing counts for neither side. */
export const countsAs = (verdict: Verdict<unknown>): "pass" | "failure" | "nothing" => {
  switch (verdict._tag) {
    case "Right":
      return verdict.rubric.every((item) => item.passed) ? "pass" : "failure"
    case "Wrong":
      return "failure"
    case "Void":
    case "Unread":
      return "nothing"
  }
}

/** The part of the rubric that passed, from 0 to 1; `null` without a rubric. */
export const score = (verdict: Verdict<unknown>): number | null => {
  if (!("rubric" in verdict) || verdict.rubric.length === 0) return null
  return verdict.rubric.filter((item) => item.passed).length / verdict.rubric.length
}
