/**
 * The port for agents: one attempt at a turn, launched, watched and stopped.
 */
import { Context, type Duration, type Effect, Schema, type Scope, type Stream } from "effect"
import { Failure } from "./Failure.ts"
import { Usage } from "./Usage.ts"

/** A new session under an id of ours where the agent allows that, or one to go on with. */
export const Session = Schema.Union([
  Schema.TaggedStruct("New", { id: Schema.String }),
  Schema.TaggedStruct("Resume", { id: Schema.String })
])
export type Session = typeof Session.Type

/** One launch of the agent for a turn. */
export interface Attempt {
  readonly turnId: string
  /** Counted from 1 over all rounds of the turn. */
  readonly number: number
  readonly prompt: string
  readonly directory?: string | undefined
  readonly model?: string | undefined
  readonly session: Session
  readonly budgetUsd?: number | undefined
  /** Added to the child's allow-listed environment. Never journaled. */
  readonly env?: { readonly [name: string]: string } | undefined
  readonly limits: {
    /** Without any activity for this long the attempt is ended as `Hung`. */
    readonly silence: Duration.Duration
    /** A bound on the whole attempt, activity or not. */
    readonly wallClock: Duration.Duration
  }
}

/** What an attempt left. What the agent did not tell is `null`. */
export const AgentResult = Schema.Struct({
  text: Schema.String,
  sessionId: Schema.NullOr(Schema.String),
  usage: Schema.NullOr(Usage),
  costUsd: Schema.NullOr(Schema.Number),
  turns: Schema.NullOr(Schema.Number),
  model: Schema.NullOr(Schema.String)
})
export type AgentResult = typeof AgentResult.Type

/** How an attempt ended. A result once seen stays a result, whatever the process did afterwards. */
export const Ending = Schema.Union([
  Schema.TaggedStruct("Succeeded", { result: AgentResult }),
  Schema.TaggedStruct("Failed", { failure: Failure, result: Schema.optional(AgentResult) })
])
export type Ending = typeof Ending.Type

/** What is seen of an attempt while it goes on. */
export type Activity =
  | { readonly _tag: "SessionSeen"; readonly id: string }
  | { readonly _tag: "ToolStarted"; readonly id: string; readonly tool: string }
  | { readonly _tag: "ToolEnded"; readonly id: string; readonly tool: string }
  | { readonly _tag: "Text"; readonly text: string }
  /** The agent met a failure and tries again by itself. */
  | { readonly _tag: "AgentRetry"; readonly failure: Failure; readonly delayMillis: number | null }
  | { readonly _tag: "UsageSoFar"; readonly usage: Usage }
  /** A wording that no rule knows: the raw line is kept. */
  | { readonly _tag: "Drift"; readonly raw: string }

/** What is needed to find an attempt again after the host has crashed. */
export const Identity = Schema.Union([
  Schema.TaggedStruct("Process", { pid: Schema.Int, startTime: Schema.String, bootId: Schema.String }),
  Schema.TaggedStruct("Remote", { id: Schema.String }),
  /** A fiber of the host: it died with it. */
  Schema.TaggedStruct("Fiber", {})
])
export type Identity = typeof Identity.Type

/** A launched attempt. */
export interface AgentRun {
  readonly identity: Identity
  readonly activity: Stream.Stream<Activity>
  /** How it ended. Never fails; waiting for it may be interrupted without stopping the agent. */
  readonly ended: Effect.Effect<Ending>
  /** A polite signal to all of it, after `grace` a kill; when it succeeds, nothing of it is alive. */
  readonly stop: (grace: Duration.Input) => Effect.Effect<void>
}

/** The attempt could not be launched at all: nothing of it ran. */
export class LaunchError extends Schema.TaggedError<LaunchError>()("LaunchError", {
  failure: Failure
}) {
  override get message(): string {
    return this.failure.detail
  }
}

/** Launches agents. */
export class AgentLauncher extends Context.Service<
  AgentLauncher,
  {
    /**
     * Launches the agent. It does nothing before `onIdentity` has succeeded: the caller journals the identity there,
     * so that a crash never leaves a running agent that nobody knows of.
     */
    readonly launch: (
      attempt: Attempt,
      /** Runs once the identity is known and before the agent does anything. */
      onIdentity: (identity: Identity) => Effect.Effect<void>
    ) => Effect.Effect<AgentRun, LaunchError, Scope.Scope>
    /** Proves what a crashed host left gone, or stops it. Asked before anything of the turn is launched again. */
    readonly reap: (identity: Identity) => Effect.Effect<"gone" | "stopped" | "unknown">
    /** An id for a session that this agent accepts. */
    readonly newSessionId: Effect.Effect<string>
  }
>()("shiftboss/core/AgentLauncher") {}
