/**
 * What rechecks do next: pure decisions over their state, each answering with the events to journal.
 */
import type { RecheckEvent, RecheckOutcome, VoidWhy } from "../../RecheckEvent.ts"
import { type Arm, asksForRepair, type Judgement, passRate, type RecheckRule, verdict } from "../../RecheckRule.ts"
import { type BatchFinding, judgeBatch } from "./batch.ts"
import { choose } from "./choose.ts"
import { countsOf, isCounted, nameOf, type OpenRecheck, type State } from "./state.ts"

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

/**
 * The oldest recheck whose case is free: those without a counted try first, since the first tries of an apply say
 * something together.
 */
export const pick = (state: State, isFree: (id: string) => boolean, rules: Rules, now: number): Picked => {
  let tried: string | undefined
  let until = Infinity
  for (const recheck of state.open.values()) {
    if (!isFree(recheck.case)) continue
    const found = nextOf(state, recheck, rules)
    if (found._tag === "Blocked") continue
    const end = found._tag === "Run" ? recheck.tries[found.arm].until : 0
    if (end > now) until = Math.min(until, end)
    else if (found._tag !== "Run" || !isCounted(recheck)) return { case: recheck.case }
    else tried ??= recheck.case
  }
  return tried === undefined ? { case: null, until } : { case: tried }
}

/** What has become of a case since its recheck was queued. */
export interface Standing {
  readonly rev: number
  readonly completed: boolean
  readonly selected: boolean
}

/** What is journaled before a recheck runs, and the arm of its try; `null` when there is nothing to run now. */
export interface Begun {
  readonly events: ReadonlyArray<RecheckEvent>
  readonly arm: Arm | null
}

export const begin = (
  state: State,
  recheck: OpenRecheck,
  standing: Standing | undefined,
  rules: Rules,
  at: number
): Begun => {
  const reason = whyVoid(recheck, standing)
  if (reason !== undefined) return { events: [ended(recheck, said("case-changed", reason), at)], arm: null }
  const { change } = state
  if (change !== undefined && change.apply !== recheck.change.apply && !isCounted(recheck)) {
    // What it would judge is gone. The batch it joins may have to wait, so it is picked anew.
    const { case: id } = recheck
    const moved = { _tag: "RecheckMoved", at, case: id, apply: recheck.change.apply, to: change.apply } as const
    return { events: [moved], arm: null }
  }
  const found = nextOf(state, recheck, rules)
  if (found._tag !== "Run") return { events: endsOf(state, recheck, found, rules, at), arm: null }
  const started = { _tag: "RecheckStarted", at, case: recheck.case, apply: recheck.change.apply } as const
  return { events: recheck.state === "queued" ? [started] : [], arm: found.arm }
}

/** What a try that ended brought to an end: its recheck, all of its apply, or nothing yet. */
export const settle = (state: State, id: string, rules: Rules, at: number): ReadonlyArray<RecheckEvent> => {
  const recheck = state.open.get(id)
  return recheck === undefined ? [] : endsOf(state, recheck, nextOf(state, recheck, rules), rules, at)
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
  const finding = findingOf(state, recheck, rules.rule)
  switch (finding._tag) {
    case "Check":
      return finding.cases.includes(recheck.case) ? checkWith(state, recheck, rules) : { _tag: "Blocked" }
    case "Usual": {
      const judgement = verdict(countsOf(state, recheck), rules.rule)
      return judgement._tag === "Run" ? judgement : { _tag: "Ends", judgement }
    }
    default:
      return { _tag: "AllEnd", finding }
  }
}

/** The check is a run of the previous version, unless it has said nothing too often. */
const checkWith = (state: State, recheck: OpenRecheck, rules: Rules): Next => {
  const judgement = verdict(countsOf(state, recheck), rules.rule)
  return judgement._tag === "Run" ? { _tag: "Run", arm: "control" } : { _tag: "Ends", judgement }
}

const findingOf = (state: State, recheck: OpenRecheck, rule: RecheckRule): BatchFinding => {
  const batch = state.batches.get(recheck.change.apply)
  if (batch === undefined || !hasControls(rule)) return { _tag: "Usual" }
  batch.finding ??= judgeBatch([...batch.members.values()], recheck.change.isRepair)
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
      const request = mayAsk(state, recheck, rules) ? nameOf(recheck.case, recheck.change.apply) : null
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

/** Every open recheck of the apply ends, with one repair for all of them at most. */
const allEnd = (
  state: State,
  apply: string,
  finding: Extract<Next, { readonly _tag: "AllEnd" }>["finding"],
  rules: Rules,
  at: number
): ReadonlyArray<RecheckEvent> => {
  const open = [...state.open.values()].filter(({ change }) => change.apply === apply)
  const isDown = finding._tag === "EnvironmentDown"
  const judged = { _tag: "BatchJudged", at, apply, finding: isDown ? "environment" : "edit" } as const
  if (isDown) {
    const outcome = said("environment", "most cases failed at once, and on the previous version as well")
    return [judged, ...open.map((recheck) => ended(recheck, outcome, at))]
  }
  const failed = open.filter(({ newFailed }) => newFailed > 0).toSorted(byReliability(state))
  const asks = finding.repair ? failed.find((recheck) => mayAsk(state, recheck, rules)) : undefined
  const outcomeIn = (recheck: OpenRecheck): RecheckOutcome => {
    if (recheck.newFailed === 0) return said("edit", "the edit is broken at large, as other cases show")
    const request = recheck === asks ? nameOf(recheck.case, apply) : null
    return { _tag: "Regressed", confirmed: true, request }
  }
  return [judged, ...open.map((recheck) => ended(recheck, outcomeIn(recheck), at))]
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
  return standing.completed ? undefined : "the case is no longer completed"
}

const said = (why: VoidWhy, reason: string): RecheckOutcome => ({ _tag: "Void", why, reason })

const ended = (recheck: OpenRecheck, outcome: RecheckOutcome, at: number): RecheckEnded => ({
  _tag: "RecheckEnded",
  at,
  case: recheck.case,
  apply: recheck.change.apply,
  outcome
})
