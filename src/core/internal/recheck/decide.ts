/**
 * What rechecks do next: pure decisions over their state, each answering with the events to journal.
 */
import { asksForRepair, type Judgement, type RecheckRule, verdict } from "../../RecheckRule.ts"
import { choose } from "./choose.ts"
import type { RecheckEvent, RecheckOutcome } from "./event.ts"
import { countsOf, nameOf, type OpenRecheck, type State } from "./state.ts"

export interface Rules {
  readonly rule: RecheckRule
  /** How many cases each apply rechecks at most. */
  readonly rechecks: number
  /** How many repairs are asked for each case at most; what regresses after that is only reported. */
  readonly requestsPerCase: number
  readonly seed: number
}

/** The rechecks of the last apply that changed the system; nothing when they were queued before. */
export const queue = (
  state: State,
  completed: ReadonlyMap<string, number>,
  rules: Rules,
  at: number
): ReadonlyArray<RecheckEvent> => {
  const { change } = state
  if (change === undefined || state.queuedFor === change.apply) return []
  const chosen = choose(
    {
      completed: completed.keys(),
      histories: state.histories,
      isFree: (id) => completed.has(id) && !state.open.has(id)
    },
    {
      rechecks: rules.rechecks,
      seed: rules.seed,
      apply: change.apply,
      confirmedOnly: rules.rule._tag === "Controlled"
    }
  )
  const cases = chosen.map((id) => ({ case: id, rev: completed.get(id) ?? 1 }))
  return [{ _tag: "RechecksQueued", at, apply: change.apply, cases }]
}

/** What became of a case since its recheck was queued. */
export interface Standing {
  readonly rev: number
  readonly completed: boolean
  readonly selected: boolean
  /** A seat has it. */
  readonly claimed: boolean
}

/** The oldest queued recheck whose case is not claimed, and what is journaled before it runs; `case` is null when there is none. */
export interface Taken {
  readonly case: string | null
  readonly events: ReadonlyArray<RecheckEvent>
}

export const take = (state: State, standingOf: (id: string) => Standing | undefined, at: number): Taken => {
  const events: Array<RecheckEvent> = []
  for (const recheck of state.open.values()) {
    if (recheck.state === "running") continue
    const standing = standingOf(recheck.case)
    if (standing?.claimed === true) continue
    const reason = whyVoid(recheck, standing)
    if (reason !== undefined) {
      events.push(ended(recheck, { _tag: "Void", reason }, at))
      continue
    }
    const moved = supersede(state, recheck, at)
    const apply = moved === undefined ? recheck.apply : moved.to
    if (moved !== undefined) events.push(moved)
    events.push({ _tag: "RecheckStarted", at, case: recheck.case, apply })
    return { case: recheck.case, events }
  }
  return { case: null, events }
}

/** The newer apply that a recheck joins while no try of it has counted: what it would judge is gone. */
const supersede = (state: State, recheck: OpenRecheck, at: number) => {
  const { change } = state
  const counted = recheck.newPassed + recheck.newFailed + recheck.controlPassed + recheck.controlFailed
  if (change === undefined || change.apply === recheck.apply || counted > 0) return undefined
  return { _tag: "RecheckMoved", at, case: recheck.case, apply: recheck.apply, to: change.apply } as const
}

/** The next try of a recheck, or its end. */
export const next = (
  state: State,
  recheck: OpenRecheck,
  rules: Rules,
  at: number
): Extract<Judgement, { readonly _tag: "Run" }> | Extract<RecheckEvent, { readonly _tag: "RecheckEnded" }> => {
  const judged = verdict(countsOf(state, recheck), rules.rule)
  switch (judged._tag) {
    case "Run":
      return judged
    case "Passed":
      return ended(recheck, judged, at)
    case "Void": {
      const said = judged.reason === "unjudged" ? recheck.reason : null
      return ended(recheck, { _tag: "Void", reason: said ?? judged.reason }, at)
    }
    case "Regressed": {
      const confirmed = rules.rule._tag === "Controlled" && rules.rule.controls
      const request = mayAsk(state, recheck, rules) ? nameOf(recheck.case, recheck.apply) : null
      return ended(recheck, { _tag: "Regressed", confirmed, request }, at)
    }
  }
}

/** A repair is asked for what can still be repaired: never of a version that is gone, and only so often. */
const mayAsk = (state: State, recheck: OpenRecheck, rules: Rules): boolean =>
  asksForRepair(rules.rule) &&
  state.change?.apply === recheck.apply &&
  (state.sent.get(recheck.case) ?? 0) < rules.requestsPerCase

const whyVoid = (recheck: OpenRecheck, standing: Standing | undefined): string | undefined => {
  if (standing === undefined || !standing.selected) return "the case is no longer selected"
  if (standing.rev !== recheck.rev) return `the case changed: rev ${recheck.rev} is now ${standing.rev}`
  return standing.completed ? undefined : "the case is no longer completed"
}

const ended = (recheck: OpenRecheck, outcome: RecheckOutcome, at: number) =>
  ({ _tag: "RecheckEnded", at, case: recheck.case, apply: recheck.apply, outcome }) as const
