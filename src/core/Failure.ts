/**
 * Why an attempt failed: what kind of failure it was, and how far it reaches.
 */
import { Schema } from "effect"

/** How far a failure reaches: what else would meet it too. */
export const FailureScope = Schema.Literals(["request", "session", "model", "account", "machine"])
export type FailureScope = typeof FailureScope.Type

/** What kind of failure it was. A wording nobody knows yet is `Unknown`, never a guess. */
export const FailureKind = Schema.Literals([
  "Capacity",
  "ServerError",
  "Network",
  "Throttled",
  "RateLimited",
  "StreamCut",
  "Interrupted",
  "Hung",
  "SessionLost",
  "SessionPoisoned",
  "ContextOverflow",
  "SessionBusy",
  "ModelUnavailable",
  "TurnLimit",
  "OutputLimit",
  "BudgetExhausted",
  "Billing",
  "Auth",
  "Config",
  "Refused",
  "LauncherFailed",
  "Unknown",
  "Stopped"
])
export type FailureKind = typeof FailureKind.Type

/** Why an attempt failed. */
export class Failure extends Schema.Class<Failure>("shiftboss/Failure")({
  kind: FailureKind,
  scope: FailureScope,
  /** One sentence for a person. */
  detail: Schema.String,
  /** The line that said so, as it was printed; `null` when nothing was. */
  raw: Schema.NullOr(Schema.String),
  /** When the limit is said to end, in epoch milliseconds. */
  resetAt: Schema.optional(Schema.Number)
}) {}

/** How far a failure of each kind usually reaches. An agent that knows better says so, as with a limit of one model. */
export const usualScope: { readonly [kind in FailureKind]: FailureScope } = {
  Capacity: "model",
  ServerError: "model",
  Network: "machine",
  Throttled: "account",
  RateLimited: "account",
  StreamCut: "request",
  Interrupted: "session",
  Hung: "session",
  SessionLost: "session",
  SessionPoisoned: "session",
  ContextOverflow: "session",
  SessionBusy: "session",
  ModelUnavailable: "model",
  TurnLimit: "request",
  OutputLimit: "request",
  BudgetExhausted: "request",
  Billing: "account",
  Auth: "account",
  Config: "request",
  Refused: "request",
  LauncherFailed: "machine",
  Unknown: "request",
  Stopped: "request"
}

/** A failure of the usual scope. Without `raw` nothing was printed; without `resetAt` no end of it is known. */
export const make = (
  kind: FailureKind,
  detail: string,
  more?: {
    readonly scope?: FailureScope | undefined
    readonly raw?: string | null | undefined
    readonly resetAt?: number | null | undefined
  }
): Failure =>
  new Failure({
    kind,
    scope: more?.scope ?? usualScope[kind],
    detail,
    raw: more?.raw ?? null,
    ...(typeof more?.resetAt === "number" ? { resetAt: more.resetAt } : {})
  })
