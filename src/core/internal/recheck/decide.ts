/**
 * What rechecks do next: pure decisions over their state, each answering with the events to journal.
 */
import type { RecheckEvent, RecheckOutcome, VoidWhy } from "../../RecheckEvent.ts"
import { type Arm, asksForRepair, type Judgement, passRate, type RecheckRule, verdict } from "../../RecheckRule.ts"
import { type BatchFinding, isUnusual, judgeBatch } from "./batch.ts"
import { choose } from "./choose.ts"
import { countsOf, isCounted, type OpenRecheck, requestId, type State } from "./state.ts"

export interface Rules {
  readonly rule: RecheckRule
  /** How many cases each apply rechecks at most. */
  readonly rechecks: number
  /** How many repairs are asked for each case at most; what regresses after that is only reported. */
  readonly requestsPerCase: number
  readonly seed: number
}

type RecheckEnded = Extract<RecheckEvent, { readonly _tag: "RecheckEnded" }>

// -----------------------------------------------------------------------------
// queuing
// -----------------------------------------------------------------------------

/** The cases an apply may choose from. */
export interface Completed {
  readonly ids: Iterable<string>
  /** `undefined` of a case that cannot be run. */
  readonly revOf: (id: string) => number | undefined
}

/** The rechecks of an apply that has changed the system. */
export const queue = (state: State, apply: string, completed: Completed, rules: Rules, at: number): RecheckEvent => {
  const chosen = choose(
    {
      completed: completed.ids,
      histories: state.histories,
      isFree: (id) => completed.revOf(id) !== undefined && !state.open.has(id)
    },
    { rechecks: rules.rechecks, seed: rules.seed, apply, confirmedOnly: rules.rule._tag === "Controlled" }
  )
  const cases = chosen.map((id) => ({ case: id, rev: completed.revOf(id) ?? 1 }))
  return { _tag: "RechecksQueued", at, apply, cases }
}

// -----------------------------------------------------------------------------
// taking
// -----------------------------------------------------------------------------

/** A recheck to give a seat to; or when the next one is due (epoch milliseconds), `Infinity` when none is. */
export type Picked = { readonly case: string } | { readonly case: null; readonly until: number }

/** What has become of a case since its recheck was queued. */
export interface Standing {
  readonly rev: number
  readonly completed: boolean
  readonly selected: boolean
}

/** What is known of the cases of rechecks. */
export interface Cases {
  /** Not on a seat. */
  readonly isFree: (id: string) => boolean
  readonly standingOf: (id: string) => Standing | undefined
}

/**
 * The oldest recheck whose case is free: those without a counted try first, since the first tries of an apply say
 * something together.
 */
export const pick = (state: State, cases: Cases, rules: Rules, now: number): Picked => {
  let until = Infinity
  for (const ids of [state.untried, state.tried]) {
    for (const id of ids) {
      if (!cases.isFree(id)) continue
      const due = dueOf(state, state.open.get(id)!, cases.standingOf(id), rules)
      if (due <= now) return { case: id }
      until = Math.min(until, due)
    }
  }
  return { case: null, until }
}

/** One that ends, or moves to a newer apply, waits for nothing: neither for a hold nor for the check of its batch. */
const dueOf = (state: State, recheck: OpenRecheck, standing: Standing | undefined, rules: Rules): number => {
  if (whyVoid(recheck, standing) !== undefined || isLeftBehind(state, recheck)) return -Infinity
  const found = nextOf(state, recheck, rules)
  if (found._tag === "Blocked") return Infinity
  return found._tag === "Run" ? recheck.tries[found.arm].until : -Infinity
}

/** What it would judge is gone before a try of it has counted. */
const isLeftBehind = ({ change }: State, recheck: OpenRecheck): boolean =>
  change !== undefined && change.apply !== recheck.change.apply && !isCounted(recheck)

/** What is journaled before a recheck runs, and the arm of its try; `null` when there is nothing to run now. */
export interface Begun {
  readonly events: ReadonlyArray<RecheckEvent>
  readonly arm: Arm | null
}

/** Its end, when what is known of its case by now leaves nothing to judge. */
export const overtaken = (
  recheck: OpenRecheck,
  standing: Standing | undefined,
  at: number
): RecheckEvent | undefined => {
  const reason = whyVoid(recheck, standing)
  return reason === undefined ? undefined : ended(recheck, said("case-changed", reason), at)
}

export const begin = (
  state: State,
  recheck: OpenRecheck,
  standing: Standing | undefined,
  rules: Rules,
  at: number
): Begun => {
  const over = overtaken(recheck, standing, at)
  if (over !== undefined) return { events: [over], arm: null }
  // The batch it joins may have to wait, so it is picked anew.
  if (isLeftBehind(state, recheck)) return { events: [moved(state, recheck, at)], arm: null }
  const found = nextOf(state, recheck, rules)
  if (found._tag !== "Run") return { events: endsOf(state, recheck, found, rules, at), arm: null }
  const started = { _tag: "RecheckStarted", at, case: recheck.case, apply: recheck.change.apply } as const
  return { events: recheck.state === "queued" ? [started] : [], arm: found.arm }
}

/**
 * What the events brought to an end: a recheck, others of its apply, all of them, or nothing yet. At a start without events,
 * for a crash may have kept an end from being said. To be asked again after what it answers, until that is nothing: then a
 * verdict does not depend on when it is asked for.
 */
export const settle = (
  state: State,
  rules: Rules,
  at: number,
  events?: ReadonlyArray<RecheckEvent>
): ReadonlyArray<RecheckEvent> => {
  const ends: Array<RecheckEvent> = []
  const together = new Set<string>()
  for (const id of events === undefined ? state.open.keys() : touchedBy(state, events)) {
    const recheck = state.open.get(id)
    if (recheck === undefined) continue
    const next = nextOf(state, recheck, rules)
    if (next._tag === "AllEnd") {
      if (together.has(recheck.change.apply)) continue
      together.add(recheck.change.apply)
    }
    ends.push(...endsOf(state, recheck, next, rules, at))
  }
  return ends
}

/** The rechecks the events are of; and all that have waited for a check of such a batch. */
const touchedBy = (state: State, events: ReadonlyArray<RecheckEvent>): ReadonlySet<string> => {
  const touched = new Set<string>()
  for (const event of events) {
    if ("case" in event) touched.add(event.case)
    const batch = state.batches.get(event.apply)
    if (batch?.isBlocked !== true) continue
    batch.isBlocked = false
    for (const id of batch.members.keys()) touched.add(id)
  }
  return touched
}

// -----------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------

type Next =
  | { readonly _tag: "Run"; readonly arm: Arm }
  /** The environment is checked first, with other cases. */
  | { readonly _tag: "Blocked" }
  | { readonly _tag: "Ends"; readonly judgement: Exclude<Judgement, { readonly _tag: "Run" }> }
  | {
      readonly _tag: "AllEnd"
      readonly finding: Extract<BatchFinding, { readonly _tag: "EnvironmentDown" | "EditBroken" }>
    }

const nextOf = (state: State, recheck: OpenRecheck, rules: Rules): Next => {
  const judgement = verdict(countsOf(state, recheck), rules.rule)
  // A pass on the new version says what it says, whatever becomes of the others.
  if (judgement._tag === "Passed") return { _tag: "Ends", judgement }
  const finding = findingOf(state, recheck, rules.rule)
  switch (finding._tag) {
    case "Check":
      if (!finding.cases.includes(recheck.case)) return { _tag: "Blocked" }
      // The check is a run of the previous version, unless it has said nothing too often.
      return judgement._tag === "Run" ? { _tag: "Run", arm: "control" } : { _tag: "Ends", judgement }
    case "Usual":
      return judgement._tag === "Run" ? judgement : { _tag: "Ends", judgement }
    default:
      return { _tag: "AllEnd", finding }
  }
}

const findingOf = (state: State, recheck: OpenRecheck, rule: RecheckRule): BatchFinding => {
  const batch = state.batches.get(recheck.change.apply)
  if (batch === undefined || !hasControls(rule) || !isUnusual(batch.failures, batch.members.size)) {
    return { _tag: "Usual" }
  }
  batch.finding ??= judgeBatch([...batch.members.values()], recheck.change.isRepair)
  batch.isBlocked ||= batch.finding._tag === "Check"
  return batch.finding
}

const hasControls = (rule: RecheckRule): boolean => rule._tag === "Controlled" && rule.controls

const endsOf = (
  state: State,
  recheck: OpenRecheck,
  next: Next,
  rules: Rules,
  at: number
): ReadonlyArray<RecheckEvent> => {
  switch (next._tag) {
    case "Ends":
      return withRequeued(state, [ended(recheck, outcomeOf(state, recheck, next.judgement, rules), at)], at)
    case "AllEnd":
      return withRequeued(state, allEnd(state, recheck.change.apply, next.finding, rules, at), at)
    default:
      return []
  }
}

/**
 * What regressed on a version that is gone is rechecked on the one there is: a repair of the former would come too late,
 * and without one nobody would ask for it.
 */
const withRequeued = (state: State, events: ReadonlyArray<RecheckEvent>, at: number): ReadonlyArray<RecheckEvent> => {
  const { change } = state
  if (change === undefined) return events
  const cases = events.flatMap((event) => {
    const isLate = event._tag === "RecheckEnded" && event.outcome._tag === "Regressed" && event.apply !== change.apply
    return isLate ? [{ case: event.case, rev: state.open.get(event.case)?.rev ?? 1 }] : []
  })
  return cases.length === 0 ? events : [...events, { _tag: "RechecksQueued", at, apply: change.apply, cases }]
}

const outcomeOf = (
  state: State,
  recheck: OpenRecheck,
  judgement: Exclude<Judgement, { readonly _tag: "Run" }>,
  rules: Rules
): RecheckOutcome => {
  switch (judgement._tag) {
    case "Passed":
      return judgement
    case "Regressed": {
      const request = mayAsk(state, recheck, rules) ? requestId(recheck.case, recheck.change.apply) : null
      return { _tag: "Regressed", confirmed: hasControls(rules.rule), request }
    }
    case "Void":
      return voided(recheck, judgement.reason)
  }
}

const voided = (recheck: OpenRecheck, why: Extract<Judgement, { readonly _tag: "Void" }>["reason"]): RecheckOutcome => {
  const { controlFailed, controlPassed, newFailed } = recheck
  switch (why) {
    case "baseline":
      return said(why, `the previous version failed ${controlFailed} of ${controlFailed + controlPassed} runs as well`)
    case "inconclusive":
      return said(why, `${newFailed + controlFailed + controlPassed} runs do not say whether it is the edit`)
    case "unjudged":
      return said(recheck.broke ? "broke" : why, recheck.reason ?? "")
  }
}

/** Every open recheck of the apply that has not passed ends, or joins a newer one, with one repair for all of them at most. */
const allEnd = (
  state: State,
  apply: string,
  finding: Extract<Next, { readonly _tag: "AllEnd" }>["finding"],
  rules: Rules,
  at: number
): ReadonlyArray<RecheckEvent> => {
  const members = [...state.open.values()].filter(({ change, newPassed }) => change.apply === apply && newPassed === 0)
  const open = members.filter((recheck) => !isLeftBehind(state, recheck))
  const isDown = finding._tag === "EnvironmentDown"
  const judged = { _tag: "BatchJudged", at, apply, finding: isDown ? "environment" : "edit" } as const
  const first = [judged, ...members.filter((one) => isLeftBehind(state, one)).map((one) => moved(state, one, at))]
  if (isDown) {
    const outcome = said("environment", "most cases failed at once, and on the previous version as well")
    return [...first, ...open.map((recheck) => ended(recheck, outcome, at))]
  }
  const failed = open.filter(({ newFailed }) => newFailed > 0).toSorted(byReliability(state))
  const asks = finding.repair ? failed.find((recheck) => mayAsk(state, recheck, rules)) : undefined
  const outcomeIn = (recheck: OpenRecheck): RecheckOutcome => {
    if (recheck.newFailed === 0) return said("edit", "the edit is broken at large, as other cases show")
    const request = recheck === asks ? requestId(recheck.case, apply) : null
    return { _tag: "Regressed", confirmed: true, request }
  }
  return [...first, ...open.map((recheck) => ended(recheck, outcomeIn(recheck), at))]
}

const byReliability = (state: State) => (one: OpenRecheck, other: OpenRecheck) => {
  const rate = (recheck: OpenRecheck) => {
    const { earlierPassed, earlierFailed } = countsOf(state, recheck)
    return passRate(earlierPassed, earlierFailed)
  }
  return rate(other) - rate(one) || (one.case < other.case ? -1 : 1)
}

/** A repair is asked for what can still be repaired: never of a version that is gone, and only so often. */
const mayAsk = (state: State, recheck: OpenRecheck, rules: Rules): boolean =>
  asksForRepair(rules.rule) &&
  state.change?.apply === recheck.change.apply &&
  (state.sent.get(recheck.case) ?? 0) < rules.requestsPerCase

const whyVoid = (recheck: OpenRecheck, standing: Standing | undefined): string | undefined => {
  if (standing === undefined || !standing.selected) return "the case is no longer selected"
  if (standing.rev !== recheck.rev) return `the case changed: rev ${recheck.rev} is now ${standing.rev}`
  if (!standing.completed) return "the case is no longer completed"
  return recheck.isOfThePast ? "the case was begun anew" : undefined
}

const said = (why: VoidWhy, reason: string): RecheckOutcome => ({ _tag: "Void", why, reason })

const moved = (state: State, { case: id, change }: OpenRecheck, at: number): RecheckEvent => ({
  _tag: "RecheckMoved",
  at,
  case: id,
  apply: change.apply,
  to: state.change?.apply ?? change.apply
})

const ended = (recheck: OpenRecheck, outcome: RecheckOutcome, at: number): RecheckEnded => ({
  _tag: "RecheckEnded",
  at,
  case: recheck.case,
  apply: recheck.change.apply,
  outcome
})
