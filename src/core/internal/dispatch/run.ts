/**
 * What the parts of one run share.
 */
import { Cause, Clock, Deferred, Effect, type Fiber, type Latch, type Semaphore } from "effect"
import type { Case, CaseResult } from "../../Case.ts"
import type { RunError, Seat } from "../../Dispatcher.ts"
import type { DispatcherEvent, RunEnd } from "../../DispatcherEvent.ts"
import type { Applied, Batch } from "../../Improvements.ts"
import type { Arm } from "../../RecheckRule.ts"
import type { Try } from "../../Rechecks.ts"
import type { RecheckOutcome } from "../../RecheckEvent.ts"
import type { Json } from "../../Storage.ts"
import type { Verdict } from "../../Verdict.ts"
import type { Checked } from "./options.ts"
import type { Live } from "./decide.ts"
import type { Gate } from "./gate.ts"
import type { Inbox } from "./inbox.ts"
import type { JsonCodec } from "./json.ts"
import type { Journal, WriteError } from "./journal.ts"
import type { State } from "./state.ts"

/** A workload whose requirements are met by the fiber that runs it, and so by all it forks. */
export interface ClosedWorkload {
  readonly cases: Effect.Effect<ReadonlyArray<Case>, unknown>
  readonly train: (case_: Case, seat: Seat<unknown>) => Effect.Effect<CaseResult<Json | void>, unknown>
  readonly version: Effect.Effect<string, unknown> | undefined
  readonly improve:
    | {
        readonly request: JsonCodec<never>
        readonly apply: (batch: Batch<unknown>) => Effect.Effect<Applied, unknown>
        readonly recheck: ((one: Try<Case>, seat: Seat<never>) => Effect.Effect<Verdict<unknown>, unknown>) | undefined
      }
    | undefined
}

/** Why a seat is taken back. The first reason stays. */
export type Withdrawal =
  | { readonly _tag: "Parked"; readonly name: string; readonly payload: Json }
  | { readonly _tag: "Held"; readonly name: string; readonly until: number }
  | { readonly _tag: "Stopped" }

/** What is known of the work on a seat, and how more of it is journaled. */
export interface Memory {
  /** Names the work for ever. */
  readonly key: string
  readonly steps: () => ReadonlyMap<string, Json | undefined> | undefined
  readonly holds: () => ReadonlyMap<string, number> | undefined
  /** The last attempt of each turn that is told of. */
  readonly told: () => ReadonlyMap<string, number> | undefined
  readonly stepEnded: (at: number, ended: { readonly step: string; readonly result?: Json }) => DispatcherEvent
}

/** The try of a recheck that is on a seat. */
export interface OnRecheck {
  readonly apply: string
  readonly arm: Arm
  readonly try: number
}

/** A case on a seat. */
export interface Occupant {
  readonly case: string
  readonly rev: number
  readonly seat: number
  /** `null`: it is the case itself. Set with the memory once it is known what runs. */
  recheck: OnRecheck | null
  memory: Memory
  /** Interrupts the host's function. Set while that runs. */
  takeBack: (() => void) | undefined
  withdrawal: Withdrawal | undefined
  /** `train` is over: whoever kept the seat is answered no more, and what it still does counts no more. */
  left: boolean
  step: string | null
  /** When it took the seat, or began the step. */
  since: number
}

/** Why a run comes to its end before there is nothing left to do. */
export type Ending =
  | { readonly _tag: "Stopped" }
  /** `end` is what is journaled; without it the log cannot be written. */
  | { readonly _tag: "Broken"; readonly cause: Cause.Cause<unknown>; readonly end: RunEnd | undefined }

export interface Run {
  readonly workload: ClosedWorkload
  readonly options: Checked
  readonly state: State
  readonly live: Live
  readonly journal: Journal
  /** Sees to how work leaves its seat, wherever that is noticed. Nothing it is handed waits for long. */
  readonly supervisor: Inbox<Effect.Effect<unknown>>
  readonly gate: Gate
  readonly occupants: Map<string, Occupant>
  /** Fibers of the host's functions that are alive and may still write: the log is not released before they are gone. */
  readonly alive: Set<Fiber.Fiber<unknown, unknown>>
  applying:
    | { readonly apply: string; state: "waiting" | "running"; fiber: Fiber.Fiber<unknown, unknown> | undefined }
    | undefined
  selecting: Fiber.Fiber<unknown, unknown> | undefined
  /** Names of the applies of this run. */
  readonly applies: Array<string>
  readonly startedAt: number
  /** What the attempts of this run have cost, as far as it is known or estimated. */
  spentUsd: number
  /** Rechecks that ended in this run. */
  readonly rechecked: Array<{ readonly case: string; readonly apply: string; readonly outcome: RecheckOutcome }>
  /** One end of a try at a time: what several say together is judged with all of them counted. */
  readonly judging: Semaphore.Semaphore
  /** One at a time of what is decided by what is known and may not be: a change, the batch of an apply, new revs. */
  readonly changes: Semaphore.Semaphore
  /** Nothing is added to the log any more but how the run ended: changes wait until it is released. */
  closing: boolean
  /** Failures in a row. */
  row: Array<{ readonly case: string; readonly reason: string }>
  ending: Ending | undefined
  /** Done with the first reason to end. */
  readonly endingBegan: Deferred.Deferred<Ending>
  /** Done when the bounds of an end have run out: whatever is still alive is left behind. */
  readonly overdue: Deferred.Deferred<void>
  /** Open when the loop should look again. */
  readonly look: Latch.Latch
  /** Tells those who watch. */
  readonly changed: () => void
}

/** A reason is for a person, and lives in a log: a cause can be as long as a stack is deep. */
const maxReason = 4_000

/** The reason, bounded. */
export const cut = (reason: string): string =>
  reason.length > maxReason ? `${reason.slice(0, maxReason)} … (${reason.length} characters)` : reason

/** The cause for a person. Total: what a host fails with may throw when it is asked what it is. */
export const shown = (cause: Cause.Cause<unknown>): string => {
  try {
    return cut(Cause.pretty(cause))
  } catch {
    return "it failed with something that cannot be shown: its toString or toJSON throws"
  }
}

/** Epoch milliseconds by the clock of the fiber: what happens for every case reads it without an effect of its own. */
export const nowOf = (fiber: Fiber.Fiber<unknown, unknown>): number =>
  fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()

/** Something happened: what runs next is decided anew. */
export const happened = (run: Run): void => {
  run.live.surveyed = false
  run.look.openUnsafe()
  run.changed()
}

/** An event that changes what is known of a case from outside its seat. */
export type ChangeEvent = Extract<DispatcherEvent, { readonly case: string; readonly rev: number }>

/**
 * Writes changes to cases. Until they count none of the cases is claimed, and the run does not end; whoever asked for
 * them may be gone by then.
 */
export const changed = (
  run: Run,
  events: ReadonlyArray<ChangeEvent>,
  onCounted: () => void
): Effect.Effect<void, WriteError> =>
  Effect.uninterruptible(
    Effect.suspend(() => {
      for (const event of events) run.live.changing.add(event.case)
      const over = () => {
        for (const event of events) run.live.changing.delete(event.case)
      }
      const commit = run.journal.commit(events, () => {
        over()
        onCounted()
      })
      return Effect.ensuring(
        commit,
        Effect.sync(() => {
          over()
          happened(run)
        })
      )
    })
  )

/** Takes the seat back. What was asked of it is never answered. */
export const withdraw = (occupant: Occupant, withdrawal: Withdrawal): void => {
  if (occupant.withdrawal !== undefined) return
  occupant.withdrawal = withdrawal
  occupant.takeBack?.()
}

/** A seat that is taken back never answers: interruptible even in an uninterruptible region, or it could not be unwound. */
export const away: Effect.Effect<never> = Effect.interruptible(Effect.never)

/** Claims nothing more. Cases between steps leave their seats at once; steps and an apply go on until they are interrupted. */
export const beginEnding = (run: Run, ending: Ending): void => {
  if (run.ending !== undefined) return
  run.ending = ending
  run.live.ending = true
  for (const occupant of run.occupants.values()) if (occupant.step === null) withdraw(occupant, { _tag: "Stopped" })
  if (run.applying?.state === "waiting") run.applying.fiber?.interruptUnsafe()
  run.selecting?.interruptUnsafe()
  Deferred.doneUnsafe(run.endingBegan, Effect.succeed(ending))
  happened(run)
}

/** Takes all seats back and interrupts everything. */
export const interruptAll = (run: Run): void => {
  for (const occupant of run.occupants.values()) withdraw(occupant, { _tag: "Stopped" })
  run.applying?.fiber?.interruptUnsafe()
  run.selecting?.interruptUnsafe()
}

/** An error that ends the run, and what is journaled of it. */
export const breakWith = (run: Run, error: RunError): void =>
  beginEnding(run, { _tag: "Broken", cause: Cause.fail(error), end: endOf(error) })

const endOf = (error: RunError): RunEnd | undefined => {
  switch (error._tag) {
    case "BreakerTripped":
      return { _tag: "BreakerTripped", failures: error.failures }
    case "SystemDown":
      return { _tag: "SystemDown", reason: error.reason }
    case "ApplyFailed":
      return { _tag: "ApplyFailed", apply: error.apply, reason: error.reason }
    case "InvalidSelection":
      return { _tag: "SelectionFailed", reason: error.message }
    default:
      return undefined
  }
}
