/**
 * The rules by which a turn is repeated: plain data, with a documented default for all of it.
 */
import { Duration, Option } from "effect"
import type { FailureKind } from "./Failure.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What is done about an attempt that failed. */
export type Remedy =
  /**
   * Repeat the task in a session of its own after a wait. The step of the ladder is the number of attempts of the round
   * so far, resumed ones not counted, less one; whatever those attempts died of.
   */
  | { readonly _tag: "Retry"; readonly waits: ReadonlyArray<Duration.Input> }
  /** Go on in the same session after a wait; the step is the number of resumes of the round so far. */
  | { readonly _tag: "Resume"; readonly waits: ReadonlyArray<Duration.Input> }
  /** Wait for the limit to end, charging nobody. One of a model goes to the next fallback model at once instead. */
  | { readonly _tag: "Hold" }
  /** Repeat the task in a new session at once, with the evidence of what was done; once a round. */
  | { readonly _tag: "Fresh" }
  /** Repeat the task with the next fallback model at once. */
  | { readonly _tag: "Fallback" }
  /** The turn is over; `fix` is what a person can do about it. */
  | { readonly _tag: "Stop"; readonly fix: string }

/** All that decides how a turn is repeated. Every field has its default in `defaults`. */
export interface RetryRules {
  /** What is done about each kind of failure; those that are not named keep their default. */
  readonly remedies?: { readonly [kind in FailureKind]?: Remedy | undefined } | undefined
  /** Attempts in a round, without those that resumed a session or came after a hold. Default: 3. */
  readonly maxAttempts?: number | undefined
  /** Launches in a round, resumes included, without those that ended at a limit, were stopped or died with their host. Default: 12. */
  readonly maxLaunches?: number | undefined
  /**
   * The death of a host is no fault of its agent: an attempt that died with it is taken up again, without a charge, so many
   * times in a round. One more, and the turn fails: an attempt may be what kills its host. Default: 10.
   */
  readonly maxHostDeaths?: number | undefined
  /** Models to fall back to, best first. A turn forbids falling back with `[]`. Default: none. */
  readonly fallbackModels?: ReadonlyArray<string> | undefined
  /** The attempt of a round, counted from 1 without resumes, that takes the first fallback model. Default: 3. */
  readonly fallbackFrom?: number | undefined
  /** A hold ends this long after the announced reset: limits outlive it. Default: 2 minutes. */
  readonly resetBuffer?: Duration.Input | undefined
  /** And up to this much later again, at random, so that not everybody comes back at once. Default: 2 minutes. */
  readonly resetJitter?: Duration.Input | undefined
  /** Holds at a limit that does not say when it ends, one after the other. Default: 15, 30, 60 minutes; the last repeats. */
  readonly unknownReset?: ReadonlyArray<Duration.Input> | undefined
  /** Holds at a limit that is still there after its announced reset. Default: 5, 15, 30 minutes; the last repeats. */
  readonly resetOutlived?: ReadonlyArray<Duration.Input> | undefined
  /** An announced reset this long ago still counts as one; an older one says nothing. Default: 10 minutes. */
  readonly resetPast?: Duration.Input | undefined
  /** A longer wait ends the call with `Held` instead of waiting in it. Default: infinity, all waits are in the call. */
  readonly inlineWait?: Duration.Input | undefined
  /** Holds that follow one another may last this long together; beyond it the turn ends as `held`. Default: 12 hours. */
  readonly maxHold?: Duration.Input | undefined
  /** Between the polite signal to an agent and the kill. Default: 15 seconds. */
  readonly grace?: Duration.Input | undefined
  /** Without any activity for this long an attempt is `Hung`. Default: 10 minutes. */
  readonly silence?: Duration.Input | undefined
  /** An attempt is ended after this long, activity or not. Default: 6 hours. */
  readonly wallClock?: Duration.Input | undefined
}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/** Repeat the task after these waits, one for each repeat. */
export const retry = (...waits: ReadonlyArray<Duration.Input>): Remedy => ({ _tag: "Retry", waits })

/** Resume the session after these waits, one for each resume. */
export const resume = (...waits: ReadonlyArray<Duration.Input>): Remedy => ({ _tag: "Resume", waits })

/** Hold until the limit ends. */
export const hold: Remedy = { _tag: "Hold" }

/** A new session with evidence, once a round. */
export const fresh: Remedy = { _tag: "Fresh" }

/** The next fallback model. */
export const fallback: Remedy = { _tag: "Fallback" }

/** The end of the turn. */
export const stop = (fix: string): Remedy => ({ _tag: "Stop", fix })

// -----------------------------------------------------------------------------
// defaults
// -----------------------------------------------------------------------------

/** The rules with nothing left open. */
export type Complete = Required<{ readonly [key in keyof RetryRules]: NonNullable<RetryRules[key]> }> & {
  readonly remedies: { readonly [kind in FailureKind]: Remedy }
}

/** What is done when neither the policy nor the turn says otherwise. */
export const defaults: Complete = {
  remedies: {
    Capacity: retry("1 minute", "3 minutes"),
    ServerError: retry("1 minute", "3 minutes"),
    Network: retry("10 minutes", "40 minutes"),
    Throttled: retry("1 minute", "3 minutes"),
    RateLimited: hold,
    StreamCut: resume(0, "1 minute"),
    Interrupted: resume(0, "1 minute", "3 minutes"),
    Hung: resume(0, "1 minute", "3 minutes"),
    SessionBusy: resume(0, "1 minute", "3 minutes"),
    SessionLost: fresh,
    SessionPoisoned: fresh,
    ContextOverflow: fresh,
    ModelUnavailable: fallback,
    TurnLimit: stop("Give the agent more turns, or let the rules resume a TurnLimit."),
    OutputLimit: stop("Ask for less in one answer, or split the task."),
    BudgetExhausted: stop("Raise the budget of the turn and run it again; it goes on in its session."),
    Billing: stop("Settle the account's billing with the provider, then run the turn again."),
    Auth: stop("Log the agent in again or renew its key, then run the turn again."),
    Config: stop("Correct the agent's configuration or command line, then run the turn again."),
    Refused: stop("The model declines the task: reword it."),
    LauncherFailed: stop("Check that the agent's program is installed and can be started, then run the turn again."),
    Unknown: stop("Read the raw line; if it is worth repeating, give Unknown a remedy in the rules."),
    Stopped: stop("Run the turn again to go on in its session.")
  },
  maxAttempts: 3,
  maxLaunches: 12,
  maxHostDeaths: 10,
  fallbackModels: [],
  fallbackFrom: 3,
  resetBuffer: "2 minutes",
  resetJitter: "2 minutes",
  unknownReset: ["15 minutes", "30 minutes", "60 minutes"],
  resetOutlived: ["5 minutes", "15 minutes", "30 minutes"],
  resetPast: "10 minutes",
  inlineWait: Duration.infinity,
  maxHold: "12 hours",
  grace: "15 seconds",
  silence: "10 minutes",
  wallClock: "6 hours"
}

/** The defaults, overridden by each of the given rules in turn. */
export const complete = (...overrides: ReadonlyArray<RetryRules | undefined>): Complete =>
  overrides.reduce<Complete>((rules, override) => {
    const given = Object.fromEntries(Object.entries(override ?? {}).filter(([, value]) => value !== undefined))
    const remedies = Object.entries(override?.remedies ?? {}).filter(([, remedy]) => remedy !== undefined)
    return { ...rules, ...given, remedies: { ...rules.remedies, ...Object.fromEntries(remedies) } }
  }, defaults)

// -----------------------------------------------------------------------------
// checks
// -----------------------------------------------------------------------------

/** What is wrong with the rules, a sentence each; nothing when they can be used. */
export const problems = (rules: Complete): ReadonlyArray<string> => {
  const { remedies, maxAttempts, maxLaunches, maxHostDeaths, fallbackFrom } = rules
  const { unknownReset, resetOutlived, inlineWait } = rules
  const { resetBuffer, resetJitter, resetPast, maxHold, grace, silence, wallClock } = rules
  const ladders = Object.entries(remedies).flatMap(([kind, remedy]) =>
    "waits" in remedy ? [[`the waits of ${kind}`, remedy.waits] as const] : []
  )
  const lasting = { resetBuffer, resetJitter, resetPast, maxHold, grace, silence, wallClock }
  return [
    ...Object.entries({ maxAttempts, maxLaunches, fallbackFrom }).flatMap(([name, value]) =>
      Number.isInteger(value) && value >= 1 ? [] : [`${name} must be a whole number of at least 1, not ${value}.`]
    ),
    ...(Number.isInteger(maxHostDeaths) && maxHostDeaths >= 0
      ? []
      : [`maxHostDeaths must be a whole number of at least 0, not ${maxHostDeaths}.`]),
    ...Object.entries({ unknownReset, resetOutlived }).flatMap(([name, ladder]) =>
      ladder.length > 0 ? ladder.flatMap((wait) => notLasting(name, wait)) : [`${name} must have a wait.`]
    ),
    ...ladders.flatMap(([name, waits]) => waits.flatMap((wait) => notLasting(name, wait))),
    ...Object.entries(lasting).flatMap(([name, duration]) => notLasting(name, duration)),
    ...(millisOf(inlineWait) >= 0 ? [] : [`inlineWait must be a duration, not ${String(inlineWait)}.`])
  ]
}

const notLasting = (name: string, input: Duration.Input): ReadonlyArray<string> => {
  const millis = millisOf(input)
  return Number.isFinite(millis) && millis >= 0 ? [] : [`${name} must be a duration that ends, not ${String(input)}.`]
}

/** `Duration` makes a duration of nothing of NaN: a wait that somebody failed to compute would be none. */
const millisOf = (input: Duration.Input): number => {
  const duration = Number.isNaN(input) ? Option.none() : Duration.fromInput(input)
  return Option.match(duration, { onNone: () => Number.NaN, onSome: Duration.toMillis })
}
