/** A small dispatcher over the pure decisions: it journals, folds, and can be started again from any part of its log. */
import { type DispatcherEvent, RecheckRule } from "shiftboss"
import { next, queue, type Rules, type Standing, take } from "../../../src/core/internal/recheck/decide.ts"
import type { RecheckEvent } from "../../../src/core/internal/recheck/event.ts"
import { evolve, initial, type State } from "../../../src/core/internal/recheck/state.ts"

export type Entry = DispatcherEvent.DispatcherEvent | RecheckEvent
export type Outcome = Extract<RecheckEvent, { readonly _tag: "TryEnded" }>["outcome"]

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
  state: State
  readonly rules: Rules
  readonly completed: Map<string, number>

  constructor(rules: Rules, completed: Map<string, number>, log: ReadonlyArray<Entry> = []) {
    this.rules = rules
    this.completed = completed
    this.log = [...log]
    this.state = fold(log)
  }

  append(entries: ReadonlyArray<Entry>): void {
    for (const entry of entries) {
      this.log.push(entry)
      evolve(this.state, entry)
    }
  }

  standing = (id: string): Standing | undefined => {
    const rev = this.completed.get(id)
    return rev === undefined ? undefined : { rev, completed: true, selected: true, claimed: false }
  }

  queue(): void {
    this.append(queue(this.state, this.completed, this.rules, 0))
  }

  /** Takes the next queued recheck; its case. */
  take(): string | null {
    const taken = take(this.state, this.standing, 0)
    this.append(taken.events)
    return taken.case
  }

  /** Makes the next try of a recheck, or ends it; the arm that was tried. */
  step(id: string, outcome: (arm: RecheckRule.Arm) => Outcome): RecheckRule.Arm | undefined {
    const recheck = this.state.open.get(id)
    if (recheck === undefined) return undefined
    const found = next(this.state, recheck, this.rules, 0)
    if (found._tag === "RecheckEnded") {
      this.append([found])
      return undefined
    }
    const said = outcome(found.arm)
    this.append([
      {
        _tag: "TryEnded",
        at: 0,
        case: id,
        apply: recheck.apply,
        arm: found.arm,
        outcome: said,
        reason: said === "pass" || said === "failure" ? null : `${said}: nothing was said`,
        score: null,
        ...(said === "failure" ? { repair: { feedback: "wrong" } } : {})
      }
    ])
    return found.arm
  }

  /** Takes all that is queued to its end, one after the other; how many runs that took. */
  drain(outcome: (id: string, arm: RecheckRule.Arm) => Outcome): number {
    let runs = 0
    for (let id = this.take(); id !== null; id = this.take()) {
      const one = id
      while (this.step(one, (arm) => outcome(one, arm)) !== undefined) runs++
    }
    return runs
  }
}
