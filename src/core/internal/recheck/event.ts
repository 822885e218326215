/**
 * What rechecks add to the journal of a dispatcher.
 */
import { Schema } from "effect"

/** A case has one open recheck at most; with the apply it names the recheck. */
const ofRecheck = { /** Epoch milliseconds. */ at: Schema.Number, case: Schema.String, apply: Schema.String }

/** The rechecks of an apply, all at once, so that a crash leaves either none or all. There may be none. */
const RechecksQueued = Schema.TaggedStruct("RechecksQueued", {
  at: Schema.Number,
  apply: Schema.String,
  cases: Schema.Array(Schema.Struct({ case: Schema.String, rev: Schema.Number }))
})

/** A newer apply came before a try counted: the recheck is of that one from now on. */
const RecheckMoved = Schema.TaggedStruct("RecheckMoved", { ...ofRecheck, to: Schema.String })

/** A recheck got a seat. */
const RecheckStarted = Schema.TaggedStruct("RecheckStarted", ofRecheck)

/** A run was graded, or broke. */
const TryEnded = Schema.TaggedStruct("TryEnded", {
  ...ofRecheck,
  arm: Schema.Literals(["new", "control"]),
  /** `error`: something outside the case broke. Only `pass` and `failure` count. */
  outcome: Schema.Literals(["pass", "failure", "void", "unread", "error"]),
  reason: Schema.NullOr(Schema.String),
  /** The part of the rubric that passed, from 0 to 1. */
  score: Schema.NullOr(Schema.Number),
  /** Of a failure: what a repair is asked for. */
  repair: Schema.optionalKey(Schema.Json)
})

export const RecheckOutcome = Schema.Union([
  Schema.TaggedStruct("Passed", { unstable: Schema.Boolean }),
  Schema.TaggedStruct("Regressed", {
    /** Passes on the previous version say that it is the edit. */
    confirmed: Schema.Boolean,
    /** The repair it asks for; `null` when it is only reported. */
    request: Schema.NullOr(Schema.String)
  }),
  Schema.TaggedStruct("Void", { reason: Schema.String })
])
export type RecheckOutcome = typeof RecheckOutcome.Type

const RecheckEnded = Schema.TaggedStruct("RecheckEnded", { ...ofRecheck, outcome: RecheckOutcome })

export const RecheckEvent = Schema.Union([RechecksQueued, RecheckMoved, RecheckStarted, TryEnded, RecheckEnded])
export type RecheckEvent = typeof RecheckEvent.Type
