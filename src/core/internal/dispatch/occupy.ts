/**
 * A case from the moment it gets its seat until it has left it.
 */
import { Cause, Clock, Deferred, Effect, Exit, Fiber, Predicate } from "effect"
import { type Case, type CaseResult, SystemDown } from "../../Case.ts"
import { BreakerTripped } from "../../DispatcherError.ts"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Json } from "../../Storage.ts"
import { awaitHold, revOf } from "./decide.ts"
import { json } from "./json.ts"
import { caseLeft } from "./metrics.ts"
import { breakWith, happened, type Occupant, type Run, shown } from "./run.ts"
import * as seat from "./seat.ts"
import { requestId } from "./state.ts"

/** Gives the case a seat and runs it there. Ends when the seat is free again; never fails. */
export const occupy = Effect.fnUntraced(function* (run: Run, case_: Case) {
  const number = run.live.freeSeats.pop()
  if (number === undefined) return yield* Effect.die("a case was claimed with no seat free")
  const occupant: Occupant = {
    case: case_.id,
    rev: revOf(case_),
    seat: number,
    over: Deferred.makeUnsafe(),
    withdrawal: undefined,
    left: false,
    step: null,
    since: yield* Clock.currentTimeMillis
  }
  run.live.running.set(case_.id, number)
  run.occupants.set(case_.id, occupant)
  yield* Effect.forkDetach(Effect.uninterruptible(onSeat(run, case_, occupant)), { startImmediately: true })
})

const onSeat = Effect.fnUntraced(function* (run: Run, case_: Case, occupant: Occupant) {
  const beginning = begun(run, case_, occupant.since)
  const begin = beginning.length === 0 ? Effect.void : run.journal.commit(beginning)
  const exit = yield* Effect.matchEffect(begin, {
    onFailure: () => Effect.succeed(undefined),
    onSuccess: () => (occupant.withdrawal === undefined ? train(run, case_, occupant) : Effect.succeed(undefined))
  })
  occupant.left = true
  // Whatever a host answered with, its seat has to be free again.
  const events = yield* Effect.catchCause(settled(run, occupant, exit), (cause) =>
    failed(run, shown(cause), { at: occupant.since, case: occupant.case, rev: occupant.rev }, true)
  )
  const leave = () => {
    run.occupants.delete(occupant.case)
    run.live.running.delete(occupant.case)
    run.live.freeSeats.push(occupant.seat, occupant.seat)
    if (occupant.withdrawal?._tag === "Held") awaitHold(run.state, run.live, occupant.case)
  }
  if (events.length === 0) leave()
  else yield* Effect.catch(run.journal.commit(events, leave), () => Effect.sync(leave))
  happened(run)
})

/** What a case is told of before it runs: a new rev drops what was done for the old one, a failure is cleared. */
const begun = (run: Run, case_: Case, at: number): ReadonlyArray<DispatcherEvent> => {
  const record = run.state.cases.get(case_.id)
  const of = { at, case: case_.id, rev: revOf(case_) }
  if (record !== undefined && record.rev < of.rev) return [{ _tag: "CaseRevised", ...of, from: record.rev }]
  return record?.phase === "failed" ? [{ _tag: "CaseResumed", ...of, reason: record.reason ?? "" }] : []
}

/**
 * Runs `train` in a fiber of its own until it ends or the seat is taken back. Then its fiber is interrupted from
 * outside, whatever it catches, and only one that ignores even that outlives its seat: it is remembered as unwinding.
 */
const train = Effect.fnUntraced(function* (run: Run, case_: Case, occupant: Occupant) {
  const work = Effect.withSpan(
    Effect.scoped(Effect.suspend(() => run.workload.train(case_, seat.make(run, occupant)))),
    "shiftboss.case",
    { attributes: { case: occupant.case, rev: occupant.rev, seat: occupant.seat }, captureStackTrace: false }
  )
  const fiber = yield* Effect.forkDetach(Effect.interruptible(work), { startImmediately: true })
  run.alive.add(fiber)
  fiber.addObserver(() => {
    run.alive.delete(fiber)
    Deferred.doneUnsafe(occupant.over, Effect.void)
  })
  yield* Deferred.await(occupant.over)
  if (occupant.withdrawal === undefined) return fiber.pollUnsafe()
  fiber.interruptUnsafe()
  if (fiber.pollUnsafe() === undefined) {
    const gone = yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(fiber)), run.options.grace)
    if (gone._tag === "None") unwinding(run, occupant, fiber)
  }
  return undefined
})

const unwinding = (run: Run, occupant: Occupant, fiber: Fiber.Fiber<unknown, unknown>) => {
  run.live.unwinding.add(occupant.case)
  fiber.addObserver(() => {
    run.live.unwinding.delete(occupant.case)
    run.live.woken.push(occupant.case)
    happened(run)
  })
}

type TrainExit = Exit.Exit<CaseResult<Json | void>, unknown>

/** What is journaled of how the case left its seat. */
const settled = Effect.fnUntraced(function* (run: Run, occupant: Occupant, exit: TrainExit | undefined) {
  const of = { at: yield* Clock.currentTimeMillis, case: occupant.case, rev: occupant.rev }
  const { withdrawal } = occupant
  if (withdrawal !== undefined) return yield* withdrawn(run, occupant, of)
  if (exit === undefined) return []
  if (Exit.isSuccess(exit)) return yield* ended(run, occupant, exit.value, of)
  const down = exit.cause.reasons.find((reason) => Cause.isFailReason(reason) && reason.error instanceof SystemDown)
  if (down !== undefined && Cause.isFailReason(down) && down.error instanceof SystemDown) {
    breakWith(run, down.error)
    return []
  }
  return yield* failed(run, shown(exit.cause), of, !Cause.hasInterruptsOnly(exit.cause))
})

type OfCase = { readonly at: number; readonly case: string; readonly rev: number }
type Events = Effect.Effect<ReadonlyArray<DispatcherEvent>>

const withdrawn = (run: Run, { withdrawal, case: id }: Occupant, of: OfCase): Events => {
  const record = run.state.cases.get(id)
  switch (withdrawal?._tag) {
    case "Parked": {
      const parks = record?.parks ?? 0
      if (parks >= run.options.maxParks) {
        const reason = `it parked ${parks} times and asks once more (for "${withdrawal.name}")`
        return Effect.as(caseLeft("difficult"), [{ _tag: "CaseDifficult", ...of, reason }])
      }
      const request = requestId(id, of.rev, record?.round ?? 1, withdrawal.name)
      return Effect.as(caseLeft("parked"), [{ ...of, ...withdrawal, _tag: "CaseParked", request }])
    }
    case "Held":
      return Effect.as(caseLeft("held"), [{ ...of, ...withdrawal, _tag: "CaseHeld" }])
    default:
      return Effect.as(caseLeft("stopped"), [])
  }
}

const ended = (run: Run, occupant: Occupant, result: CaseResult<Json | void>, of: OfCase): Events => {
  if (Predicate.isTagged(result, "Difficult")) {
    run.row = []
    return Effect.as(caseLeft("difficult"), [{ _tag: "CaseDifficult", ...of, reason: String(result.reason) }])
  }
  if (!Predicate.isTagged(result, "Completed")) {
    return failed(run, "train answered with neither Case.completed nor Case.difficult: return one of them", of, true)
  }
  if (result.value === undefined) {
    run.row = []
    return Effect.as(caseLeft("completed"), [{ _tag: "CaseCompleted", ...of }])
  }
  return Effect.matchCauseEffect(json.encode(result.value), {
    onSuccess: (value) => {
      run.row = []
      return Effect.as(caseLeft("completed"), [{ _tag: "CaseCompleted", ...of, value }])
    },
    onFailure: (cause) =>
      failed(run, `the value that case "${occupant.case}" completed with is not JSON: ${shown(cause)}`, of, true)
  })
}

/** A failure of the case. One that counts for the breaker may end the run. */
const failed = (run: Run, reason: string, of: OfCase, counts: boolean): Events => {
  if (counts) {
    run.row = [...run.row, { case: of.case, reason }]
    if (run.row.length >= run.options.failuresInARow) breakWith(run, new BreakerTripped({ failures: run.row }))
  }
  return Effect.as(caseLeft("failed"), [{ _tag: "CaseFailed", ...of, reason }])
}
