/**
 * A case on a seat: what is journaled before `train` is called, and of how it left.
 */
import { Cause, Clock, Effect, Exit, Predicate } from "effect"
import type { Case, CaseResult } from "../../Case.ts"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Json } from "../../Storage.ts"
import { awaitHold, revOf } from "./decide.ts"
import { charge, downOf } from "./failures.ts"
import { json } from "./json.ts"
import { caseLeft } from "./metrics.ts"
import type { Piece } from "./occupy.ts"
import { breakWith, type Memory, type Occupant, type Run, shown } from "./run.ts"
import { keyOf, requestId } from "./state.ts"

export const train = (run: Run, case_: Case): Piece => ({
  begin: (occupant) => {
    const events = begun(run, case_, occupant.since)
    const work = Effect.sync(() => ({
      recheck: null,
      memory: memoryOf(run, case_),
      run: (seat: Parameters<Run["workload"]["train"]>[1]) => run.workload.train(case_, seat)
    }))
    if (events.length === 0) return work
    return Effect.matchEffect(run.journal.commit(events), {
      onFailure: () => Effect.undefined,
      onSuccess: () => work
    })
  },
  finish: (occupant, exit, leave) => {
    // Whatever a host answered with, its seat has to be free again.
    const settling = Effect.catchCause(settled(run, occupant, exit as TrainExit | undefined), (cause) =>
      failed(run, shown(cause), { at: occupant.since, case: occupant.case, rev: occupant.rev }, true)
    )
    const left = () => {
      leave()
      if (occupant.withdrawal?._tag === "Held") awaitHold(run.state, run.live, occupant.case)
    }
    return Effect.flatMap(settling, (events) =>
      events.length === 0 ? Effect.sync(left) : Effect.catch(run.journal.commit(events, left), () => Effect.sync(left))
    )
  }
})

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

/** What is journaled of how the case left its seat. */
const settled = (run: Run, occupant: Occupant, exit: TrainExit | undefined): Events =>
  Effect.flatMap(Clock.currentTimeMillis, (at) => {
    const of = { at, case: occupant.case, rev: occupant.rev }
    if (occupant.withdrawal !== undefined) return withdrawn(run, occupant, of)
    if (exit === undefined) return Effect.succeed([])
    if (Exit.isSuccess(exit)) return ended(run, occupant, exit.value, of)
    const down = downOf(exit)
    if (down === undefined) return failed(run, shown(exit.cause), of, !Cause.hasInterruptsOnly(exit.cause))
    breakWith(run, down)
    return Effect.succeed([])
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
  if (counts) charge(run, { case: of.case, reason })
  return Effect.as(caseLeft("failed"), [{ _tag: "CaseFailed", ...of, reason }])
}
