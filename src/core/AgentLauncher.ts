/**
 * The port for agents: one attempt at a turn, launched, watched and stopped.
 */
import {
  type Cause,
  Clock,
  Context,
  Deferred,
  Duration,
  Effect,
  Fiber,
  Layer,
  Queue,
  Random,
  Schema,
  type Scope,
  Stream
} from "effect"
import { type CounterScope, Scopes } from "./Counters.ts"
import { Failure, make } from "./Failure.ts"
import * as Silence from "./Silence.ts"
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
  model: Schema.NullOr(Schema.String),
  /** What `usage` and `costUsd` cover; without it, this attempt alone. `Counters.share` makes them the attempt's own. */
  counters: Schema.optional(Scopes)
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
  /** `counter` tells what it covers; without it, this attempt alone. */
  | { readonly _tag: "UsageSoFar"; readonly usage: Usage; readonly counter?: CounterScope | undefined }
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

// -----------------------------------------------------------------------------
// Endings
// -----------------------------------------------------------------------------

/** A result of which all that is not given is unknown. */
export const result = (text: string, known?: Partial<AgentResult>): AgentResult => ({
  text,
  sessionId: null,
  usage: null,
  costUsd: null,
  turns: null,
  model: null,
  ...known
})

/** The attempt succeeded. */
export const succeeded = (text: string, known?: Partial<AgentResult>): Ending => ({
  _tag: "Succeeded",
  result: result(text, known)
})

/** The attempt failed; `printed` is the result it left all the same. */
export const failed = (failure: Failure, printed?: AgentResult): Ending =>
  printed === undefined ? { _tag: "Failed", failure } : { _tag: "Failed", failure, result: printed }

// -----------------------------------------------------------------------------
// Activity
// -----------------------------------------------------------------------------

/** The activity of one run, from a launcher to those who watch. */
export interface Feed {
  /** Never waits and never fails: a watcher that is too slow misses the oldest. */
  readonly publish: (activity: Activity) => void
  /** Ends all streams, also those opened later. */
  readonly end: () => void
  /** Begins with the session and the last activities before it was opened. */
  readonly stream: Stream.Stream<Activity>
}

const replayed = 64
const watched = 1024

/** A feed for a launcher of one's own. */
export const makeFeed: Effect.Effect<Feed> = Effect.sync(() => {
  const watchers = new Set<Queue.Queue<Activity, Cause.Done>>()
  const past: Array<Activity> = []
  let session: Activity | undefined
  let ended = false
  const open = Effect.gen(function* () {
    const queue = yield* Queue.sliding<Activity, Cause.Done>(watched)
    if (session !== undefined && !past.includes(session)) Queue.offerUnsafe(queue, session)
    Queue.offerAllUnsafe(queue, past)
    if (ended) Queue.endUnsafe(queue)
    else {
      watchers.add(queue)
      yield* Effect.addFinalizer(() => Effect.sync(() => watchers.delete(queue)))
    }
    return Stream.fromQueue(queue)
  })
  return {
    publish: (activity) => {
      if (ended) return
      if (activity._tag === "SessionSeen") session = activity
      past.push(activity)
      if (past.length > replayed) past.shift()
      for (const watcher of watchers) Queue.offerUnsafe(watcher, activity)
    },
    end: () => {
      ended = true
      for (const watcher of watchers) Queue.endUnsafe(watcher)
      watchers.clear()
    },
    stream: Stream.unwrap(open)
  }
})

// -----------------------------------------------------------------------------
// Layers
// -----------------------------------------------------------------------------

/**
 * A launcher of agents that are plain effects: one behind HTTP, or a test. The effect fails with the `Failure` that ended
 * it, tells what it does through `emit`, and is stopped by interruption.
 *
 * **Details**
 *
 * An attempt without activity for `limits.silence` ends as `Hung`, as does one that outlives `limits.wallClock`. A defect
 * ends it as `LauncherFailed`. The agent dies with the host, so nothing of it is ever left to reap.
 */
export const layer = <R = never>(
  agent: (attempt: Attempt, emit: (activity: Activity) => Effect.Effect<void>) => Effect.Effect<AgentResult, Failure, R>
): Layer.Layer<AgentLauncher, never, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    AgentLauncher,
    makeLauncher((attempt, emit) =>
      Effect.map(agent(attempt, emit), (value): Ending => ({ _tag: "Succeeded", result: value }))
    )
  )

/** As `layer`, for agents that come to an ending of their own, such as a failure that left a result. */
export const makeLauncher = Effect.fnUntraced(function* <R = never>(
  agent: (attempt: Attempt, emit: (activity: Activity) => Effect.Effect<void>) => Effect.Effect<Ending, Failure, R>
) {
  const context = yield* Effect.context<Exclude<R, Scope.Scope>>()
  return AgentLauncher.of({
    newSessionId: randomId,
    reap: (identity) => Effect.succeed(identity._tag === "Fiber" ? "gone" : "unknown"),
    launch: Effect.fn("AgentLauncher.launch")(function* (attempt, onIdentity) {
      const identity: Identity = { _tag: "Fiber" }
      yield* onIdentity(identity)
      const feed = yield* makeFeed
      let silence = Silence.begin(yield* monotonicMillis)
      const emit = (activity: Activity) =>
        Effect.map(monotonicMillis, (now) => {
          silence = Silence.seen(silence, now, activity)
          feed.publish(activity)
        })
      const ended = yield* Deferred.make<Ending>()
      const body = Effect.suspend(() => agent(attempt, emit)).pipe(
        Effect.scoped,
        Effect.provideContext(context),
        Effect.raceFirst(hung(attempt, () => silence)),
        Effect.interruptible,
        Effect.catchCause((cause) => Effect.succeed(failed(failureOf(cause)))),
        Effect.flatMap((ending) => Deferred.succeed(ended, ending)),
        Effect.ensuring(Effect.sync(feed.end))
      )
      // An interruption reaches the agent only: stopped before it began, it still comes to an ending.
      const fiber = yield* Effect.forkScoped(body, { startImmediately: true, uninterruptible: true })
      return { identity, activity: feed.stream, ended: Deferred.await(ended), stop: () => Fiber.interrupt(fiber) }
    })
  })
})

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

/** A UUID of version 4. The core has no source of secure randomness: these ids need to differ, not to be secret. */
const randomId = Effect.map(Effect.all(Array.from({ length: 32 }, () => Random.nextIntBetween(0, 15))), (digits) => {
  const hex = digits.map((digit) => digit.toString(16))
  hex[12] = "4"
  hex[16] = (8 + ((digits[16] ?? 0) % 4)).toString(16)
  const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
  return groups.map((group) => group.join("")).join("-")
})

const stopped = make("Stopped", "The attempt was stopped")

/** Ends when the attempt has been silent, or alive, for too long. */
const hung = Effect.fnUntraced(function* (attempt: Attempt, silence: () => Silence.Silence) {
  const limit = Duration.toMillis(attempt.limits.silence)
  const over = (yield* monotonicMillis) + Duration.toMillis(attempt.limits.wallClock)
  while (true) {
    const now = yield* monotonicMillis
    const due = Silence.dueAt(silence(), limit)
    if (now >= due) {
      return failed(make("Hung", `There was no activity for ${Duration.format(Duration.millis(now - silence().at))}`))
    }
    if (now >= over) {
      return failed(make("Hung", `It was not done after ${Duration.format(attempt.limits.wallClock)}`))
    }
    yield* Effect.sleep(Math.min(due, over) - now)
  }
})

const monotonicMillis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

const failureOf = (cause: Cause.Cause<Failure>): Failure => {
  for (const reason of cause.reasons) {
    if (reason._tag === "Fail") return reason.error
    if (reason._tag === "Die") return make("LauncherFailed", `The agent died: ${String(reason.defect)}`)
  }
  return stopped
}
