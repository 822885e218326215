/**
 * A turn: one prompt given to one agent, taken to its end through one or more attempts. What it is asked with, what is
 * journaled of it, and what comes of it.
 */
import { Schema } from "effect"
import { AgentResult, Identity, Session } from "./AgentLauncher.ts"
import { CounterScope } from "./Counters.ts"
import { Failure } from "./Failure.ts"
import type { RetryRules } from "./RetryRules.ts"
import { Usage } from "./Usage.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What is asked for. Only the id is journaled: the prompt and the environment never are. */
export interface Turn {
  /** The identity of the turn, across restarts. */
  readonly id: string
  readonly prompt: string
  readonly directory?: string | undefined
  readonly model?: string | undefined
  /** The id of a session of an earlier turn to go on in. Default: a session of its own. */
  readonly session?: string | undefined
  /** For all attempts of all rounds together. Default: no limit. */
  readonly budgetUsd?: number | undefined
  /** Added to the agent's environment. A value that turns up in anything that is kept is replaced by its name. */
  readonly env?: { readonly [name: string]: string } | undefined
  /** Turns of one account share its limits. Default: the policy's account. */
  readonly account?: string | undefined
  /** Over those of the policy. */
  readonly rules?: RetryRules | undefined
}

/** Why an attempt was launched; it decides what the attempt is counted as and what it is told. */
export const Purpose = Schema.Literals([
  "first",
  /** The first of a new round. */
  "round",
  "retry",
  "resume",
  "fresh",
  "fallback",
  /** After a hold: charged to nobody. */
  "after-hold",
  /** After a stop: charged to nobody. */
  "after-stop",
  /** After the host died while the agent ran: charged to nobody. */
  "after-host-death",
  /** In place of an attempt of which nothing ever ran. */
  "again"
])
export type Purpose = typeof Purpose.Type

/** How an attempt ended, as it is kept. */
export const AttemptEnding = Schema.Struct({
  at: Schema.Number,
  /** `null`: it succeeded. */
  failure: Schema.NullOr(Failure),
  /** What it printed as its result, if anything. */
  result: Schema.NullOr(AgentResult),
  /**
   * What it cost by the host's prices, where the agent does not report a cost. At least so much, when it was cut off and
   * had told only what it used so far.
   */
  estimatedCostUsd: Schema.NullOr(Schema.Number),
  /** False: it is known that nothing of it ran, so that it used nothing. */
  ran: Schema.Boolean,
  /** Its host died before its ending was journaled: nobody knows what it would have come to. */
  hostDied: Schema.optional(Schema.Boolean)
})
export type AttemptEnding = typeof AttemptEnding.Type

/** What an attempt told of its usage while it went on. Without `counter` it covers this attempt alone. */
export const UsageSoFar = Schema.Struct({ usage: Usage, counter: Schema.optional(CounterScope) })
export type UsageSoFar = typeof UsageSoFar.Type

/** One attempt, as it is kept. */
export const Attempt = Schema.Struct({
  /** Counted from 1 over all rounds. */
  number: Schema.Int,
  round: Schema.Int,
  purpose: Purpose,
  /** The rule that launched it. */
  rule: Schema.String,
  session: Session,
  model: Schema.NullOr(Schema.String),
  startedAt: Schema.Number,
  /** `null` until the agent exists; it does nothing before this is journaled. */
  identity: Schema.NullOr(Identity),
  /** The session as the agent itself named it: from then on it can be resumed. */
  sessionSeen: Schema.NullOr(Schema.String),
  /** Tool calls begun and not ended, by their id. */
  openTools: Schema.Record(Schema.String, Schema.String),
  /** What it told last. */
  usageSoFar: Schema.optional(UsageSoFar),
  ending: Schema.NullOr(AttemptEnding)
})
export type Attempt = typeof Attempt.Type

/** A wait before the next attempt. */
export const Wait = Schema.Struct({
  rule: Schema.String,
  /** Charged to nobody. */
  hold: Schema.Boolean,
  since: Schema.Number,
  /** When the first of the holds began that this one follows without an attempt between them. */
  heldSince: Schema.optional(Schema.Number),
  /** Wall clock, epoch milliseconds. */
  due: Schema.Number,
  /** The failure that is waited out, of this turn or, in a shared cooldown, of another one. */
  failure: Schema.NullOr(Failure)
})
export type Wait = typeof Wait.Type

export const Status = Schema.Literals(["succeeded", "failed", "stopped", "held"])
export type Status = typeof Status.Type

/** How a round ended. */
export const End = Schema.Struct({
  at: Schema.Number,
  status: Status,
  /** The rule that ended it. */
  rule: Schema.String,
  /** One sentence for a person. */
  detail: Schema.String,
  /** What to do about it, as a sentence. */
  fix: Schema.NullOr(Schema.String),
  /** `held`: when the limit is said to end. */
  until: Schema.NullOr(Schema.Number)
})
export type End = typeof End.Type

/** All that is kept of a turn: the fold of its events. */
export const State = Schema.Struct({
  turnId: Schema.String,
  startedAt: Schema.Number,
  /** The commit the workspace stood on before the first launch. */
  head: Schema.NullOr(Schema.String),
  /** Of the present round. */
  account: Schema.NullOr(Schema.String),
  round: Schema.Int,
  attempts: Schema.Array(Attempt),
  wait: Schema.NullOr(Wait),
  /** Set while the turn is over; cleared when it is taken up again. */
  end: Schema.NullOr(End),
  /** It was stopped and is taken up again: the next attempt is not charged. */
  resumed: Schema.Boolean
})
export type State = typeof State.Type

// -----------------------------------------------------------------------------
// events
// -----------------------------------------------------------------------------

const event = <const Tag extends string, const Fields extends Schema.Struct.Fields>(tag: Tag, fields: Fields) =>
  Schema.TaggedStruct(tag, { turnId: Schema.String, ...fields })

/** What is journaled of turns. Each decision is in the event it led to, with the rule that made it. */
export const Event = Schema.Union([
  event("TurnStarted", {
    at: Schema.Number,
    head: Schema.NullOr(Schema.String),
    account: Schema.NullOr(Schema.String)
  }),
  event("AttemptStarted", {
    at: Schema.Number,
    number: Schema.Int,
    purpose: Purpose,
    rule: Schema.String,
    session: Session,
    model: Schema.NullOr(Schema.String)
  }),
  event("AgentIdentified", { identity: Identity }),
  event("SessionSeen", { id: Schema.String }),
  event("ToolStarted", { id: Schema.String, tool: Schema.String }),
  event("ToolEnded", { id: Schema.String }),
  event("UsageTold", { soFar: UsageSoFar }),
  event("AttemptEnded", { ending: AttemptEnding }),
  event("WaitStarted", { wait: Wait }),
  /** What was waited for is over before it was due. */
  event("WaitEnded", { at: Schema.Number, rule: Schema.String }),
  event("TurnEnded", { end: End }),
  /** A turn that had been stopped goes on where it was. */
  event("TurnResumed", { at: Schema.Number }),
  /** A turn that had failed begins again in its last session: numbers, totals and budget go on, ladders start again. */
  event("RoundStarted", {
    at: Schema.Number,
    round: Schema.Int,
    account: Schema.NullOr(Schema.String),
    /** Of a turn of which nothing was launched yet. */
    head: Schema.optional(Schema.NullOr(Schema.String))
  }),
  /** The whole of a turn, in place of its events: compaction. */
  event("TurnKept", { state: State })
])
export type Event = typeof Event.Type

// -----------------------------------------------------------------------------
// outcome
// -----------------------------------------------------------------------------

/** A sum of which some parts may be unknown. */
export const Total = Schema.Struct({
  /** `null` when a part is unknown. */
  total: Schema.NullOr(Schema.Number),
  /** The sum of what is known, also of parts that are known in part; `null` when nothing is. */
  known: Schema.NullOr(Schema.Number)
})
export type Total = typeof Total.Type

/** What all attempts of a turn used together. */
export interface Totals {
  readonly usage: { readonly [field in keyof Usage]: Total }
  readonly costUsd: Total
  /** By the host's prices, for attempts whose agent reports no cost; `null` without any. Not part of `costUsd`. */
  readonly estimatedCostUsd: number | null
  readonly turns: Total
}

/** What one attempt used itself: counters that go on over a session are already taken apart. */
export interface AttemptSummary {
  readonly number: number
  readonly round: number
  readonly rule: string
  readonly model: string | null
  readonly sessionId: string | null
  readonly startedAt: number
  readonly endedAt: number | null
  /** `null` when it succeeded, or when it is not known how it ended. */
  readonly failure: Failure | null
  readonly usage: Usage | null
  /** Where `usage` is unknown: what it had told before it was cut off. It used at least so much. */
  readonly usageSoFar: Usage | null
  readonly costUsd: number | null
  /** By the host's prices; at least so much where `usage` is unknown. */
  readonly estimatedCostUsd: number | null
}

/** What came of a turn. */
export interface TurnOutcome extends End {
  readonly turnId: string
  readonly startedAt: number
  /** The commit the workspace stood on when the turn started. */
  readonly head: string | null
  readonly rounds: number
  /** Of the last attempt: empty when it printed no result. */
  readonly text: string
  /** Of the last attempt that printed a result, whether or not later ones did. */
  readonly result: AgentResult | null
  /** The session to go on in. */
  readonly sessionId: string | null
  readonly attempts: ReadonlyArray<AttemptSummary>
  readonly totals: Totals
  /** False: what was spent is not fully known, so nobody knows whether the budget was kept. `null` without a budget. */
  readonly budgetVerified: boolean | null
}

/** What a turn answered: what a dispatcher's log keeps of it. */
export const TurnDone = Schema.Struct({
  turnId: Schema.String,
  text: Schema.String,
  /** The session to go on in. */
  sessionId: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  /** Of all attempts together; `null` when a part is unknown. */
  costUsd: Schema.NullOr(Schema.Number),
  estimatedCostUsd: Schema.NullOr(Schema.Number),
  /** How many attempts it took. */
  attempts: Schema.Number
})
export type TurnDone = typeof TurnDone.Type
