/** A small dispatcher over the pure decisions: it journals, folds, and can be started again from any part of its log. */
import { type DispatcherEvent, type RecheckEvent, RecheckRule } from "shiftboss"
import { begin, pick, queue, type Rules, settle, type Standing } from "../../../src/core/internal/recheck/decide.ts"
import { evolve, initial, type State } from "../../../src/core/internal/recheck/state.ts"

export type Entry = DispatcherEvent.DispatcherEvent
export type Outcome = Extract<RecheckEvent.RecheckEvent, { readonly _tag: "TryEnded" }>["outcome"]
export type Ended = Extract<RecheckEvent.RecheckEvent, { readonly _tag: "RecheckEnded" }>

export const fold = (log: ReadonlyArray<Entry>): State => log.reduce(evolve, initial())

export const started = (start: number): Entry => ({
  _tag: "RunStarted",
  at: 0,
  start,
  version: null,
  found: { open: 0, parked: 0, woken: 0, held: 0, failed: 0 },
  again: null
})

export const applyOf = (n: number, requests: ReadonlyArray<string> = []): ReadonlyArray<Entry> => [
  { _tag: "ApplyStarted", at: 0, apply: `00${n}`, version: `v${n - 1}`, requests },
  { _tag: "ApplyEnded", at: 0, apply: `00${n}`, applied: { _tag: "Changed", from: `v${n - 1}`, to: `v${n}` } }
]

export const rulesOf = (rules: Partial<Rules> = {}): Rules => ({
  rule: RecheckRule.controlled(),
  rechecks: 8,
  requestsPerCase: 2,
  seed: 1,
  ...rules
})

export class Loop {
  readonly log: Array<Entry>
  /** How long the log was after each append: a crash keeps all of one or nothing. */
  readonly appends: Array<number> = []
  state: State
  readonly rules: Rules
  readonly completed: Map<string, number>

  constructor(rules: Rules, completed: Map<string, number>, log: ReadonlyArray<Entry> = []) {
    this.rules = rules
    this.completed = completed
    this.log = [...log]
    this.state = fold(log)
  }

  get ended(): ReadonlyArray<Ended> {
    return this.log.filter((entry) => entry._tag === "RecheckEnded")
  }

  append(entries: ReadonlyArray<Entry>): void {
    for (const entry of entries) {
      this.log.push(entry)
      evolve(this.state, entry)
    }
    this.appends.push(this.log.length)
  }

  /** With what they bring to an end. */
  appendAll(entries: ReadonlyArray<RecheckEvent.RecheckEvent>): void {
    for (let next = entries; next.length > 0; next = settle(this.state, this.rules, 0, next)) this.append(next)
  }

  /** What a start does before all else. */
  recover(): void {
    this.appendAll(settle(this.state, this.rules, 0))
  }

  standing = (id: string): Standing | undefined => {
    const rev = this.completed.get(id)
    return rev === undefined ? undefined : { rev, completed: true, selected: true }
  }

  /** The end of an apply, with what it queues. */
  apply(n: number, requests: ReadonlyArray<string> = []): void {
    this.append(applyOf(n, requests))
    this.queue()
  }

  /** What a start does for an apply whose rechecks a crash kept from being queued; a dispatcher has none such. */
  queue(): void {
    const { change } = this.state
    if (
      change === undefined ||
      this.log.some((entry) => entry._tag === "RechecksQueued" && entry.apply === change.apply)
    ) {
      return
    }
    const completed = { ids: this.completed.keys(), revOf: (id: string) => this.completed.get(id) }
    this.append([queue(this.state, change.apply, completed, this.rules, 0)])
  }

  /** The case of the recheck that would run next. */
  peek(isFree: (id: string) => boolean = () => true): string | null {
    return pick(this.state, { isFree, standingOf: this.standing }, this.rules, 0).case
  }

  /** Begins the next try; its case and arm. */
  take(isFree?: (id: string) => boolean): { readonly case: string; readonly arm: RecheckRule.Arm } | undefined {
    for (let id = this.peek(isFree); id !== null; id = this.peek(isFree)) {
      const { events, arm } = begin(this.state, this.state.open.get(id)!, this.standing(id), this.rules, 0)
      this.appendAll(events)
      if (arm !== null) return { case: id, arm }
    }
    return undefined
  }

  /** Ends the try, and whatever that ends. */
  say(id: string, arm: RecheckRule.Arm, outcome: Outcome): void {
    const recheck = this.state.open.get(id)!
    this.appendAll([
      {
        _tag: "TryEnded",
        at: 0,
        case: id,
        apply: recheck.change.apply,
        arm,
        try: recheck.tries[arm].number,
        outcome,
        reason: outcome === "pass" || outcome === "failure" ? null : `${outcome}: nothing was said`,
        score: null,
        ...(outcome === "failure" && arm === "new" ? { repair: { feedback: "wrong" } } : {})
      }
    ])
  }

  /** Takes all that is queued to its end, one try after the other; how many that took. */
  drain(outcome: (id: string, arm: RecheckRule.Arm) => Outcome): number {
    let runs = 0
    for (let next = this.take(); next !== undefined; next = this.take()) {
      runs++
      this.say(next.case, next.arm, outcome(next.case, next.arm))
    }
    return runs
  }
}

export const cases = (count: number) => new Map(Array.from({ length: count }, (_, index) => [`c${index}`, 1]))

/** After its first apply, which rechecks all of so many cases. */
export const begun = (count = 4, rules = rulesOf({ rule: RecheckRule.allFail(2) })) => {
  const loop = new Loop(rules, cases(count))
  loop.append([started(1)])
  loop.apply(1)
  return loop
}

export const outcomes = (loop: Loop) => loop.ended.map(({ outcome }) => outcome._tag)
