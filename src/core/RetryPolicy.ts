/**
 * Takes a turn to its end through as many attempts as the rules allow, journaled: the same call after a crash carries on.
 */
import { Context, Deferred, Duration, Effect, Layer, Schema } from "effect"
import { AgentLauncher } from "./AgentLauncher.ts"
import { type Cooldown, makeCooldown } from "./internal/retry/cooldown.ts"
import { type Drive, type Driven, driveOn, driveTurn, pause, type Waiting } from "./internal/retry/drive.ts"
import { journalOpener } from "./internal/retry/journal.ts"
import { outcome, type Price } from "./internal/retry/totals.ts"
import { makeWaits, type Woken } from "./internal/retry/waits.ts"
import { type Complete, complete, problems, type RetryRules } from "./RetryRules.ts"
import type { LogCorrupt, LogFenced, LogHeld, LogTooNew, Storage, StorageError } from "./Storage.ts"
import type { State, Turn, TurnOutcome } from "./Turn.ts"
import { Workspace } from "./Workspace.ts"

export { decide, type Decision, type Launch, type Moment } from "./internal/retry/decide.ts"
export { evolve } from "./internal/retry/evolve.ts"
export { outcome, type Price } from "./internal/retry/totals.ts"

// -----------------------------------------------------------------------------
// options
// -----------------------------------------------------------------------------

export interface Options {
  /** The log of all turns of this policy. One process at a time has it. Default: `turns`. */
  readonly log?: string | undefined
  /** At least so many ended turns are kept; an older one that is run again is a new turn. Default: 1000. */
  readonly keepTurns?: number | undefined
  /** Of turns that name none: they share what the launcher is logged in with. Default: `default`. */
  readonly account?: string | undefined
  /** Of all turns, below the rules of each. */
  readonly rules?: RetryRules | undefined
  /** By model, for agents that report tokens and no cost. A price that is negative or no finite number is a defect. */
  readonly prices?: { readonly [model: string]: Price } | undefined
  /** Is the network back? Asked every 30 seconds while a network failure is waited out; `true` ends that wait. */
  readonly networkProbe?: Effect.Effect<boolean> | undefined
  /** A probe that says nothing for this long is given up, and the next turn probes. Default: 2 minutes. */
  readonly probeSilence?: Duration.Input | undefined
  /** Turns that follow a probe start this long after one another, or up to twice that. Default: 5 seconds. */
  readonly stagger?: Duration.Input | undefined
  /**
   * The first launch of this process on an account goes alone for this long, or until the model answers it: when there is a
   * limit, one turn finds out and not all of them. Zero: never. Default: 10 seconds.
   */
  readonly firstLaunchAlone?: Duration.Input | undefined
}

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/** The turn waits for longer than the call may. Worth running again at `until`, under the same id: it goes on then. */
export class Held extends Schema.TaggedError<Held>()("Held", {
  turnId: Schema.String,
  /** Epoch milliseconds. */
  until: Schema.Number,
  rule: Schema.String
}) {
  override get message(): string {
    return `the turn "${this.turnId}" waits (${this.rule}); run it again from ${this.until} on (epoch milliseconds)`
  }
}

/** The turn is being run already, by this policy. Never worth retrying: it would be done twice. */
export class TurnRunning extends Schema.TaggedError<TurnRunning>()("TurnRunning", { turnId: Schema.String }) {
  override get message(): string {
    return `the turn "${this.turnId}" is running already; give each turn an id of its own`
  }
}

export type TurnError = Held | TurnRunning | StorageError | LogHeld | LogFenced | LogCorrupt | LogTooNew

// -----------------------------------------------------------------------------
// service
// -----------------------------------------------------------------------------

/** Runs turns. */
export class RetryPolicy extends Context.Service<
  RetryPolicy,
  {
    /**
     * Takes the turn to its end, from wherever it is: a finished attempt is not repeated, a wait goes on with what is left
     * of it. A turn that has succeeded answers what it had; one that was stopped goes on; one that had failed begins
     * another round in its last session.
     *
     * *Details*: how an agent fared is in the outcome; what fails is the journal, or `Held`. Interrupting it stops the
     * agent, which is charged to nobody: running the turn again goes on in its session. Rules that cannot be used (see
     * `RetryRules.problems`) are a defect, and so is a budget that is negative or no number.
     */
    readonly run: (turn: Turn) => Effect.Effect<TurnOutcome, TurnError>
    /**
     * Stops the turn if this policy is running it, and succeeds when it is over: at once in a wait, after the agent is
     * gone in an attempt. Before the first launch nothing is launched.
     */
    readonly stop: (turnId: string) => Effect.Effect<void>
  }
>()("shiftboss/core/RetryPolicy") {}

/** See `RetryPolicy.run`. */
export const run = (turn: Turn): Effect.Effect<TurnOutcome, TurnError, RetryPolicy> =>
  Effect.flatMap(RetryPolicy, (policy) => policy.run(turn))

/** See `RetryPolicy.stop`. */
export const stop = (turnId: string): Effect.Effect<void, never, RetryPolicy> =>
  Effect.flatMap(RetryPolicy, (policy) => policy.stop(turnId))

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/**
 * The policy with these options. Its log is opened by the first call, and again by the next one after it could not be:
 * a log that somebody else holds is an error of the call, not of the layer.
 */
export const layerWith = (options: Options): Layer.Layer<RetryPolicy, never, Storage | AgentLauncher> =>
  Layer.effect(RetryPolicy, make(options))

/** The policy with every option at its default. */
export const layer: Layer.Layer<RetryPolicy, never, Storage | AgentLauncher> = layerWith({})

// -----------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------

interface Running {
  readonly stop: Deferred.Deferred<void>
  readonly over: Deferred.Deferred<void>
}

/** In a fiber of its own: what a stack has grown to is kept for as long as its fiber lives, and that may wait for hours. */
const alone = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.raceAllFirst([effect])

const enter = (running: Map<string, Running>, turnId: string): Running => {
  const turn = { stop: Deferred.makeUnsafe<void>(), over: Deferred.makeUnsafe<void>() }
  running.set(turnId, turn)
  return turn
}

/** A budget that is no number would never be used up. */
const unusable = (name: string, usd: number | undefined, most = Infinity): ReadonlyArray<string> =>
  usd === undefined || (usd >= 0 && usd <= most) ? [] : [`${name} must be US dollars of at least 0, not ${usd}.`]

/** What all turns of a policy are driven with. */
const makeParts = Effect.fnUntraced(function* (options: Options, isRunning: (turnId: string) => boolean) {
  const launcher = yield* AgentLauncher
  const workspace = yield* Workspace
  const { log = "turns", keepTurns = 1000, networkProbe: probe, prices = {} } = options
  if (!Number.isInteger(keepTurns) || keepTurns < 1) {
    return yield* Effect.die(new Error(`keepTurns must be a whole number of at least 1, not ${keepTurns}`))
  }
  const wrong = Object.entries(prices).flatMap(([model, price]) =>
    Object.entries(price).flatMap(([sort, usd]) => unusable(`the ${sort} price of ${model}`, usd, Number.MAX_VALUE))
  )
  if (wrong.length > 0) return yield* Effect.die(new Error(wrong.join(" ")))
  const waits = yield* makeWaits
  const times = {
    probeMillis: Duration.toMillis(options.probeSilence ?? "2 minutes"),
    staggerMillis: Duration.toMillis(options.stagger ?? "5 seconds"),
    firstMillis: Duration.toMillis(options.firstLaunchAlone ?? "10 seconds")
  }
  const cooldown = makeCooldown(times, waits.wake)
  const openJournal = yield* journalOpener({
    name: log,
    keepTurns,
    isRunning,
    onOpen: (states) => raiseKept(cooldown, states),
    onBroken: waits.wakeAll
  })
  return { openJournal, ports: { launcher, workspace, cooldown, waits, prices, probe } }
})

function make(options: Options) {
  return Effect.gen(function* () {
    const running = new Map<string, Running>()
    const { openJournal, ports } = yield* makeParts(options, (turnId) => running.has(turnId))
    const ruled = (turn: Turn): Turn & { readonly rules: Complete } => ({
      ...turn,
      rules: complete(options.rules, turn.rules)
    })

    // A span for each stretch between two waits: one over hours of waiting would be told of only at their end, and kept as long.
    const begin = Effect.fn("RetryPolicy.run")(function* (turn: Turn, stop: Deferred.Deferred<void>) {
      yield* Effect.annotateCurrentSpan("turn", turn.id)
      const asked = ruled(turn)
      const wrong = [...problems(asked.rules), ...unusable("budgetUsd", turn.budgetUsd)]
      if (wrong.length > 0) {
        return yield* Effect.die(
          new Error(`the turn "${turn.id}" cannot be run as it is asked for: ${wrong.join(" ")}`)
        )
      }
      const journal = yield* openJournal
      const drive: Drive = { ...ports, journal, stop }
      const account = turn.account ?? options.account ?? "default"
      return [drive, yield* driveTurn(drive, asked, account)] as const
    })

    const goOn = Effect.fn("RetryPolicy.run")(function* (turn: Turn, drive: Drive, waiting: Waiting, woken: Woken) {
      yield* Effect.annotateCurrentSpan("turn", turn.id)
      return yield* driveOn(drive, ruled(turn), waiting, woken)
    })

    const settle = (turn: Turn, drive: Drive, driven: Driven): Effect.Effect<TurnOutcome, TurnError> => {
      if (driven._tag === "Over") return Effect.succeed(outcome(driven.state, driven.end, turn.budgetUsd))
      const { wait, inline } = driven
      if (!inline) return Effect.fail(new Held({ turnId: turn.id, until: wait.due, rule: wait.rule }))
      return Effect.flatMap(pause(drive, turn.id, driven), (woken) =>
        Effect.flatMap(alone(goOn(turn, drive, driven, woken)), (next) => settle(turn, drive, next))
      )
    }

    const leave = (turnId: string, { over }: Running) => {
      running.delete(turnId)
      ports.cooldown.left(turnId)
      return Deferred.succeed(over, undefined)
    }

    const run = (turn: Turn): Effect.Effect<TurnOutcome, TurnError> =>
      Effect.uninterruptibleMask((restore) => {
        if (running.has(turn.id)) return Effect.fail(new TurnRunning({ turnId: turn.id }))
        const call = enter(running, turn.id)
        const driven = Effect.suspend(() =>
          Effect.flatMap(alone(begin(turn, call.stop)), ([drive, driven]) => settle(turn, drive, driven))
        )
        return Effect.onExit(restore(driven), () => leave(turn.id, call))
      })

    const stop = Effect.fn("RetryPolicy.stop")(function* (turnId: string) {
      const turn = running.get(turnId)
      if (turn === undefined) return
      yield* Deferred.succeed(turn.stop, undefined)
      ports.waits.wake(turnId)
      yield* Deferred.await(turn.over)
    })

    return RetryPolicy.of({ run, stop })
  })
}

/** Walls outlive their host: waits that are kept tell where other turns would run into one. */
const raiseKept = (cooldown: Cooldown, states: Iterable<State>) => {
  for (const { turnId, wait, end, attempts, account } of states) {
    if (end !== null || !wait?.failure) continue
    const place = { account: account ?? "", model: attempts.at(-1)?.model ?? null }
    cooldown.raise(turnId, place, wait.failure, wait.since, wait.due)
  }
}
