/**
 * Requests for an edit of the shared system, and the applies that take them in batches.
 */
import { Context, type Effect, Schema } from "effect"
import type { LogCorrupt, LogFenced, LogHeld, LogTooNew, StorageError } from "./StorageError.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What an apply made of the system. */
export const Applied = Schema.Union([
  Schema.TaggedStruct("Changed", { from: Schema.String, to: Schema.String, patch: Schema.optionalKey(Schema.String) }),
  Schema.TaggedStruct("Skipped", { reason: Schema.String })
])
export type Applied = typeof Applied.Type

/** The system went from one version to another. */
export const changed = (from: string, to: string, patch?: string): Applied =>
  patch === undefined ? { _tag: "Changed", from, to } : { _tag: "Changed", from, to, patch }

/** There was nothing to change. The requests count as taken. */
export const skipped = (reason: string): Applied => ({ _tag: "Skipped", reason })

/** Why a request was sent: a case asked for it, or a recheck found a regression. */
export const Why = Schema.Literals(["improvement", "repair"])
export type Why = typeof Why.Type

/** What a case asks an apply for. */
export interface Request<out Req = Schema.Json> {
  /** Names the case, its rev and the park: the same request has the same id after any crash. */
  readonly id: string
  readonly case: string
  readonly rev: number
  /** What `seat.park` called it. */
  readonly name: string
  readonly why: Why
  readonly payload: Req
}

/** What one apply takes: everything that was pending when it began. */
export interface Batch<out Req = Schema.Json> {
  /** 001, 002, …: never used for another batch, so an apply made idempotent by name is safe to call again. */
  readonly name: string
  /** The same name and batch were begun before and not seen to end: a crash or a stop cut it off. */
  readonly again: boolean
  /** The system's version when the apply began; `null` when the workload does not tell it. */
  readonly version: string | null
  readonly requests: ReadonlyArray<Request<Req>>
}

/** An apply that ended, failed, or was begun and not seen to end. */
export interface Apply {
  readonly name: string
  readonly requests: ReadonlyArray<string>
  readonly outcome: Applied | { readonly _tag: "Failed"; readonly reason: string } | { readonly _tag: "Begun" }
  /** Epoch milliseconds of the last that is known of it. */
  readonly at: number
}

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/** No request with that id is pending. */
export class UnknownRequest extends Schema.TaggedError<UnknownRequest>()("UnknownRequest", { request: Schema.String }) {
  override get message(): string {
    return (
      `no request "${this.request}" is pending; Improvements.pending lists those that are. ` +
      `One that an apply has begun to take can no longer be cancelled.`
    )
  }
}

/** What reading the log can fail with. */
export type ReadError = StorageError | LogCorrupt | LogTooNew

/** What a change from outside a run can fail with. */
export type ChangeError = ReadError | LogHeld | LogFenced

// -----------------------------------------------------------------------------
// service
// -----------------------------------------------------------------------------

/** What cases ask for, and what became of it. Answers before, during and after a run, from the log. */
export class Improvements extends Context.Service<
  Improvements,
  {
    /** Requests that no apply has taken, oldest first. Payloads are as encoded by the workload's schema. */
    readonly pending: Effect.Effect<ReadonlyArray<Request>, ReadError>
    /** All applies, oldest first. */
    readonly applies: Effect.Effect<ReadonlyArray<Apply>, ReadError>
    /** Withdraws a pending request: its case is woken with `skipped`. */
    readonly cancel: (request: string) => Effect.Effect<void, UnknownRequest | ChangeError>
  }
>()("shiftboss/core/Improvements") {}
