/**
 * What is known of rechecks: the fold of their events, in the log of the dispatcher and among its own. No clock, no I/O,
 * no Effect. As there, a fold owns its state and changes it.
 */
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Counts } from "../../RecheckRule.ts"
import type { Json } from "../../Storage.ts"
import { completedOnce, type History } from "./choose.ts"
import type { RecheckEvent, RecheckOutcome } from "./event.ts"

/** A recheck that is queued or running. */
export interface OpenRecheck {
  readonly case: string
  readonly rev: number
  apply: string
  /** The version the apply made, and the one before it: what the two arms run on. */
  version: string
  previous: string
  state: "queued" | "running"
  newPassed: number
  newFailed: number
  controlPassed: number
  controlFailed: number
  /** Tries that said nothing since the last one that counted. */
  voids: number
  /** Why the last of those that ever said nothing did. */
  reason: string | null
  /** Of the last failure on the new version. */
  repair: Json | undefined
}

export interface EndedRecheck {
  readonly case: string
  readonly rev: number
  readonly apply: string
  readonly outcome: RecheckOutcome
}

/** A regression's request that no apply has taken. */
export interface Repair {
  readonly id: string
  readonly case: string
  readonly rev: number
  readonly payload: Json
}

/** The last apply that changed the system. */
interface Change {
  readonly apply: string
  readonly from: string
  readonly to: string
}

export interface State {
  change: Change | undefined
  /** The apply whose rechecks were queued last. */
  queuedFor: string | undefined
  /** By case, the oldest first. One that runs keeps its place, which it goes back to after a crash. */
  readonly open: Map<string, OpenRecheck>
  readonly ended: Array<EndedRecheck>
  /** Of cases that were rechecked. */
  readonly histories: Map<string, History>
  /** Cases that failed before they passed, in the last recheck that they passed. */
  readonly unstable: Set<string>
  /** Requests sent for each case, taken or not. */
  readonly sent: Map<string, number>
  readonly repairs: Map<string, Repair>
  /** Begun to be taken by an apply that has not ended. */
  taking: ReadonlyArray<string>
}

export const initial = (): State => ({
  change: undefined,
  queuedFor: undefined,
  open: new Map(),
  ended: [],
  histories: new Map(),
  unstable: new Set(),
  sent: new Map(),
  repairs: new Map(),
  taking: []
})

/** Names a recheck and the request it sends. The name of an apply is digits, so no two share one. */
export const nameOf = (id: string, apply: string): string => `${id}@recheck-${apply}`

export const countsOf = (state: State, recheck: OpenRecheck): Counts => {
  const { passed, failed } = state.histories.get(recheck.case) ?? completedOnce
  const { newPassed, newFailed, controlPassed, controlFailed, voids } = recheck
  return { earlierPassed: passed, earlierFailed: failed, newPassed, newFailed, controlPassed, controlFailed, voids }
}

// -----------------------------------------------------------------------------
// fold
// -----------------------------------------------------------------------------

/** Folds one event into the state and returns the same state. */
export const evolve = (state: State, event: DispatcherEvent | RecheckEvent): State => {
  switch (event._tag) {
    case "RunStarted":
      for (const recheck of state.open.values()) recheck.state = "queued"
      break
    case "ApplyStarted":
      state.taking = event.requests
      break
    case "ApplyFailed":
      state.taking = []
      break
    case "ApplyEnded":
      for (const request of state.taking) state.repairs.delete(request)
      state.taking = []
      if (event.applied._tag === "Changed") {
        state.change = { apply: event.apply, from: event.applied.from, to: event.applied.to }
      }
      break
    case "CaseRevised":
    case "CaseRetried":
    case "CaseForgotten":
      forget(state, event.case)
      break
    case "RechecksQueued":
      state.queuedFor = event.apply
      for (const one of event.cases) open(state, one.case, one.rev)
      break
    case "RecheckMoved":
    case "RecheckStarted":
    case "TryEnded":
    case "RecheckEnded":
      evolveRecheck(state, event)
  }
  return state
}

type OfRecheck = Exclude<RecheckEvent, { readonly _tag: "RechecksQueued" }>

const evolveRecheck = (state: State, event: OfRecheck): void => {
  const recheck = state.open.get(event.case)
  if (recheck === undefined) return
  switch (event._tag) {
    case "RecheckMoved":
      if (state.change !== undefined) join(recheck, state.change)
      return
    case "RecheckStarted":
      recheck.state = "running"
      return
    case "TryEnded":
      return addTry(recheck, event)
    case "RecheckEnded":
      return end(state, recheck, event.outcome)
  }
}

const open = (state: State, id: string, rev: number): void => {
  if (state.change === undefined) return
  const { apply, to, from } = state.change
  const none = { newPassed: 0, newFailed: 0, controlPassed: 0, controlFailed: 0, voids: 0 }
  const place = { case: id, rev, apply, version: to, previous: from, state: "queued" } as const
  state.open.set(id, { ...place, ...none, reason: null, repair: undefined })
}

const join = (recheck: OpenRecheck, change: Change): void => {
  recheck.apply = change.apply
  recheck.version = change.to
  recheck.previous = change.from
  recheck.voids = 0
}

const addTry = (recheck: OpenRecheck, event: Extract<RecheckEvent, { readonly _tag: "TryEnded" }>): void => {
  if (event.outcome !== "pass" && event.outcome !== "failure") {
    recheck.voids++
    recheck.reason = event.reason
    return
  }
  recheck.voids = 0
  recheck[`${event.arm}${event.outcome === "pass" ? "Passed" : "Failed"}`]++
  if (event.arm === "new" && event.outcome === "failure") recheck.repair = event.repair
}

const end = (state: State, recheck: OpenRecheck, outcome: RecheckOutcome): void => {
  const id = recheck.case
  state.open.delete(id)
  state.ended.push({ case: id, rev: recheck.rev, apply: recheck.apply, outcome })
  if (outcome._tag === "Void") return
  const { passed, failed } = state.histories.get(id) ?? completedOnce
  // What a broken version did says nothing about how often the case passes on one that is not.
  const isGood = outcome._tag === "Passed"
  state.histories.set(id, {
    passed: passed + recheck.controlPassed + (isGood ? recheck.newPassed : 0),
    failed: failed + recheck.controlFailed + (isGood ? recheck.newFailed : 0),
    regressed: isGood ? undefined : outcome.confirmed ? "confirmed" : "unconfirmed"
  })
  if (isGood && outcome.unstable) state.unstable.add(id)
  else if (isGood) state.unstable.delete(id)
  if (isGood || outcome.request === null) return
  state.sent.set(id, (state.sent.get(id) ?? 0) + 1)
  state.repairs.set(outcome.request, {
    id: outcome.request,
    case: id,
    rev: recheck.rev,
    payload: recheck.repair ?? null
  })
}

/** The case changed, or begins anew. What an apply has begun to take stays: a batch is called again exactly as it was. */
const forget = (state: State, id: string): void => {
  state.histories.delete(id)
  state.unstable.delete(id)
  state.sent.delete(id)
  for (const repair of state.repairs.values()) {
    if (repair.case === id && !state.taking.includes(repair.id)) state.repairs.delete(repair.id)
  }
}
