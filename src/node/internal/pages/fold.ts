/**
 * What the pages show: the fold of a dispatcher's events. No clock, no I/O, no Effect.
 *
 * Memory does not grow with what was done: of a request there is the text that is shown while it is pending, of an apply
 * its page while that can still change, of a patch what its page shows.
 */
import type { Dispatcher, DispatcherEvent, Improvements, RecheckEvent } from "shiftboss"
import * as Diff from "./diff.ts"
import { cut } from "./text.ts"

type Event = DispatcherEvent.DispatcherEvent
type Of<Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** So much of a text is kept, in UTF-16 units. */
const longestText = 4_000
const longestPatch = 200_000
/** So many requests of an apply, of the latest applies and of the latest errors. */
const mostRequests = 100
const mostRecent = 20

/** A text of which the beginning is kept. */
export interface Excerpt {
  readonly text: string
  /** How long all of it was. */
  readonly length: number
}

export interface RequestShown {
  readonly id: string
  readonly case: string
  readonly why: Improvements.Why
  readonly payload: Excerpt
}

export interface RecheckShown {
  readonly case: string
  state: "queued" | "running" | "ended" | "moved"
  /** The newer apply it joined. */
  movedTo: string | undefined
  outcome: RecheckEvent.RecheckOutcome | undefined
  readonly queuedAt: number
  endedAt: number | undefined
  readonly tries: Array<TryShown>
  /** Of the last failure on the new version. */
  repair: Excerpt
}

export interface TryShown {
  readonly at: number
  readonly arm: Of<"TryEnded">["arm"]
  readonly try: number
  readonly outcome: Of<"TryEnded">["outcome"]
  readonly score: number | null
  readonly reason: string | null
}

export type ApplyOutcome =
  | { readonly _tag: "Begun" }
  | { readonly _tag: "Skipped"; readonly reason: string }
  | { readonly _tag: "Failed"; readonly reason: string }
  | {
      readonly _tag: "Changed"
      readonly from: string
      readonly to: string
      readonly patch: Excerpt | undefined
      readonly changes: Diff.Changes | undefined
    }

/** An apply as the list of the latest shows it. */
export interface ApplyLine {
  readonly name: string
  readonly startedAt: number
  readonly requests: number
  outcome: ApplyOutcome["_tag"]
  /** `undefined`: there is no patch, or it is none that can be counted. */
  changes: Pick<Diff.Changes, "count" | "added" | "removed"> | undefined
  readonly rechecks: { open: number; passed: number; regressed: number; void: number }
}

/** An apply as its page shows it. */
export interface ApplyPage {
  readonly line: ApplyLine
  readonly version: string | null
  /** The first of them. */
  readonly requests: ReadonlyArray<RequestShown>
  outcome: ApplyOutcome
  endedAt: number | undefined
  finding: Of<"BatchJudged">["finding"] | undefined
  readonly rechecks: Map<string, RecheckShown>
  /** It says more than when it was last written. */
  isStale: boolean
}

export interface ErrorLine {
  readonly at: number
  readonly of: string
  readonly reason: string
}

export interface State {
  /** Of the last event folded. */
  cursor: number
  readonly pending: Map<string, RequestShown>
  /** The pending requests of each case that has any. */
  readonly ofCase: Map<string, ReadonlyArray<string>>
  /** The requests of the apply that was begun last. */
  taking: ReadonlyArray<string>
  /** Those that can still change, and those whose page is still to be written. */
  readonly pages: Map<string, ApplyPage>
  /** The last apply that changed the system: a recheck of an earlier one may join it. */
  newest: string | undefined
  /** The latest, oldest first. */
  readonly recent: Array<ApplyLine>
  readonly errors: Array<ErrorLine>
  run: { readonly start: number; readonly at: number; endedAt: number | undefined } | undefined
}

export const initial = (): State => ({
  cursor: 0,
  pending: new Map(),
  ofCase: new Map(),
  taking: [],
  pages: new Map(),
  newest: undefined,
  recent: [],
  errors: [],
  run: undefined
})

/** The page will say nothing else any more. */
export const isFinal = (state: State, { line, outcome }: ApplyPage): boolean =>
  outcome._tag !== "Begun" && line.rechecks.open === 0 && state.newest !== line.name

// -----------------------------------------------------------------------------
// fold
// -----------------------------------------------------------------------------

/** Folds the event at the cursor into the state, which it changes. */
export const evolve = (state: State, { cursor, event }: Pick<Dispatcher.Entry, "cursor" | "event">): void => {
  state.cursor = cursor
  switch (event._tag) {
    case "RunStarted":
      state.run = { start: event.start, at: event.at, endedAt: undefined }
      return queueAgain(state)
    case "RunEnded":
      if (state.run !== undefined) state.run.endedAt = event.at
      return
    case "CaseParked": {
      const { request: id, case: of, payload } = event
      return addRequest(state, { id, case: of, why: "improvement", payload: excerptOf(payload) })
    }
    case "CaseRevised":
    case "CaseRetried":
    case "CaseForgotten":
      for (const id of state.ofCase.get(event.case) ?? []) dropRequest(state, id)
      return
    case "RequestCancelled":
      return dropRequest(state, event.request)
    case "CaseFailed":
      return addError(state, { at: event.at, of: `case ${event.case}`, reason: event.reason })
    case "ApplyStarted":
      return beginApply(state, event)
    case "ApplyEnded":
      return endApply(state, event)
    case "ApplyFailed": {
      addError(state, { at: event.at, of: `apply ${event.apply}`, reason: event.reason })
      return change(state, event.apply, (page) => settle(page, event.at, { ...failed, reason: short(event.reason) }))
    }
    default:
      return evolveRechecks(state, event)
  }
}

const evolveRechecks = (state: State, event: Event): void => {
  switch (event._tag) {
    case "RechecksQueued":
      return change(state, event.apply, (page) => {
        for (const one of event.cases) enqueue(page, one.case, event.at)
      })
    case "RecheckStarted":
      return change(state, event.apply, ({ rechecks }) => {
        const recheck = rechecks.get(event.case)
        if (recheck !== undefined) recheck.state = "running"
      })
    case "RecheckMoved":
      return move(state, event)
    case "TryEnded":
      return addTry(state, event)
    case "BatchJudged":
      return change(state, event.apply, (page) => void (page.finding = event.finding))
    case "RecheckEnded":
      return endRecheck(state, event)
  }
}

const change = (state: State, apply: string, make: (page: ApplyPage) => void): void => {
  const page = state.pages.get(apply)
  if (page === undefined) return
  make(page)
  page.isStale = true
}

const keepLast = <A>(list: Array<A>, added: A): void => {
  list.push(added)
  if (list.length > mostRecent) list.shift()
}

const short = (text: string): string => cut(text, longestText)

const addError = (state: State, error: ErrorLine): void =>
  keepLast(state.errors, { ...error, of: short(error.of), reason: short(error.reason) })

// -----------------------------------------------------------------------------
// requests
// -----------------------------------------------------------------------------

const noText: Excerpt = { text: "", length: 0 }

const excerpt = (text: string, limit: number): Excerpt => ({ text: cut(text, limit), length: text.length })

/** Text as it is, anything else as JSON. */
const excerptOf = (payload: unknown): Excerpt => {
  if (typeof payload === "string") return excerpt(payload, longestText)
  try {
    return excerpt(JSON.stringify(payload, null, 2) ?? "", longestText)
  } catch {
    return excerpt("(too deep to be shown)", longestText)
  }
}

const addRequest = (state: State, request: RequestShown): void => {
  state.pending.set(request.id, request)
  state.ofCase.set(request.case, [...(state.ofCase.get(request.case) ?? []), request.id])
}

const dropRequest = (state: State, id: string): void => {
  const request = state.pending.get(id)
  if (request === undefined) return
  state.pending.delete(id)
  const left = state.ofCase.get(request.case)?.filter((other) => other !== id) ?? []
  if (left.length === 0) state.ofCase.delete(request.case)
  else state.ofCase.set(request.case, left)
}

// -----------------------------------------------------------------------------
// applies
// -----------------------------------------------------------------------------

const failed = { _tag: "Failed" } as const

const beginApply = (state: State, event: Of<"ApplyStarted">): void => {
  const { apply: name, at: startedAt, requests, version } = event
  const line: ApplyLine = {
    ...{ name, startedAt, requests: requests.length, outcome: "Begun", changes: undefined },
    rechecks: { open: 0, passed: 0, regressed: 0, void: 0 }
  }
  keepLast(state.recent, line)
  state.pages.set(name, {
    ...{ line, version, outcome: { _tag: "Begun" }, endedAt: undefined, finding: undefined },
    requests: requests.slice(0, mostRequests).flatMap((id) => state.pending.get(id) ?? []),
    rechecks: new Map(),
    isStale: true
  })
  state.taking = requests
}

const settle = (page: ApplyPage, at: number, outcome: ApplyOutcome): void => {
  page.outcome = outcome
  page.endedAt = at
  page.line.outcome = outcome._tag
  if (outcome._tag !== "Changed" || outcome.changes === undefined) return
  const { added, count, removed } = outcome.changes
  page.line.changes = { count, added, removed }
}

const endApply = (state: State, { apply, applied, at }: Of<"ApplyEnded">): void => {
  for (const id of state.taking) dropRequest(state, id)
  if (applied._tag === "Changed") state.newest = apply
  change(state, apply, (page) => settle(page, at, outcomeOf(applied)))
}

const outcomeOf = (applied: Improvements.Applied): ApplyOutcome => {
  if (applied._tag === "Skipped") return { _tag: "Skipped", reason: short(applied.reason) }
  const { from, patch, to } = applied
  const shown = patch === undefined || patch === "" ? undefined : excerpt(patch, longestPatch)
  return { _tag: "Changed", from, to, patch: shown, changes: patch === undefined ? undefined : Diff.read(patch) }
}

// -----------------------------------------------------------------------------
// rechecks
// -----------------------------------------------------------------------------

const enqueue = (page: ApplyPage, id: string, queuedAt: number): void => {
  page.rechecks.set(id, {
    ...{ case: id, state: "queued", movedTo: undefined, outcome: undefined, queuedAt, endedAt: undefined },
    ...{ tries: [], repair: noText }
  })
  page.line.rechecks.open++
}

const isOpen = ({ state }: RecheckShown): boolean => state === "queued" || state === "running"

/** What ran when a run was killed waits again. */
const queueAgain = (state: State): void => {
  for (const page of state.pages.values()) {
    for (const recheck of page.rechecks.values()) {
      if (recheck.state !== "running") continue
      recheck.state = "queued"
      page.isStale = true
    }
  }
}

type OfRecheck = Of<"RecheckMoved" | "TryEnded" | "RecheckEnded">

const changeOpen = (state: State, event: OfRecheck, make: (recheck: RecheckShown, page: ApplyPage) => void): void =>
  change(state, event.apply, (page) => {
    const recheck = page.rechecks.get(event.case)
    if (recheck !== undefined && isOpen(recheck)) make(recheck, page)
  })

const move = (state: State, event: Of<"RecheckMoved">): void =>
  changeOpen(state, event, (recheck, page) => {
    recheck.state = "moved"
    recheck.movedTo = event.to
    page.line.rechecks.open--
    change(state, event.to, (other) => enqueue(other, recheck.case, recheck.queuedAt))
  })

const addTry = (state: State, event: Of<"TryEnded">): void => {
  const { arm, at, outcome, reason, score, try: number } = event
  if (outcome === "error")
    addError(state, { at, of: `recheck of ${event.case} after apply ${event.apply}`, reason: reason ?? "" })
  changeOpen(state, event, (recheck) => {
    recheck.tries.push({ at, arm, try: number, outcome, score, reason: reason === null ? null : short(reason) })
    if (arm === "new" && outcome === "failure") recheck.repair = excerptOf(event.repair ?? null)
  })
}

const endRecheck = (state: State, event: Of<"RecheckEnded">): void =>
  changeOpen(state, event, (recheck, page) => {
    const { outcome } = event
    recheck.state = "ended"
    recheck.outcome = outcome
    recheck.endedAt = event.at
    page.line.rechecks.open--
    page.line.rechecks[outcome._tag === "Passed" ? "passed" : outcome._tag === "Regressed" ? "regressed" : "void"]++
    if (outcome._tag === "Regressed" && outcome.request !== null) {
      addRequest(state, { id: outcome.request, case: event.case, why: "repair", payload: recheck.repair })
    }
    recheck.repair = noText
  })
