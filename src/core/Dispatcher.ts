/**
 * Works through cases on a fixed number of seats until nothing more can be done, and survives whatever ends it early.
 *
 * All it knows is a log of `DispatcherEvent`s; after a crash, a stop or a full disk the next run goes on from there
 * without repeating a step that had ended.
 */
import { Context, type Duration, Effect, Layer, type Schema, type Scope, Stream } from "effect"
import type { Case, CaseResult, SystemDown } from "./Case.ts"
import type {
  ApplyFailed,
  BreakerTripped,
  CaseNotChanged,
  InvalidOption,
  InvalidSelection,
  StopTimedOut,
  TurnFailed,
  UnknownCase
} from "./DispatcherError.ts"
import type { RunEnd } from "./DispatcherEvent.ts"
import type { Entry, Explanation, Gap, Snapshot } from "./DispatcherView.ts"
import { type Applied, type Batch, type ChangeError, Improvements, type ReadError } from "./Improvements.ts"
import { make } from "./internal/dispatch/service.ts"
import type { RecheckOutcome } from "./RecheckEvent.ts"
import type { RecheckRule } from "./RecheckRule.ts"
import { Rechecks, type Try } from "./Rechecks.ts"
import type { RetryPolicy } from "./RetryPolicy.ts"
import type { Json, LogCorrupt, LogFenced, LogHeld, LogTooNew, Storage, StorageError } from "./Storage.ts"
import type { Turn, TurnDone } from "./Turn.ts"
import type { Verdict } from "./Verdict.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What a step looks at. */
export interface StepOptions {
  /** The step looks at the system that an apply edits: such steps and an apply exclude each other. Default: false. */
  readonly reads?: boolean | undefined
}

/** A step's options with a schema for its result. */
export interface ResultOptions<S extends Schema.Constraint> extends StepOptions {
  /** How the result is journaled. Without it the result must be JSON. */
  readonly result: S
}

/** What a turn on a seat is asked with: its id is made of the case and the name, and it waits off its seat. */
export type SeatTurn = Omit<Turn, "id"> &
  StepOptions & {
    /** What its usage is counted under. Default: its name, without a number at the end. */
    readonly stage?: string | undefined
  }

/** Names the work on a seat. */
export interface SeatInfo {
  /**
   * Names this piece of work for ever; a new rev or round has another key, and so has each try of each recheck. Derive
   * ids of your own from it.
   */
  readonly key: string
  readonly case: string
  readonly rev: number
  /** 1 … `seats`. */
  readonly seat: number
  /** Which run on this log it is, from 1. */
  readonly start: number
}

/**
 * The right to run one case. A seat that is taken back (by a park, a hold, a stop) never answers the operation that
 * was under way: the case's fiber is interrupted, and `train` is called again from the top when the case is next.
 *
 * Names are unique in a case; in a loop, number them. Misuse dies with a message that says what to do, and fails the case.
 */
export interface Seat<in Req = never> {
  readonly info: SeatInfo
  /**
   * Runs the effect once, ever: asked again under the same name, it answers with the journaled result. A failure is
   * not journaled. The effect's scope is closed with the step, for nothing of it would be there after a replay.
   *
   * *Details*: the result is `decode(encode(value))`, live as in replay. Steps of one case run one at a time and do
   * not nest. A stop lets a step finish.
   */
  readonly step: {
    <A extends Json | void, E, R>(
      name: string,
      effect: Effect.Effect<A, E, R>
    ): Effect.Effect<A, E, Exclude<R, Scope.Scope>>
    <S extends Schema.Constraint, E, R>(
      name: string,
      options: ResultOptions<S>,
      effect: Effect.Effect<S["Type"], E, R>
    ): Effect.Effect<S["Type"], E, Exclude<R, Scope.Scope> | S["DecodingServices"] | S["EncodingServices"]>
    <A extends Json | void, E, R>(
      name: string,
      options: StepOptions,
      effect: Effect.Effect<A, E, R>
    ): Effect.Effect<A, E, Exclude<R, Scope.Scope>>
  }
  /**
   * Gives the seat back until an apply has taken the request, then says what the apply did; at once when it already
   * has. The request sent first under a name stands, whatever a later replay sends.
   */
  readonly park: (name: string, request: Req) => Effect.Effect<Applied>
  /**
   * Gives the seat back until then (epoch milliseconds) and charges nobody; at once when it is past. The time given
   * first under a name stands, so that a replay does not wait again.
   */
  readonly hold: (name: string, until: number) => Effect.Effect<void>
  /**
   * Takes a turn to its end by the `RetryPolicy`, as a step does: only an answer is remembered. Its waits give the seat
   * and the gate back, the case comes back as woken when they are over, and a stop ends them at once.
   *
   * *Details*: one that failed fails the case unless that is handled; when the case is taken again, the turn begins
   * another round in its session. A storage that fails ends the run and is not the case's fault.
   */
  readonly turn: (name: string, turn: SeatTurn) => Effect.Effect<TurnDone, TurnFailed, RetryPolicy>
}

/** How requests for edits are made into edits. */
export interface Improve<C extends Case, Req, RA = never, RR = never> {
  readonly request: Schema.Codec<Req, Json>
  /**
   * Edits the system from a batch. A failure ends the run, its requests stay pending.
   *
   * *Gotcha*: one that a crash cut off is called again with the same name and batch and `again: true`. Make it
   * idempotent by name: look whether the edit named so is already there.
   */
  readonly apply: (batch: Batch<Req>) => Effect.Effect<Applied, unknown, RA>
  /**
   * Runs a completed case once on a version, and grades it. Called for up to `rechecks` cases after each apply that
   * changed the version, as often as the rule of rechecks wants.
   *
   * *Details*: steps are remembered within the try, so that a crash buys no second run. When the answer is `unread` and
   * the try is made again, its last step, the grading, is done again and the others are not. An error makes the try void
   * and charges nobody but the breaker.
   */
  readonly recheck?: ((one: Try<C>, seat: Seat) => Effect.Effect<Verdict<Req>, unknown, RR>) | undefined
  /** Whether `recheck` can run the version before an apply too: it is then asked to, and far harder to fool. Default: false. */
  readonly controls?: boolean | undefined
}

/** What to work through, and how. */
export interface Workload<C extends Case, A extends Json | void, Req, EC, RC, RT, RA, RR = never> {
  /** The selection, in order. Read again when it runs out; an error ends the run. */
  readonly cases: Effect.Effect<ReadonlyArray<C>, EC, RC>
  /**
   * Works on one case. Called again from the top after a crash, a stop, a park or a hold; steps that ended answer at
   * once. Has a scope of its own, closed before the seat is given to another case. An error fails this case only.
   */
  readonly train: (case_: C, seat: Seat<Req>) => Effect.Effect<CaseResult<A>, unknown, RT>
  /** The system's version, read at the start and before each apply that is begun. */
  readonly version?: Effect.Effect<string, EC, RC> | undefined
  /** Without it no case can park: `seat.park` does not type-check. */
  readonly improve?: Improve<C, Req, RA, RR> | undefined
}

/** How to run a workload. Each is checked once, before anything is opened. */
export interface Options {
  /** Cases that run at a time. Default: 4. */
  readonly seats?: number | undefined
  /** An apply fires at this many pending requests, or earlier when nothing else is left to do. Default: 4. */
  readonly applyAt?: number | undefined
  /** So many case failures, with neither a step going through nor a case ending between, end the run; `Infinity` never does. Default: 3. */
  readonly failuresInARow?: number | undefined
  /** How many completed cases are rechecked after each apply that changed the version, at most. Default: 0. */
  readonly rechecks?: number | undefined
  /** When a recheck is over, and what it says. Default: `controlled()` when the workload has `controls`, else `allFail(2)`. */
  readonly recheckRule?: RecheckRule | undefined
  /** How many repairs are asked for each case at most; what regresses after that is only reported. Default: 2. */
  readonly requestsPerCase?: number | undefined
  /** Decides, with apply and case, which cases are rechecked. Default: 1. */
  readonly seed?: number | undefined
  /** A case that would park more often than this becomes difficult. Default: 5. */
  readonly maxParks?: number | undefined
  /** Once the turns of this run have cost so much, nothing more is claimed and it ends. Default: no limit. */
  readonly budgetUsd?: number | undefined
  /** How long a stop lets steps and an apply finish before it interrupts them. Default: 15 seconds. */
  readonly stopWithin?: Duration.Input | undefined
  /** How long something interrupted may take to unwind before its seat is taken all the same. Default: 5 seconds. */
  readonly grace?: Duration.Input | undefined
}

/** What became of the selection and of earlier cases, when a run ended. */
export interface Summary<out A = unknown> {
  readonly end: RunEnd
  readonly completed: ReadonlyArray<{ readonly case: string; readonly value: A }>
  readonly difficult: ReadonlyArray<{ readonly case: string; readonly reason: string }>
  readonly failed: ReadonlyArray<{ readonly case: string; readonly reason: string }>
  /** Cases that still wait for an apply or for the end of a hold. */
  readonly waiting: ReadonlyArray<string>
  /** The applies of this run, in order. */
  readonly applies: ReadonlyArray<string>
  /** The rechecks that ended in this run, in that order. */
  readonly rechecks: ReadonlyArray<{ readonly case: string; readonly apply: string; readonly outcome: RecheckOutcome }>
}

export type { Entry, Explanation, Gap, Snapshot, UsageRow, WaitingFor } from "./DispatcherView.ts"

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

export {
  ApplyFailed,
  BreakerTripped,
  CaseNotChanged,
  InvalidOption,
  InvalidSelection,
  StopTimedOut,
  TurnFailed,
  UnknownCase
} from "./DispatcherError.ts"

/** What a run can fail with, besides the error of its selection. */
export type RunError =
  | StorageError
  | LogHeld
  | LogCorrupt
  | LogFenced
  | LogTooNew
  | InvalidOption
  | InvalidSelection
  | BreakerTripped
  | SystemDown
  | ApplyFailed
  | StopTimedOut

// -----------------------------------------------------------------------------
// service
// -----------------------------------------------------------------------------

/** Runs workloads, one at a time on one log. */
export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    /**
     * Works until nothing can happen any more, or until it is stopped, and says what became of the cases. A run with
     * nothing to do ends at once. Interrupting it takes all seats back and releases the log, or, when something ignores
     * interruption, logs a warning and releases it when that is gone.
     */
    readonly run: <C extends Case, EC, RC, RT, RA = never, Req = never, A extends Json | void = void, RR = never>(
      workload: Workload<C, A, Req, EC, RC, RT, RA, RR>,
      options?: Options
    ) => Effect.Effect<Summary<A>, RunError | EC, RC | Exclude<RT | RA | RR, Scope.Scope>>
    /**
     * Asks the run of this process to stop: steps and an apply under way may finish within `stopWithin`. Succeeds when
     * the run has ended; at once when there is none.
     */
    readonly stop: Effect.Effect<void>
    /** Asks the run of whatever process works on the log to stop. Succeeds when the request is written; it is seen within a second. */
    readonly requestStop: Effect.Effect<void, ChangeError>
    /**
     * The events after a cursor, from the log, then those of the run under way or else of the next one, and ends with
     * it. Without a cursor only the latter. A subscriber that is slower than the run gets a `Gap`, and never slows it.
     */
    readonly events: (after?: number) => Stream.Stream<Entry | Gap, ReadError>
    /** The events in the log after a cursor, whoever wrote them. Ends with the log. */
    readonly history: (after?: number) => Stream.Stream<Entry, ReadError>
    readonly snapshot: Effect.Effect<Snapshot, ReadError>
    /** A snapshot whenever something changed, as often as the subscriber asks for one. Ends with the run under way, or else with the next. */
    readonly changes: Stream.Stream<Snapshot>
    /** Why the case is not running: the answer of the same function that decides what runs next. */
    readonly explain: (caseId: string) => Effect.Effect<Explanation, UnknownCase | ReadError>
    /** Gives a difficult case a new round: its steps, parks and requests begin again from nothing. */
    readonly retry: (caseId: string) => Effect.Effect<void, UnknownCase | CaseNotChanged | ChangeError>
    /** Drops what was done for a case: if it is selected again, it is new. Its rev is remembered, for revs never go back. */
    readonly forget: (caseId: string) => Effect.Effect<void, UnknownCase | CaseNotChanged | ChangeError>
  }
>()("shiftboss/core/Dispatcher") {}

export { StopSignal } from "./internal/dispatch/control.ts"

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/** See `Dispatcher.run`. */
export const run = <C extends Case, EC, RC, RT, RA = never, Req = never, A extends Json | void = void, RR = never>(
  workload: Workload<C, A, Req, EC, RC, RT, RA, RR>,
  options?: Options
): Effect.Effect<Summary<A>, RunError | EC, Dispatcher | RC | Exclude<RT | RA | RR, Scope.Scope>> =>
  Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.run(workload, options))

/** See `Dispatcher.stop`. */
export const stop: Effect.Effect<void, never, Dispatcher> = Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.stop)

/** See `Dispatcher.requestStop`. */
export const requestStop: Effect.Effect<void, ChangeError, Dispatcher> = Effect.flatMap(
  Dispatcher,
  (dispatcher) => dispatcher.requestStop
)

/** See `Dispatcher.events`. */
export const events = (after?: number): Stream.Stream<Entry | Gap, ReadError, Dispatcher> =>
  Stream.unwrap(Effect.map(Dispatcher, (dispatcher) => dispatcher.events(after)))

/** See `Dispatcher.changes`. */
export const changes: Stream.Stream<Snapshot, never, Dispatcher> = Stream.unwrap(
  Effect.map(Dispatcher, (dispatcher) => dispatcher.changes)
)

/** See `Dispatcher.snapshot`. */
export const snapshot: Effect.Effect<Snapshot, ReadError, Dispatcher> = Effect.flatMap(
  Dispatcher,
  (dispatcher) => dispatcher.snapshot
)

/** See `Dispatcher.explain`. */
export const explain = (caseId: string): Effect.Effect<Explanation, UnknownCase | ReadError, Dispatcher> =>
  Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.explain(caseId))

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/** A dispatcher on the log of that name, its improvements and rechecks included. */
export const layerNamed = (log: string): Layer.Layer<Dispatcher | Improvements | Rechecks, never, Storage> =>
  Layer.effectContext(
    Effect.map(make(log), ({ dispatcher, improvements, rechecks }) =>
      Context.make(Dispatcher, dispatcher).pipe(
        Context.add(Improvements, improvements),
        Context.add(Rechecks, rechecks)
      )
    )
  )

/** A dispatcher on the log "dispatch", its improvements and rechecks included. */
export const layer: Layer.Layer<Dispatcher | Improvements | Rechecks, never, Storage> = layerNamed("dispatch")
