/**
 * An agent that does what a script says, under a fake clock, and remembers what it was asked.
 */
import { AgentLauncher, type Failure, RetryPolicy, Storage, type Turn } from "shiftboss"
import { Clock, Deferred, Duration, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { failureOf, type Scripted } from "./play.ts"

export interface Act {
  readonly activity?: ReadonlyArray<AgentLauncher.Activity>
  /** Milliseconds until it ends. Default: 0. */
  readonly after?: number
  /** Default: it succeeds. */
  readonly fails?: Failure.FailureKind | Scripted
  readonly text?: string
  readonly result?: Partial<AgentLauncher.AgentResult>
  /** It cannot be launched. */
  readonly unlaunched?: boolean
  /** It takes no notice of a stop but ends well. */
  readonly succeedsWhenStopped?: boolean
}

export interface Launched {
  readonly at: number
  readonly attempt: AgentLauncher.Attempt
}

export interface Agent {
  readonly launches: Array<Launched>
  readonly reaped: Array<AgentLauncher.Identity>
  readonly alive: Set<number>
  reaps: "gone" | "stopped" | "unknown"
  readonly layer: Layer.Layer<AgentLauncher.AgentLauncher>
}

const blank: AgentLauncher.AgentResult = {
  ...{ text: "", sessionId: null, usage: null, costUsd: null, turns: null, model: null }
}

const endingOf = (act: Act, at: number): AgentLauncher.Ending => {
  const result = { ...blank, text: act.text ?? "done", ...act.result }
  if (act.fails === undefined) return { _tag: "Succeeded", result }
  const failure = failureOf(typeof act.fails === "string" ? { kind: act.fails } : act.fails, at)
  return act.result === undefined ? { _tag: "Failed", failure } : { _tag: "Failed", failure, result }
}

/** `play` says what the launch with this index, counted from 0 over all turns, does when it is launched `at` that time. */
export const makeAgent = (play: (attempt: AgentLauncher.Attempt, index: number, at: number) => Act): Agent => {
  const agent: Agent = {
    launches: [],
    reaped: [],
    alive: new Set(),
    reaps: "gone",
    layer: Layer.sync(AgentLauncher.AgentLauncher, () => launcher)
  }
  let sessions = 0
  const launcher = AgentLauncher.AgentLauncher.of({
    newSessionId: Effect.sync(() => `session-${++sessions}`),
    reap: (identity) =>
      Effect.sync(() => {
        agent.reaped.push(identity)
        if (agent.reaps !== "unknown" && identity._tag === "Process") agent.alive.delete(identity.pid)
        return agent.reaps
      }),
    launch: Effect.fnUntraced(function* (attempt, onIdentity) {
      const at = yield* Clock.currentTimeMillis
      const act = play(attempt, agent.launches.length, at)
      const pid = agent.launches.length + 100
      if (act.unlaunched) {
        agent.launches.push({ at, attempt })
        const failure = endingOf(act, at)
        if (failure._tag === "Succeeded") return yield* Effect.die(new Error("it must fail"))
        return yield* new AgentLauncher.LaunchError({ failure: failure.failure })
      }
      const identity: AgentLauncher.Identity = { _tag: "Process", pid, startTime: "1", bootId: "b" }
      yield* onIdentity(identity)
      agent.launches.push({ at, attempt })
      agent.alive.add(pid)
      yield* Effect.addFinalizer(() => Effect.sync(() => agent.alive.delete(pid)))
      const ended = yield* Deferred.make<AgentLauncher.Ending>()
      const end = (ending: AgentLauncher.Ending) =>
        Effect.andThen(
          Effect.sync(() => agent.alive.delete(pid)),
          Deferred.succeed(ended, ending)
        )
      yield* Effect.forkScoped(
        Effect.andThen(
          Effect.sleep(Duration.millis(act.after ?? 0)),
          Effect.flatMap(Clock.currentTimeMillis, (now) => end(endingOf(act, now)))
        )
      )
      const stopped = act.succeedsWhenStopped
        ? endingOf({ text: "in time" }, at)
        : endingOf({ fails: "Interrupted" }, at)
      return {
        identity,
        activity: Stream.fromIterable(act.activity ?? [{ _tag: "SessionSeen", id: attempt.session.id }]),
        ended: Deferred.await(ended),
        stop: () => Effect.asVoid(end(stopped))
      }
    })
  })
  return agent
}

export const seen = (id: string): AgentLauncher.Activity => ({ _tag: "SessionSeen", id })

/** A policy of this agent over this storage. */
export const policy = (
  agent: Agent,
  storage: Layer.Layer<Storage.Storage>,
  options: RetryPolicy.Options = {}
): Layer.Layer<RetryPolicy.RetryPolicy | Storage.Storage> =>
  Layer.provideMerge(Layer.provide(Layer.fresh(RetryPolicy.layerWith(options)), agent.layer), storage)

/** Lets the fibers settle, then moves the clock, in steps that no wait falls between. */
export const advance = (duration: Duration.Input): Effect.Effect<void> =>
  Effect.gen(function* () {
    const step = 10_000
    for (let left = Duration.toMillis(duration); left > 0; left -= step) {
      yield* settle
      yield* TestClock.adjust(Math.min(left, step))
    }
    yield* settle
  })

export const settle: Effect.Effect<void> = Effect.repeat(Effect.yieldNow, { times: 50 })

/** All events of a log. */
export const journaled = (log = "turns"): Effect.Effect<ReadonlyArray<Storage.Json>, unknown, Storage.Storage> =>
  Effect.flatMap(Storage.Storage, (storage) => Stream.runCollect(storage.read(log)))

/** The event in an entry of the log. */
export const eventOf = (entry: Storage.Json): Turn.Event => (entry as unknown as { readonly value: Turn.Event }).value

export const turn = (over: Partial<Turn.Turn> = {}): Turn.Turn => ({ id: "t", prompt: "do the task", ...over })
