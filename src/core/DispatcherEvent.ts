/**
 * What a dispatcher journals. The log of these is all it knows: its state is their fold.
 */
import { Schema } from "effect"
import { Applied } from "./Improvements.ts"
import { RecheckEvent } from "./RecheckEvent.ts"
import { Usage } from "./Usage.ts"

// Finite, because a number that may be none is a union in JSON, and that is half the cost of reading an event.
const at = { /** Epoch milliseconds. */ at: Schema.Finite }
const ofCase = { ...at, case: Schema.String, rev: Schema.Finite }

/** A run began. What it found unfinished is taken up again. */
export const RunStarted = Schema.TaggedStruct("RunStarted", {
  ...at,
  /** 1 for the first run on this log. */
  start: Schema.Finite,
  version: Schema.NullOr(Schema.String),
  /** Cases that had begun and not ended, by where they were. */
  found: Schema.Struct({
    open: Schema.Finite,
    parked: Schema.Finite,
    woken: Schema.Finite,
    held: Schema.Finite,
    failed: Schema.Finite
  }),
  /** The apply that was begun and not seen to end: it is called again, first of all. */
  again: Schema.NullOr(Schema.String)
})

/** Why a run ended, as data. */
export const RunEnd = Schema.Union([
  /** Nothing could happen any more. */
  Schema.TaggedStruct("Finished", {}),
  Schema.TaggedStruct("Stopped", {}),
  /** Only fibers of these cases were left, and they ignored interruption. */
  Schema.TaggedStruct("StopTimedOut", { cases: Schema.Array(Schema.String) }),
  /** The turns of the run have cost what they were allowed to. */
  Schema.TaggedStruct("BudgetSpent", { spentUsd: Schema.Number }),
  Schema.TaggedStruct("BreakerTripped", {
    failures: Schema.Array(Schema.Struct({ case: Schema.String, reason: Schema.String }))
  }),
  Schema.TaggedStruct("SystemDown", { reason: Schema.String }),
  Schema.TaggedStruct("ApplyFailed", { apply: Schema.String, reason: Schema.String }),
  /** The selection could not be read, or was not valid. */
  Schema.TaggedStruct("SelectionFailed", { reason: Schema.String })
])
export type RunEnd = typeof RunEnd.Type

export const RunEnded = Schema.TaggedStruct("RunEnded", { ...at, end: RunEnd })

/** A step succeeded: it is never run again. Without `result` it had none. */
export const StepEnded = Schema.TaggedStruct("StepEnded", {
  ...ofCase,
  step: Schema.String,
  result: Schema.optionalKey(Schema.Json)
})

/** A case gave its seat back until an apply has taken its request. */
export const CaseParked = Schema.TaggedStruct("CaseParked", {
  ...ofCase,
  name: Schema.String,
  request: Schema.String,
  payload: Schema.Json
})

/** A case gave its seat back until a time (epoch milliseconds), and nobody is charged. */
export const CaseHeld = Schema.TaggedStruct("CaseHeld", { ...ofCase, name: Schema.String, until: Schema.Number })

export const CaseCompleted = Schema.TaggedStruct("CaseCompleted", { ...ofCase, value: Schema.optionalKey(Schema.Json) })

export const CaseDifficult = Schema.TaggedStruct("CaseDifficult", { ...ofCase, reason: Schema.String })

/** Something outside the case broke. It is taken again at the next start, its steps kept. */
export const CaseFailed = Schema.TaggedStruct("CaseFailed", { ...ofCase, reason: Schema.String })

/** A failed case was taken again: the failure is cleared. */
export const CaseResumed = Schema.TaggedStruct("CaseResumed", { ...ofCase, reason: Schema.String })

/** The selection has a higher rev: steps and requests of the lower are dropped. `rev` is the new one. */
export const CaseRevised = Schema.TaggedStruct("CaseRevised", { ...ofCase, from: Schema.Finite })

/** A difficult case was given a new round: it begins again from nothing. */
export const CaseRetried = Schema.TaggedStruct("CaseRetried", ofCase)

/** What was known of a case was dropped: it is as new. */
export const CaseForgotten = Schema.TaggedStruct("CaseForgotten", ofCase)

/** A request was withdrawn: its case is woken. */
export const RequestCancelled = Schema.TaggedStruct("RequestCancelled", { ...ofCase, request: Schema.String })

/** An apply is about to be called with these requests. */
export const ApplyStarted = Schema.TaggedStruct("ApplyStarted", {
  ...at,
  apply: Schema.String,
  version: Schema.NullOr(Schema.String),
  requests: Schema.Array(Schema.String)
})

/** The requests are taken; their cases are woken. */
export const ApplyEnded = Schema.TaggedStruct("ApplyEnded", { ...at, apply: Schema.String, applied: Applied })

/** The requests stay pending. */
export const ApplyFailed = Schema.TaggedStruct("ApplyFailed", { ...at, apply: Schema.String, reason: Schema.String })

const Cost = Schema.NullOr(Schema.Finite)

/** What attempts of a turn used that no earlier event tells of. */
export const TurnSpent = Schema.TaggedStruct("TurnSpent", {
  ...ofCase,
  /** The apply of the recheck that the turn is part of; `null` when it is part of the case itself. */
  recheck: Schema.NullOr(Schema.String),
  turnId: Schema.String,
  stage: Schema.String,
  /** The number of the last attempt that is told of. */
  attempt: Schema.Finite,
  spent: Schema.Array(
    Schema.Struct({
      model: Schema.NullOr(Schema.String),
      usage: Schema.NullOr(Usage),
      /** Of an attempt that was cut off: what it had told until then. */
      usageSoFar: Schema.NullOr(Usage),
      costUsd: Cost,
      estimatedCostUsd: Cost
    })
  )
})

export const DispatcherEvent = Schema.Union([
  RunStarted,
  RunEnded,
  StepEnded,
  CaseParked,
  CaseHeld,
  CaseCompleted,
  CaseDifficult,
  CaseFailed,
  CaseResumed,
  CaseRevised,
  CaseRetried,
  CaseForgotten,
  RequestCancelled,
  ApplyStarted,
  ApplyEnded,
  ApplyFailed,
  TurnSpent,
  ...RecheckEvent.members
])
export type DispatcherEvent = typeof DispatcherEvent.Type

/** The version of these events in a log. */
export const version = 1
