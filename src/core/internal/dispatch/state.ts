/**
 * What a dispatcher knows: the fold of its events. No clock, no I/O, no Effect.
 *
 * A fold owns its state: `evolve` changes the state it is given, because a copy of a million cases an event would cost
 * more than all else. Nobody else writes to it.
 */
import type { DispatcherEvent, RunEnd } from "../../DispatcherEvent.ts"
import { type Applied, type Request, skipped } from "../../Improvements.ts"
import type { Json } from "../../Storage.ts"
import * as rechecks from "../recheck/state.ts"
import * as usage from "./usage.ts"

/** Where a case is. A case nothing is known of is `open`. */
export type Phase = "open" | "parked" | "woken" | "held" | "completed" | "difficult" | "failed"

/** What is known of a case. What is not set takes no memory: there may be a million of these. */
export interface CaseRecord {
  readonly rev: number
  /** Counted up by `retry` and `forget`, so that ids of an earlier round are never met again. */
  readonly round: number
  phase: Phase
  /** When it came into the phase. */
  since: number
  parks: number
  /** The pending request, while parked. */
  request: string | undefined
  /** While held. */
  until: number
  /** The run it failed in: it is not taken again in that one. */
  failedIn: number
  reason: string | undefined
  value: Json | undefined
  /** Results of steps; `undefined` is one that had none. */
  steps: Map<string, Json | undefined> | undefined
  /** What applies made of requests, by the park's name: a wake is this fact, parked or not. */
  wakes: Map<string, Applied> | undefined
  holds: Map<string, number> | undefined
  /** The last attempt of each turn that is told of, by the turn's id. */
  told: Map<string, number> | undefined
}

export interface State {
  /** Events folded: the cursor of the last. */
  cursor: number
  start: number
  readonly cases: Map<string, CaseRecord>
  /** The ids in each phase but `open`, those that came first first. */
  readonly phases: { readonly [phase in Exclude<Phase, "open">]: Set<string> }
  readonly pending: Map<string, Request>
  /** Applies begun: the next one's name is one more. */
  applies: number
  /** Begun, and neither ended nor failed. */
  applying: Applying | undefined
  version: string | null
  end: RunEnd | null
  readonly rechecks: rechecks.State
  readonly usage: usage.State
}

export interface Applying {
  readonly apply: string
  readonly version: string | null
  readonly requests: ReadonlyArray<string>
}

export const initial = (): State => ({
  cursor: 0,
  start: 0,
  cases: new Map(),
  phases: {
    parked: new Set(),
    woken: new Set(),
    held: new Set(),
    completed: new Set(),
    difficult: new Set(),
    failed: new Set()
  },
  pending: new Map(),
  applies: 0,
  applying: undefined,
  version: null,
  end: null,
  rechecks: rechecks.initial(),
  usage: usage.initial()
})

// -----------------------------------------------------------------------------
// names
// -----------------------------------------------------------------------------

/** Case ids are any strings, so the separator is escaped: two cases never share a key. */
const escaped = (id: string) => (/[%/]/.test(id) ? id.replaceAll("%", "%25").replaceAll("/", "%2F") : id)

/** Names the work on a case for ever. */
export const keyOf = (id: string, rev: number, round: number): string =>
  round === 1 ? `${escaped(id)}/${rev}` : `${escaped(id)}/${rev}.${round}`

export const requestId = (id: string, rev: number, round: number, name: string): string =>
  `${keyOf(id, rev, round)}/${name}`

/** 001, 002, … 1000. */
export const applyName = (n: number): string => String(n).padStart(3, "0")

// -----------------------------------------------------------------------------
// fold
// -----------------------------------------------------------------------------

const fresh = (rev: number, round: number): CaseRecord => ({
  rev,
  round,
  phase: "open",
  since: 0,
  parks: 0,
  request: undefined,
  until: 0,
  failedIn: 0,
  reason: undefined,
  value: undefined,
  steps: undefined,
  wakes: undefined,
  holds: undefined,
  told: undefined
})

/**
 * All that is kept of a case of the first rev and round that completed with nothing, shared by all of them: there may
 * be a million. Nothing changes a record that completed; a new rev or round has a record of its own.
 */
const completedRecord: CaseRecord = Object.freeze({ ...fresh(1, 1), phase: "completed" })

/** The record of the case, made when there is none. A log always names a case's revs in order. */
const recordOf = (state: State, id: string, rev: number): CaseRecord => {
  const known = state.cases.get(id)
  if (known !== undefined && known.rev >= rev) return known
  const record = fresh(rev, 1)
  replaceRecord(state, id, record)
  return record
}

const replaceRecord = (state: State, id: string, record: CaseRecord): void => {
  const known = state.cases.get(id)
  if (known !== undefined) {
    if (known.phase !== "open") state.phases[known.phase].delete(id)
    dropRequest(state, known)
  }
  state.cases.set(id, record)
}

/** A request that an apply has begun to take stays with it: a batch is called again exactly as it was. */
const dropRequest = (state: State, record: CaseRecord): void => {
  if (record.request !== undefined && !isBeingTaken(state, record.request)) state.pending.delete(record.request)
}

export const isBeingTaken = (state: State, request: string): boolean =>
  state.applying?.requests.includes(request) === true

const enter = (state: State, id: string, record: CaseRecord, phase: Phase, at: number): void => {
  if (record.phase !== "open") state.phases[record.phase].delete(id)
  if (phase !== "open") state.phases[phase].add(id)
  record.phase = phase
  record.since = at
}

/** What only a case that goes on needs is dropped when it ends: memory must not grow with what was done. */
const ended = (state: State, id: string, record: CaseRecord, phase: "completed" | "difficult", at: number): void => {
  enter(state, id, record, phase, at)
  record.steps = undefined
  record.wakes = undefined
  record.holds = undefined
  record.told = undefined
  record.reason = undefined
}

const wake = (state: State, request: Request, applied: Applied, at: number): void => {
  state.pending.delete(request.id)
  const record = state.cases.get(request.case)
  if (record?.request !== request.id) return // its case was forgotten or revised meanwhile
  record.request = undefined
  record.wakes ??= new Map()
  record.wakes.set(request.name, applied)
  if (record.phase === "parked") enter(state, request.case, record, "woken", at)
}

type TurnSpent = Extract<DispatcherEvent, { readonly _tag: "TurnSpent" }>
type OfCase = Exclude<Extract<DispatcherEvent, { readonly case: string; readonly rev: number }>, TurnSpent>

const evolveCase = (state: State, event: OfCase): void => {
  const id = event.case
  const record = recordOf(state, id, event.rev)
  switch (event._tag) {
    case "StepEnded":
      record.steps ??= new Map()
      record.steps.set(event.step, event.result)
      return
    case "CaseParked":
      record.parks++
      record.request = event.request
      state.pending.set(event.request, {
        id: event.request,
        case: id,
        rev: event.rev,
        name: event.name,
        why: "improvement",
        payload: event.payload
      })
      return enter(state, id, record, "parked", event.at)
    case "CaseHeld":
      record.holds ??= new Map()
      record.holds.set(event.name, event.until)
      record.until = event.until
      return enter(state, id, record, "held", event.at)
    case "CaseCompleted":
      ended(state, id, record, "completed", event.at)
      if (event.value !== undefined) record.value = event.value
      else if (record.rev === 1 && record.round === 1) state.cases.set(id, completedRecord)
      return
    case "CaseDifficult":
      ended(state, id, record, "difficult", event.at)
      record.reason = event.reason
      return
    case "CaseFailed":
      record.failedIn = state.start
      record.reason = event.reason
      return enter(state, id, record, "failed", event.at)
    case "CaseResumed":
      record.reason = undefined
      return enter(state, id, record, "open", event.at)
    case "CaseRevised":
      return dropRepairs(state, id) // `recordOf` began the new rev
    case "CaseRetried":
    case "CaseForgotten":
      dropRepairs(state, id)
      return replaceRecord(state, id, fresh(record.rev, record.round + 1))
    case "RequestCancelled": {
      const request = state.pending.get(event.request)
      if (request !== undefined) wake(state, request, skipped("the request was cancelled"), event.at)
      return
    }
  }
}

/** Folds one event into the state and returns the same state. */
export const evolve = (state: State, event: DispatcherEvent): State => {
  state.cursor++
  evolveOwn(state, event)
  rechecks.evolve(state.rechecks, event)
  return state
}

const evolveOwn = (state: State, event: DispatcherEvent): void => {
  switch (event._tag) {
    case "RunStarted":
      state.start = event.start
      state.version = event.version
      state.end = null
      break
    case "RunEnded":
      state.end = event.end
      break
    case "ApplyStarted":
      state.applies++
      state.applying = event
      break
    case "ApplyEnded": {
      const requests = state.applying?.requests ?? []
      state.applying = undefined
      if (event.applied._tag === "Changed") state.version = event.applied.to
      for (const id of requests) {
        const request = state.pending.get(id)
        if (request !== undefined) wake(state, request, event.applied, event.at)
      }
      break
    }
    case "ApplyFailed": {
      const requests = state.applying?.requests ?? []
      state.applying = undefined
      for (const id of requests) dropOrphan(state, id)
      break
    }
    case "RecheckEnded": {
      const request = rechecks.requestOf(state.rechecks, event)
      if (request !== undefined) state.pending.set(request.id, request)
      break
    }
    case "TurnSpent": {
      usage.add(state.usage, event)
      if (event.recheck !== null) break
      const record = recordOf(state, event.case, event.rev)
      record.told ??= new Map()
      record.told.set(event.turnId, event.attempt)
      break
    }
    case "RechecksQueued":
    case "RecheckMoved":
    case "RecheckStarted":
    case "RecheckStepEnded":
    case "RecheckHeld":
    case "TryEnded":
    case "BatchJudged":
      break // of no case: see `rechecks.evolve`
    default:
      evolveCase(state, event)
  }
}

/** A request that was kept only for the sake of its batch goes when the batch is given up. */
const dropOrphan = (state: State, id: string): void => {
  const request = state.pending.get(id)
  if (request === undefined) return
  const isWanted =
    request.why === "repair" ? state.rechecks.repairs.has(id) : state.cases.get(request.case)?.request === id
  if (!isWanted) state.pending.delete(id)
}

/** What its rechecks asked for is of the case as it was. */
const dropRepairs = (state: State, id: string): void => {
  for (const [request, of] of state.rechecks.repairs) {
    if (of === id && !isBeingTaken(state, request)) state.pending.delete(request)
  }
}
