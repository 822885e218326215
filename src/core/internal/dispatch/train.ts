/**
 * A case on a seat: what is journaled before `train` is called, and of how it left.
 */
import { Cause, Effect, Exit, Predicate } from "effect"
import type { Case, CaseResult } from "../../Case.ts"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Json } from "../../Storage.ts"
import { awaitHold, revOf } from "./decide.ts"
import { charge, downOf } from "./failures.ts"
import { toJson } from "./json.ts"
import * as metrics from "./metrics.ts"
import type { Piece } from "./occupy.ts"
import { breakWith, happened, type Memory, nowOf, type Occupant, type Run, shown } from "./run.ts"
import { keyOf, requestId } from "./state.ts"

export const train = (run: Run, case_: Case, now: number): Piece => {
  const events = begun(run, case_, now)
  return {
    before:
      events.length === 0
        ? undefined
        : () => Effect.match(run.journal.commit(events), { onFailure: () => false, onSuccess: () => true }),
    work: () => ({
      recheck: null,
      memory: memoryOf(run, case_),
      run: (seat) => run.workload.train(case_, seat)
    }),
    finish: (occupant, exit, { freeSeat, leave }) =>
      Effect.withFiber((fiber) => {
        const events = settled(run, occupant, exit as TrainExit | undefined, nowOf(fiber))
        const left = () => {
          leave()
          if (occupant.withdrawal?._tag === "Held") awaitHold(run.state, run.live, occupant.case)
          // The selection that was read while it ran has a new rev of it, and was looked through without it.
          const selected = run.live.selection.byId.get(occupant.case)
          if (selected !== undefined && occupant.rev < revOf(selected)) run.live.passedBy.push(occupant.case)
        }
        if (events.length === 0) {
          if (occupant.withdrawal?._tag === "Stopped") metrics.stopped(fiber.context)
          left()
          happened(run)
          return Effect.void
        }
        run.journal.post({
          events,
          onCounted: left,
          onAnswered: (result) => {
            if (Exit.isFailure(result)) left()
            happened(run)
          }
        })
        // A request, or a hold, has to count before it is decided what runs next.
        if (occupant.withdrawal === undefined) freeSeat()
        return Effect.void
      })
  }
}

/** What a case is told of before it runs: a new rev drops what was done for the old one, a failure is cleared. */
const begun = (run: Run, case_: Case, at: number): ReadonlyArray<DispatcherEvent> => {
  const record = run.state.cases.get(case_.id)
  const of = { at, case: case_.id, rev: revOf(case_) }
  if (record !== undefined && record.rev < of.rev) return [{ _tag: "CaseRevised", ...of, from: record.rev }]
  return record?.phase === "failed" ? [{ _tag: "CaseResumed", ...of, reason: record.reason ?? "" }] : []
}

const memoryOf = (run: Run, case_: Case): Memory => {
  const { id } = case_
  const rev = revOf(case_)
  const record = () => run.state.cases.get(id)
  return {
    key: keyOf(id, rev, record()?.round ?? 1),
    steps: () => record()?.steps,
    holds: () => record()?.holds,
    told: () => record()?.told,
    stepEnded: (at, ended) => ({ _tag: "StepEnded", at, case: id, rev, ...ended })
  }
}

type TrainExit = Exit.Exit<CaseResult<Json | void>, unknown>

/** What is journaled of how the case left its seat. Whatever a host answered with, its seat has to be free again. */
const settled = (run: Run, occupant: Occupant, exit: TrainExit | undefined, at: number): Events => {
  const of = { at, case: occupant.case, rev: occupant.rev }
  try {
    if (occupant.withdrawal !== undefined) return withdrawn(run, occupant, of)
    if (exit === undefined) return []
    if (Exit.isSuccess(exit)) return ended(run, occupant, exit.value, of)
    const down = downOf(exit)
    if (down === undefined) return failed(run, shown(exit.cause), of, !Cause.hasInterruptsOnly(exit.cause))
    breakWith(run, down)
    return []
  } catch (defect) {
    return failed(run, shown(Cause.die(defect)), of, true)
  }
}

type OfCase = { readonly at: number; readonly case: string; readonly rev: number }
type Events = ReadonlyArray<DispatcherEvent>

const withdrawn = (run: Run, { withdrawal, case: id }: Occupant, of: OfCase): Events => {
  const record = run.state.cases.get(id)
  switch (withdrawal?._tag) {
    case "Parked": {
      const parks = record?.parks ?? 0
      if (parks >= run.options.maxParks) {
        const reason = `it parked ${parks} times and asks once more (for "${withdrawal.name}")`
        return [{ _tag: "CaseDifficult", ...of, reason }]
      }
      const request = requestId(id, of.rev, record?.round ?? 1, withdrawal.name)
      return [{ ...of, ...withdrawal, _tag: "CaseParked", request }]
    }
    case "Held":
      return [{ ...of, ...withdrawal, _tag: "CaseHeld" }]
    default:
      return []
  }
}

const ended = (run: Run, occupant: Occupant, result: CaseResult<Json | void>, of: OfCase): Events => {
  if (Predicate.isTagged(result, "Difficult")) {
    const reason = String(result.reason)
    run.row = []
    return [{ _tag: "CaseDifficult", ...of, reason }]
  }
  if (!Predicate.isTagged(result, "Completed")) {
    return failed(run, "train answered with neither Case.completed nor Case.difficult: return one of them", of, true)
  }
  if (result.value === undefined) {
    run.row = []
    return [{ _tag: "CaseCompleted", ...of }]
  }
  const value = toJson(result.value)
  if (Exit.isFailure(value)) {
    const reason = `the value that case "${occupant.case}" completed with is not JSON: ${shown(value.cause)}`
    return failed(run, reason, of, true)
  }
  run.row = []
  return [{ _tag: "CaseCompleted", ...of, value: value.value }]
}

/** A failure of the case. One that counts for the breaker may end the run. */
const failed = (run: Run, reason: string, of: OfCase, counts: boolean): Events => {
  if (counts) charge(run, { case: of.case, reason })
  return [{ _tag: "CaseFailed", ...of, reason }]
}
