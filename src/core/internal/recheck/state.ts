/**
 * What is known of rechecks: the fold of their events, in the log of the dispatcher and among its own. No clock, no I/O,
 * no Effect. As there, a fold owns its state and changes it.
 */
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Request } from "../../Improvements.ts"
import type { RecheckEvent, RecheckOutcome } from "../../RecheckEvent.ts"
import type { Counts } from "../../RecheckRule.ts"
import type { Json } from "../../Storage.ts"
import type { BatchFinding, Member } from "./batch.ts"
import { completedOnce, type History } from "./choose.ts"

/** An apply that changed the system. */
export interface Change {
  readonly apply: string
  readonly from: string
  readonly to: string
  readonly patch: string | undefined
  /** It took a repair. */
  readonly isRepair: boolean
}

/** The try of an arm that is under way or comes next, and what of it is done. */
export interface Try {
  /** Counted from 1 in its arm. */
  readonly number: number
  /** The run of it that is graded may be graded again: counted from 1. */
  readonly reading: number
  /** Results of its steps in the order they ended; `undefined` is one that had none. */
  readonly steps: Map<string, Json | undefined>
  readonly holds: Map<string, number>
  /** Its hold ends then, in epoch milliseconds; 0 without one. */
  until: number
}

/** A recheck that is queued or running. */
export interface OpenRecheck {
  readonly case: string
  readonly rev: number
  /** Epoch milliseconds. */
  readonly queuedAt: number
  change: Change
  /**
   * What control runs are made on: the version before the apply. Of a case that had regressed already, the version before
   * that, for one it is known to fail on could not tell the apply from what is left unrepaired.
   */
  baseline: string
  state: "queued" | "running"
  newPassed: number
  newFailed: number
  controlPassed: number
  controlFailed: number
  /** Tries that said nothing since the last one that counted. */
  voids: number
  /** Why the last of those that ever said nothing did, and whether it broke. */
  reason: string | null
  broke: boolean
  /** Of the last failure on the new version. */
  repair: Json | undefined
  tries: { new: Try; control: Try }
  /** The last attempt of each turn that is told of, by the turn's id. */
  readonly told: Map<string, number>
}

/** All rechecks of an apply, while any of them is open. */
export interface Batch {
  readonly members: Map<string, Member>
  /** What they say together, once it is asked for; the fold forgets it when they change. */
  finding: BatchFinding | undefined
}

export interface State {
  /** The last apply that changed the system. */
  change: Change | undefined
  /** By case, the oldest first. One that runs keeps its place, which it goes back to after a crash. */
  readonly open: Map<string, OpenRecheck>
  /** By apply. */
  readonly batches: Map<string, Batch>
  /** Of cases that were rechecked. */
  readonly histories: Map<string, History>
  /** Cases that failed before they passed, in the last recheck that they passed. */
  readonly unstable: Set<string>
  /** Requests sent for each case, taken or not. */
  readonly sent: Map<string, number>
  /** Requests that no apply has taken, by id, with their case. */
  readonly repairs: Map<string, string>
  /** Those of them that an apply has begun to take. */
  taking: ReadonlyArray<string>
  readonly counts: { passed: number; regressed: number; void: number }
}

export const initial = (): State => ({
  change: undefined,
  open: new Map(),
  batches: new Map(),
  histories: new Map(),
  unstable: new Set(),
  sent: new Map(),
  repairs: new Map(),
  taking: [],
  counts: { passed: 0, regressed: 0, void: 0 }
})

/** What a request of the recheck is called in its case. The name of an apply is digits, so no two share one. */
const requestName = (apply: string): string => `recheck-${apply}`

/** Names a recheck and the request it sends. */
export const nameOf = (id: string, apply: string): string => `${id}@${requestName(apply)}`

/** Whether a try has counted. */
export const isCounted = (recheck: OpenRecheck): boolean =>
  recheck.newPassed + recheck.newFailed + recheck.controlPassed + recheck.controlFailed > 0

export const countsOf = (state: State, recheck: OpenRecheck): Counts => {
  const { passed, failed } = state.histories.get(recheck.case) ?? completedOnce
  const { newPassed, newFailed, controlPassed, controlFailed, voids } = recheck
  return { earlierPassed: passed, earlierFailed: failed, newPassed, newFailed, controlPassed, controlFailed, voids }
}

// -----------------------------------------------------------------------------
// fold
// -----------------------------------------------------------------------------

/** Folds one event into the state and returns the same state. */
export const evolve = (state: State, event: DispatcherEvent): State => {
  switch (event._tag) {
    case "RunStarted":
      for (const recheck of state.open.values()) recheck.state = "queued"
      break
    case "ApplyStarted":
      state.taking = event.requests.filter((request) => state.repairs.has(request))
      break
    case "ApplyFailed":
      state.taking = []
      break
    case "ApplyEnded":
      applied(state, event)
      break
    case "CaseRevised":
    case "CaseRetried":
    case "CaseForgotten":
      forget(state, event.case)
      break
    case "RequestCancelled":
      state.repairs.delete(event.request)
      break
    case "RechecksQueued":
      for (const one of event.cases) open(state, one.case, one.rev, event.at)
      break
    case "TurnSpent":
      if (event.recheck !== null) state.open.get(event.case)?.told.set(event.turnId, event.attempt)
      break
    case "RecheckMoved":
    case "RecheckStarted":
    case "RecheckStepEnded":
    case "RecheckHeld":
    case "TryEnded":
    case "RecheckEnded":
      evolveRecheck(state, event)
  }
  return state
}

const applied = (state: State, { apply, applied }: Extract<DispatcherEvent, { readonly _tag: "ApplyEnded" }>): void => {
  if (applied._tag === "Changed") {
    const { from, to, patch } = applied
    state.change = { apply, from, to, patch, isRepair: state.taking.length > 0 }
  }
  for (const request of state.taking) state.repairs.delete(request)
  state.taking = []
}

type OfRecheck = Exclude<RecheckEvent, { readonly _tag: "RechecksQueued" | "BatchJudged" }>

const evolveRecheck = (state: State, event: OfRecheck): void => {
  const recheck = state.open.get(event.case)
  if (recheck?.change.apply !== event.apply) return
  switch (event._tag) {
    case "RecheckMoved":
      return move(state, recheck)
    case "RecheckStarted":
      recheck.state = "running"
      return
    case "RecheckStepEnded":
      recheck.tries[event.arm].steps.set(event.step, event.result)
      return
    case "RecheckHeld":
      recheck.tries[event.arm].holds.set(event.name, event.until)
      recheck.tries[event.arm].until = event.until
      return
    case "TryEnded":
      return addTry(state, recheck, event)
    case "RecheckEnded":
      return end(state, recheck, event.outcome)
  }
}

const begun = (number: number): Try => ({ number, reading: 1, steps: new Map(), holds: new Map(), until: 0 })

const open = (state: State, id: string, rev: number, queuedAt: number): void => {
  const { change } = state
  if (change === undefined) return
  const none = { newPassed: 0, newFailed: 0, controlPassed: 0, controlFailed: 0, voids: 0 }
  const recheck: OpenRecheck = {
    ...{ case: id, rev, queuedAt, change, baseline: baselineOf(state, id, change), state: "queued", ...none },
    ...{ reason: null, broke: false, repair: undefined, tries: { new: begun(1), control: begun(1) } },
    told: new Map()
  }
  state.open.set(id, recheck)
  enlist(state, recheck)
}

const baselineOf = (state: State, id: string, change: Change): string => state.histories.get(id)?.good ?? change.from

const enlist = (state: State, { case: id, change }: OpenRecheck): void => {
  const batch: Batch = state.batches.get(change.apply) ?? { members: new Map(), finding: undefined }
  state.batches.set(change.apply, batch)
  const { passed, failed } = state.histories.get(id) ?? completedOnce
  batch.members.set(id, { case: id, passed, failed, first: null, control: null })
  batch.finding = undefined
}

const move = (state: State, recheck: OpenRecheck): void => {
  if (state.change === undefined) return
  withdraw(state, recheck)
  dropBatch(state, recheck)
  recheck.change = state.change
  recheck.baseline = baselineOf(state, recheck.case, state.change)
  recheck.voids = 0
  recheck.tries = { new: begun(1), control: begun(1) }
  enlist(state, recheck)
}

/** Changes what its batch knows of the recheck. */
const tell = (state: State, { case: id, change }: OpenRecheck, known: Partial<Member>): void => {
  const batch = state.batches.get(change.apply)
  const member = batch?.members.get(id)
  if (batch === undefined || member === undefined) return
  batch.members.set(id, { ...member, ...known })
  batch.finding = undefined
}

/** The recheck says nothing in its batch. */
const withdraw = (state: State, { case: id, change }: OpenRecheck): void => {
  const batch = state.batches.get(change.apply)
  if (batch === undefined) return
  batch.members.delete(id)
  batch.finding = undefined
}

/** Drops the batch when this was the last of its rechecks that was open. */
const dropBatch = (state: State, recheck: OpenRecheck): void => {
  const { apply } = recheck.change
  for (const other of state.open.values()) if (other !== recheck && other.change.apply === apply) return
  state.batches.delete(apply)
}

const addTry = (
  state: State,
  recheck: OpenRecheck,
  event: Extract<RecheckEvent, { readonly _tag: "TryEnded" }>
): void => {
  const { arm, outcome } = event
  recheck.tries[arm] = following(recheck.tries[arm], outcome)
  if (outcome !== "pass" && outcome !== "failure") {
    recheck.voids++
    recheck.reason = event.reason
    recheck.broke = outcome === "error"
    return
  }
  const isFirst = recheck[`${arm}Passed`] + recheck[`${arm}Failed`] === 0
  const said = outcome === "pass" ? "passed" : "failed"
  if (isFirst) tell(state, recheck, arm === "new" ? { first: said } : { control: said })
  recheck.voids = 0
  recheck[outcome === "pass" ? (`${arm}Passed` as const) : (`${arm}Failed` as const)]++
  if (arm === "new" && outcome === "failure") recheck.repair = event.repair
}

/**
 * What comes after a try. One that broke goes on where it was; of one whose grading could not be read only the grading,
 * its last step, is done again, and under another key, so that it is asked of another session.
 */
const following = (one: Try, outcome: Extract<RecheckEvent, { readonly _tag: "TryEnded" }>["outcome"]): Try => {
  if (outcome === "error") return one
  if (outcome !== "unread") return begun(one.number + 1)
  const kept = [...one.steps].slice(0, -1)
  return { ...begun(one.number), reading: one.reading + 1, steps: new Map(kept), holds: one.holds }
}

const end = (state: State, recheck: OpenRecheck, outcome: RecheckOutcome): void => {
  const id = recheck.case
  const member = state.batches.get(recheck.change.apply)?.members.get(id)
  if (member?.first === null) withdraw(state, recheck)
  else if (member?.control === null) tell(state, recheck, { control: "void" })
  dropBatch(state, recheck)
  state.open.delete(id)
  state.counts[outcome._tag === "Passed" ? "passed" : outcome._tag === "Regressed" ? "regressed" : "void"]++
  if (outcome._tag === "Void") return
  remember(state, recheck, outcome)
  if (outcome._tag === "Passed" || outcome.request === null) return
  state.sent.set(id, (state.sent.get(id) ?? 0) + 1)
  state.repairs.set(outcome.request, id)
}

const remember = (state: State, recheck: OpenRecheck, outcome: Exclude<RecheckOutcome, { _tag: "Void" }>): void => {
  const id = recheck.case
  const { passed, failed } = state.histories.get(id) ?? completedOnce
  // What a broken version did says nothing about how often the case passes on one that is not.
  const isGood = outcome._tag === "Passed"
  state.histories.set(id, {
    passed: passed + recheck.controlPassed + (isGood ? recheck.newPassed : 0),
    failed: failed + recheck.controlFailed + (isGood ? recheck.newFailed : 0),
    regressed: isGood ? undefined : outcome.confirmed ? "confirmed" : "unconfirmed",
    good: isGood ? undefined : recheck.baseline
  })
  if (isGood && outcome.unstable) state.unstable.add(id)
  else if (isGood) state.unstable.delete(id)
}

/** The request that the end of a recheck sends, before it is folded. */
export const requestOf = (
  state: State,
  event: Extract<RecheckEvent, { readonly _tag: "RecheckEnded" }>
): Request | undefined => {
  const recheck = state.open.get(event.case)
  if (recheck?.change.apply !== event.apply) return undefined
  if (event.outcome._tag !== "Regressed" || event.outcome.request === null) return undefined
  const { case: id, rev, repair } = recheck
  return {
    id: event.outcome.request,
    case: id,
    rev,
    name: requestName(event.apply),
    why: "repair",
    payload: repair ?? null
  }
}

/** The case changed, or begins anew. */
const forget = (state: State, id: string): void => {
  state.histories.delete(id)
  state.unstable.delete(id)
  state.sent.delete(id)
  for (const [request, of] of state.repairs) if (of === id) state.repairs.delete(request)
}
