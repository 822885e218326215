import { Context, type Duration, type Effect, type Schema } from "effect"
import type { RunEnding } from "./progress.ts"

/** A run to be started. */
export interface Firing {
  readonly workflowId: string
  /** `null` for a run that a person asked for. */
  readonly slot: number | null
  /** The identity of the run: derived from workflow, generation and slot, the same whenever it is asked for again. */
  readonly runId: string
  readonly input: Schema.Json
  /** When it was due, in epoch milliseconds. */
  readonly dueAt: number
  /** How long ago that was. */
  readonly late: Duration.Duration
}

export type Submitted = { readonly _tag: "Accepted" } | { readonly _tag: "Refused"; readonly reason: string }

/**
 * How a run is doing. `unknown`: the host never took it, and it is submitted (again). `lost`: the host took it, but it
 * neither runs nor ended, as after a crash; it is not started again and counts neither as a success nor as a failure.
 */
export type Outcome = "unknown" | "running" | RunEnding

/**
 * The port for what a schedule runs. Both are asked again after a failure, a timeout or a crash, so `submit` is
 * idempotent by run id: it starts a run at most once, and accepts one that it has started before.
 */
export class Workflows extends Context.Service<
  Workflows,
  {
    /** Takes the run or refuses it for good. It does not wait for the run. */
    readonly submit: (firing: Firing) => Effect.Effect<Submitted, unknown>
    readonly outcome: (runId: string) => Effect.Effect<Outcome, unknown>
  }
>()("shiftboss/core/Workflows") {}
