/**
 * Completed cases run again on the version an apply made: does the edit still pass what passed before?
 */
import { Context, type Effect } from "effect"
import type { Case } from "./Case.ts"
import type { ReadError } from "./Improvements.ts"
import type { RecheckEvent, RecheckOutcome } from "./RecheckEvent.ts"
import type { Arm } from "./RecheckRule.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** One run of a recheck, as the host is asked for it. */
export interface Try<out C extends Case = Case> {
  readonly case: C
  /** The apply that is judged. */
  readonly apply: string
  /** `control`: this run is of a version before the apply. Only asked for when the workload says `controls`. */
  readonly arm: Arm
  /**
   * The version to run on: the one the apply made, or with `control` the one before it. While a regression of the case is
   * not repaired, its controls are of the version before that one.
   */
  readonly version: string
  /** What the apply changed, when it said so. */
  readonly patch: string | null
  /** Counted from 1 in each arm. */
  readonly try: number
}

/** A try that ended. */
export type TryEnded = Omit<Extract<RecheckEvent, { readonly _tag: "TryEnded" }>, "_tag" | "case" | "apply" | "repair">

/** A recheck as the log knows it. Together, case and apply name it. */
export interface Recheck {
  readonly case: string
  readonly rev: number
  readonly apply: string
  readonly state: "queued" | "running" | "passed" | "regressed" | "void"
  /** What it said; `null` while it is open. */
  readonly outcome: RecheckOutcome | null
  /** In the order they ended, those included that say nothing. */
  readonly tries: ReadonlyArray<TryEnded>
  /** Epoch milliseconds. */
  readonly queuedAt: number
  readonly endedAt: number | null
}

// -----------------------------------------------------------------------------
// service
// -----------------------------------------------------------------------------

/** What rechecks have said. Answers before, during and after a run, from the log. */
export class Rechecks extends Context.Service<
  Rechecks,
  {
    /** Rechecks that are queued or running, oldest first. */
    readonly open: Effect.Effect<ReadonlyArray<Recheck>, ReadError>
    /** All rechecks, in the order they were queued. */
    readonly all: Effect.Effect<ReadonlyArray<Recheck>, ReadError>
    /** Cases that failed before they passed, in the last recheck that they passed. */
    readonly unstable: Effect.Effect<ReadonlyArray<string>, ReadError>
  }
>()("shiftboss/core/Rechecks") {}
