/**
 * What a dispatcher shows of itself: its events, what is going on, and why a case does not run.
 */
import type { DispatcherEvent, RunEnd } from "./DispatcherEvent.ts"
import type { Arm } from "./RecheckRule.ts"
import type { Total, Totals } from "./Turn.ts"

/** What the turns of cases or of rechecks used, by stage and model. */
export interface UsageRow {
  readonly of: "cases" | "rechecks"
  readonly stage: string
  readonly model: string | null
  readonly attempts: number
  readonly usage: Totals["usage"]
  readonly costUsd: Total
  /** By the host's prices, for attempts whose agent reports no cost; `null` without any. Not part of `costUsd`. */
  readonly estimatedCostUsd: number | null
}

/** An event with its place in the log. `cursor` counts from 1 and never changes. */
export interface Entry {
  readonly _tag: "Entry"
  readonly cursor: number
  readonly event: DispatcherEvent
}

/** Events after `after` and before `next` were not delivered, because the subscriber was slow; `events(after)` reads them. */
export interface Gap {
  readonly _tag: "Gap"
  readonly after: number
  readonly next: number
}

/** What is going on. */
export interface Snapshot {
  /** `none`: no run of this process is under way, and this was read from the log. */
  readonly run: "running" | "stopping" | "none"
  /** One for each seat; empty when no run is under way. */
  readonly seats: ReadonlyArray<{
    readonly case: string
    /** Of which recheck it is a try; `null` when it is the case itself. */
    readonly recheck: { readonly apply: string; readonly arm: Arm; readonly try: number } | null
    readonly step: string | null
    readonly since: number
  } | null>
  readonly waiting: {
    /** Woken cases that wait for a seat. */
    readonly woken: number
    /** New cases that wait for a seat; unknown (0) when no run is under way. */
    readonly fresh: number
    readonly parked: number
    readonly held: number
    /** Rechecks that wait for a seat, for a hold to end, or for the check of their environment. */
    readonly rechecks: number
    readonly requests: number
  }
  /** Since when (epoch milliseconds) the oldest of each class has waited. */
  readonly oldestWaiting: {
    readonly woken: number | null
    readonly rechecks: number | null
    /** Since the selection was read. */
    readonly fresh: number | null
    readonly parked: number | null
    readonly held: number | null
  }
  readonly applying: { readonly apply: string; readonly state: "waiting" | "running" } | null
  readonly counts: { readonly completed: number; readonly difficult: number; readonly failed: number }
  /** All rechecks that are over. */
  readonly rechecks: { readonly passed: number; readonly regressed: number; readonly void: number }
  /** Of all runs on this log. A turn is told of when it ends. */
  readonly usage: ReadonlyArray<UsageRow>
  readonly version: string | null
  /** What the turns of the run under way have cost, as far as it is known or estimated. */
  readonly spentUsd: number
  /** How the last run ended: the trip of a breaker stays visible here until the next start. */
  readonly end: RunEnd | null
}

/** Why a case is not running, or that it is. */
export type Explanation =
  | { readonly _tag: "Running"; readonly seat: number; readonly step: string | null }
  | { readonly _tag: "Waiting"; readonly for: WaitingFor; readonly because: string; readonly until?: number }
  | { readonly _tag: "Ended"; readonly as: "completed" | "difficult" | "failed"; readonly because: string }

/** What a case waits for. */
export type WaitingFor = "apply" | "hold" | "seat" | "run" | "stop" | "budget" | "unwinding" | "selection"
