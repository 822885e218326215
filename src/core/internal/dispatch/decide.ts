/**
 * What happens next. One function decides it, and the same one says why a case does not run.
 */
import type { Case } from "../../Case.ts"
import type { Explanation, WaitingFor } from "../../Dispatcher.ts"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import { Heap } from "../Heap.ts"
import { pick, type Rules, type Standing as RecheckStanding } from "../recheck/decide.ts"
import type { CaseRecord, State } from "./state.ts"

/** What is known of a run besides its log. */
export interface Live {
  readonly seats: number
  /** `undefined` when the workload cannot apply. */
  readonly applyAt: number | undefined
  /** `undefined` when the workload cannot recheck. */
  readonly rechecks: Rules | undefined
  selection: Selection
  /** The selection was read in this run. */
  selected: boolean
  /** Nothing has happened since the selection was read: reading it again would bring nothing. */
  surveyed: boolean
  selecting: boolean
  /** Cases on a seat, and which; those too whose seat was given on while their end is being written. */
  readonly running: Map<string, number>
  readonly freeSeats: Heap<number>
  /** How many have a seat while what has to be known before they begin is being written. */
  beginning: number
  /** Cases that lost their seat while a fiber of theirs ignores interruption. */
  readonly unwinding: Set<string>
  /** Woken cases in the order they came, some of them stale. */
  readonly woken: Queue
  /** Cases that left their seat: one that is new, by a new rev, was passed by meanwhile. Some are stale. */
  readonly passedBy: Queue
  /** Holds of selected cases by their end, some of them stale. */
  readonly holds: Heap<string>
  /** Cases of which a change is being written: they are not claimed before it counts, nor does the run end. */
  readonly changing: Set<string>
  /** An apply waits for the gate, or runs. */
  applying: boolean
  /** The run is coming to its end: nothing is claimed any more. */
  ending: boolean
  /** The budget is spent: nothing is claimed any more, and what runs goes on. */
  spent: boolean
}

export interface Selection {
  readonly cases: ReadonlyArray<Case>
  readonly byId: ReadonlyMap<string, Case>
  /** The first that was not yet looked at. */
  next: number
  /** How many wait to be claimed for the first time. */
  fresh: number
  /** Epoch milliseconds. */
  readonly readAt: number
}

export const makeLive = (seats: number, applyAt: number | undefined, rechecks: Rules | undefined): Live => {
  const freeSeats = new Heap<number>()
  for (let seat = 1; seat <= seats; seat++) freeSeats.push(seat, seat)
  return {
    seats,
    applyAt,
    rechecks,
    selection: { cases: [], byId: new Map(), next: 0, fresh: 0, readAt: 0 },
    selected: false,
    surveyed: false,
    selecting: false,
    running: new Map(),
    freeSeats,
    beginning: 0,
    unwinding: new Set(),
    woken: new Queue(),
    passedBy: new Queue(),
    changing: new Set(),
    holds: new Heap(),
    applying: false,
    ending: false,
    spent: false
  }
}

export const revOf = (case_: Case): number => case_.rev ?? 1

/** First in, first out, at constant cost. */
export class Queue {
  #items: Array<string> = []
  #head = 0
  push(item: string): void {
    this.#items.push(item)
  }
  peek(): string | undefined {
    return this.#items[this.#head]
  }
  drop(): void {
    this.#head++
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
  }
  clear(): void {
    this.#items = []
    this.#head = 0
  }
}

export type Lane = "woken" | "fresh"

export type Action =
  | { readonly _tag: "Claim"; readonly case: string; readonly lane: Lane | "recheck" }
  | { readonly _tag: "Apply" }
  | { readonly _tag: "Select" }
  /** Until something happens, or this time (epoch milliseconds). */
  | { readonly _tag: "Wait"; readonly until: number }
  /** Nothing can happen any more; `stuck` when only fibers that ignore interruption could change that. */
  | { readonly _tag: "End"; readonly stuck: boolean }

type Standing = { readonly lane: Lane } | Exclude<Explanation, { readonly _tag: "Running" }>

const waits = (for_: WaitingFor, because: string, until?: number): Standing =>
  until === undefined ? { _tag: "Waiting", for: for_, because } : { _tag: "Waiting", for: for_, because, until }

/** Whether the case could be claimed, leaving aside seats and applies; else why not. */
const standing = (record: CaseRecord | undefined, state: State, live: Live, id: string, now: number): Standing => {
  const selected = live.selection.byId.get(id)
  const current = selected !== undefined && record !== undefined && record.rev < revOf(selected) ? undefined : record
  switch (current?.phase) {
    case "completed":
      return { _tag: "Ended", as: "completed", because: `it completed${recheckOf(state, id)}` }
    case "difficult":
      return { _tag: "Ended", as: "difficult", because: current.reason ?? "" }
    case "failed":
      if (current.failedIn !== state.start) break
      return { _tag: "Ended", as: "failed", because: `${current.reason}\nIt is taken again at the next start.` }
    case "parked":
      return waits("apply", `its request ${current.request} waits for an apply`)
    case "held":
      if (current.until > now) return waits("hold", "it holds until a time", current.until)
  }
  if (selected === undefined) return waits("selection", "it is not in the selection")
  if (live.unwinding.has(id)) return waits("unwinding", "a fiber of its last run ignores interruption and goes on")
  return { lane: current?.phase === "woken" || current?.phase === "held" ? "woken" : "fresh" }
}

const recheckOf = (state: State, id: string): string => {
  const recheck = state.rechecks.open.get(id)
  return recheck === undefined ? "" : `; its recheck of apply ${recheck.change.apply} is ${recheck.state}`
}

const laneOf = (state: State, live: Live, id: string, now: number): Lane | undefined => {
  if (live.running.has(id) || live.changing.has(id)) return undefined
  const found = standing(state.cases.get(id), state, live, id, now)
  return "lane" in found ? found.lane : undefined
}

const nextWoken = (state: State, live: Live, now: number): string | undefined => {
  for (; live.holds.least <= now; live.holds.pop()) live.woken.push(live.holds.peek()!)
  for (let id = live.woken.peek(); id !== undefined; id = live.woken.peek()) {
    if (laneOf(state, live, id, now) === "woken") return id
    live.woken.drop()
    awaitHold(state, live, id) // the clock may have stepped back behind its end
  }
  return undefined
}

const nextFresh = (state: State, live: Live, now: number): string | undefined => {
  const { cases } = live.selection
  for (let id = live.passedBy.peek(); id !== undefined; id = live.passedBy.peek()) {
    if (laneOf(state, live, id, now) === "fresh") return id
    live.passedBy.drop()
  }
  for (; live.selection.next < cases.length; live.selection.next++) {
    const id = cases[live.selection.next]!.id
    if (laneOf(state, live, id, now) === "fresh") return id
  }
  return undefined
}

/** A recheck to run, or when the next one's hold is over. */
const nextRecheck = (state: State, live: Live, now: number) => {
  if (live.rechecks === undefined || state.rechecks.open.size === 0) return { case: null, until: Infinity }
  const isFree = (id: string) => !live.running.has(id) && !live.unwinding.has(id) && !live.changing.has(id)
  return pick(state.rechecks, { isFree, standingOf: (id) => standingOf(state, live, id) }, live.rechecks, now)
}

/** What a recheck of the case has to know of it; `undefined` of a case that is not known. */
export const standingOf = (state: State, live: Live, id: string): RecheckStanding | undefined => {
  const record = state.cases.get(id)
  if (record === undefined) return undefined
  const selected = live.selection.byId.get(id)
  return {
    rev: Math.max(record.rev, selected === undefined ? 0 : revOf(selected)),
    completed: record.phase === "completed",
    selected: selected !== undefined
  }
}

/** When the next hold of a case is over. */
const nextDue = (state: State, live: Live): number => {
  for (let id = live.holds.peek(); id !== undefined; id = live.holds.peek()) {
    const record = state.cases.get(id)
    const elsewhere = live.running.has(id) || live.changing.has(id)
    if (record?.phase === "held" && record.until === live.holds.least && !elsewhere) break
    live.holds.pop()
  }
  return live.holds.least
}

/** Sees to it that a held case is woken when its hold is over. */
export const awaitHold = (state: State, live: Live, id: string): void => {
  const record = state.cases.get(id)
  const { changing, running, selection, unwinding } = live
  const elsewhere = running.has(id) || unwinding.has(id) || changing.has(id) || !selection.byId.has(id)
  if (record?.phase === "held" && !elsewhere) live.holds.push(record.until, id)
}

/** Makes the selection the one to claim from. */
export const select = (state: State, live: Live, selection: Selection): void => {
  live.selection = selection
  requeue(state, live)
}

/** Queues all that is woken or held anew, in the order it came. */
const requeue = (state: State, live: Live): void => {
  live.woken.clear()
  live.holds.clear()
  for (const id of state.phases.woken) live.woken.push(id)
  for (const id of state.phases.held) awaitHold(state, live, id)
}

/** Sees to it that whoever an event made claimable is found. Whom an apply wakes is known to the apply, see `apply`. */
export const note = (state: State, live: Live, event: DispatcherEvent): void => {
  switch (event._tag) {
    case "RequestCancelled":
      return live.woken.push(event.case)
    case "CaseRetried":
    case "CaseForgotten":
      live.selection.next = 0
      if (live.selection.byId.has(event.case)) live.selection.fresh++
      return requeue(state, live)
  }
}

/**
 * The next action: woken cases, then rechecks, then new cases, and nothing is claimed while an apply waits or runs.
 *
 * Stale entries of queues are skipped on the way: asking twice gives the same answer.
 */
export const next = (state: State, live: Live, now: number): Action => {
  const idle = live.running.size === 0 && live.changing.size === 0 && !live.applying && !live.selecting
  if (live.ending || live.spent) return idle ? { _tag: "End", stuck: false } : { _tag: "Wait", until: Infinity }
  if (!live.selected) return live.selecting ? { _tag: "Wait", until: Infinity } : { _tag: "Select" }
  if (live.applying) return { _tag: "Wait", until: Infinity }
  // Whoever was given a seat begins before the apply, or not at all while it edits.
  if (isApplyDue(state, live)) return live.beginning > 0 ? { _tag: "Wait", until: Infinity } : { _tag: "Apply" }
  let due = Infinity
  if (live.freeSeats.size > 0) {
    const woken = nextWoken(state, live, now)
    if (woken !== undefined) return { _tag: "Claim", case: woken, lane: "woken" }
    const recheck = nextRecheck(state, live, now)
    if (recheck.case !== null) return { _tag: "Claim", case: recheck.case, lane: "recheck" }
    due = recheck.until
    const fresh = nextFresh(state, live, now)
    if (fresh !== undefined) return { _tag: "Claim", case: fresh, lane: "fresh" }
    if (!live.surveyed && !live.selecting && !isEnding(live)) return { _tag: "Select" }
  }
  // With no seat free the end of a hold changes nothing: the next seat that is given back does.
  if (live.freeSeats.size === 0) return { _tag: "Wait", until: Infinity }
  due = Math.min(due, nextDue(state, live))
  if (!idle) return { _tag: "Wait", until: due }
  if (live.applyAt !== undefined && state.pending.size > 0) return { _tag: "Apply" }
  if (due < Infinity) return { _tag: "Wait", until: due }
  return { _tag: "End", stuck: [...live.unwinding].some((id) => live.selection.byId.has(id) && !isOver(state, id)) }
}

/** The end of a case that has given its seat on is being written: the selection would have to be read again after it. */
const isEnding = ({ seats, running, freeSeats }: Live): boolean => running.size + freeSeats.size > seats

/** One that a crash or a stop cut off goes before all else: its edit may be half made. */
const isApplyDue = (state: State, live: Live): boolean =>
  live.applyAt !== undefined && (state.applying !== undefined || state.pending.size >= live.applyAt)

const isOver = (state: State, id: string): boolean => {
  if (state.rechecks.open.has(id)) return false
  const phase = state.cases.get(id)?.phase
  return phase === "completed" || phase === "difficult" || phase === "failed"
}

/** Why the case does not run, or on which seat it does; `undefined` when nothing is known of it. */
export const explain = (state: State, live: Live | undefined, id: string, now: number): Explanation | undefined => {
  const record = state.cases.get(id)
  const seat = live?.running.get(id)
  if (seat !== undefined) return { _tag: "Running", seat, step: null }
  if (record === undefined && live?.selection.byId.has(id) !== true) return undefined
  const found = standing(record, state, live ?? idleLive, id, now)
  if (!("lane" in found)) {
    return live === undefined && found._tag === "Waiting" && found.for === "selection" ? noRun : found
  }
  if (live === undefined) return noRun
  if (live.ending) return { _tag: "Waiting", for: "stop", because: "the run is coming to its end" }
  if (live.spent) return { _tag: "Waiting", for: "budget", because: "the turns of this run have spent its budget" }
  if (live.applying || isApplyDue(state, live)) {
    return { _tag: "Waiting", for: "apply", because: "nothing is claimed while an apply waits or runs" }
  }
  return { _tag: "Waiting", for: "seat", because: "cases before it take the seats" }
}

const noRun: Explanation = {
  _tag: "Waiting",
  for: "run",
  because: "no run is under way here; the next start takes it up"
}

const idleLive: Live = makeLive(0, undefined, undefined)
