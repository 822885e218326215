/**
 * What a host tells while it lives.
 */
import type { Storage } from "shiftboss"

export interface StepName {
  readonly case: string
  readonly rev: number
  readonly step: string
  /** Absent for a step of the case itself. */
  readonly recheck?: { readonly apply: string; readonly arm: string } | undefined
}

export type Told =
  | { readonly _tag: "Opened"; readonly log: string }
  /** The entries are about to be written. */
  | {
      readonly _tag: "Attempted"
      readonly id: number
      readonly log: string
      readonly operation: "append" | "replace"
      readonly entries: ReadonlyArray<Storage.Json>
    }
  /** The attempt with this id was acknowledged, and nobody but the witness knows yet. */
  | { readonly _tag: "Acknowledged"; readonly id: number }
  /** The effect of a step is about to run. */
  | ({ readonly _tag: "StepBegun" } & StepName)
  /** It went through; nothing of it is journaled yet. */
  | ({ readonly _tag: "StepDone" } & StepName)
  | { readonly _tag: "ApplyBegun"; readonly apply: string }
  | { readonly _tag: "ApplyMade"; readonly apply: string }
