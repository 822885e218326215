/**
 * What rechecks add to the journal of a dispatcher.
 */
import { Schema } from "effect"

const at = { /** Epoch milliseconds. */ at: Schema.Finite }

/** A case has one open recheck at most; with the apply it names the recheck. */
const ofRecheck = { ...at, case: Schema.String, apply: Schema.String }

/** The version a try runs on: the one the apply made, or the one before it. */
const Arm = Schema.Literals(["new", "control"])

/** The rechecks of an apply, all at once, so that a crash leaves either none or all. There may be none. */
export const RechecksQueued = Schema.TaggedStruct("RechecksQueued", {
  ...at,
  apply: Schema.String,
  cases: Schema.Array(Schema.Struct({ case: Schema.String, rev: Schema.Finite }))
})

/** A newer apply came before a try counted: the recheck is of that one from now on. */
export const RecheckMoved = Schema.TaggedStruct("RecheckMoved", { ...ofRecheck, to: Schema.String })

/** A recheck got a seat for the first time, or for the first time since a restart. */
export const RecheckStarted = Schema.TaggedStruct("RecheckStarted", ofRecheck)

/** A step of a try succeeded: it is run again only when it is a grading that cannot be read. Without `result` it had none. */
export const RecheckStepEnded = Schema.TaggedStruct("RecheckStepEnded", {
  ...ofRecheck,
  arm: Arm,
  step: Schema.String,
  result: Schema.optionalKey(Schema.Json)
})

/** A try gave its seat back until a time (epoch milliseconds), and nobody is charged. */
export const RecheckHeld = Schema.TaggedStruct("RecheckHeld", {
  ...ofRecheck,
  arm: Arm,
  name: Schema.String,
  until: Schema.Finite
})

/** A run was graded, or broke. */
export const TryEnded = Schema.TaggedStruct("TryEnded", {
  ...ofRecheck,
  arm: Arm,
  /** Counted from 1 in each arm; a grading done again has the number of its run. */
  try: Schema.Finite,
  /** `error`: something outside the case broke. Only `pass` and `failure` count. */
  outcome: Schema.Literals(["pass", "failure", "void", "unread", "error"]),
  /** Why it says nothing. */
  reason: Schema.NullOr(Schema.String),
  /** The part of the rubric that passed, from 0 to 1; `null` without a rubric. */
  score: Schema.NullOr(Schema.Finite),
  /** Of a failure on the new version: what a repair is asked for. */
  repair: Schema.optionalKey(Schema.Json)
})

/** What the first tries of all rechecks of an apply said together; each then ends for itself. */
export const BatchJudged = Schema.TaggedStruct("BatchJudged", {
  ...at,
  apply: Schema.String,
  /** `environment`: the previous version fails as well. `edit`: the apply broke most of what it should not have. */
  finding: Schema.Literals(["environment", "edit"])
})

/** Why a recheck says nothing. */
export const VoidWhy = Schema.Literals([
  /** The case has another rev, is no longer completed or no longer selected. */
  "case-changed",
  /** A try was void or could not be read, however often it was made again. */
  "unjudged",
  /** A try broke, however often it was made again: counts for the breaker. */
  "broke",
  /** The previous version fails as well: the environment drifted, or the case was never reliable. */
  "baseline",
  /** The runs are used up, and neither side is likely enough. */
  "inconclusive",
  /** With the other rechecks of the apply: the previous version fails as well. */
  "environment",
  /** With the other rechecks of the apply: the edit is broken at large, and this case was not needed to show it. */
  "edit"
])
export type VoidWhy = typeof VoidWhy.Type

/** What a recheck said. */
export const RecheckOutcome = Schema.Union([
  /** `unstable`: it failed before it passed. */
  Schema.TaggedStruct("Passed", { unstable: Schema.Boolean }),
  Schema.TaggedStruct("Regressed", {
    /** Passes on the previous version say that it is the edit. */
    confirmed: Schema.Boolean,
    /** The repair it asks for; `null` when it is only reported. */
    request: Schema.NullOr(Schema.String)
  }),
  Schema.TaggedStruct("Void", { why: VoidWhy, reason: Schema.String })
])
export type RecheckOutcome = typeof RecheckOutcome.Type

export const RecheckEnded = Schema.TaggedStruct("RecheckEnded", { ...ofRecheck, outcome: RecheckOutcome })

export const RecheckEvent = Schema.Union([
  RechecksQueued,
  RecheckMoved,
  RecheckStarted,
  RecheckStepEnded,
  RecheckHeld,
  TryEnded,
  BatchJudged,
  RecheckEnded
])
export type RecheckEvent = typeof RecheckEvent.Type
