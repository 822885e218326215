/**
 * What is looked at, counted: a time would say the same only on a quiet machine.
 */
import { assert, describe, it } from "@effect/vitest"
import type { DispatcherEvent } from "shiftboss"
import { explain, makeLive, next, note, select } from "../../../src/core/internal/dispatch/decide.ts"
import { evolve, initial, type Phase, type State } from "../../../src/core/internal/dispatch/state.ts"
import { snapshotOf } from "../../../src/core/internal/dispatch/view.ts"

const waiting = 1_000
const at = 1_700_000_000_000

/** Elements that were visited by going through a table. */
let visited = 0

class CountedSet<A> extends Set<A> {
  override *[Symbol.iterator](): SetIterator<A> {
    for (const item of super[Symbol.iterator]()) {
      visited++
      yield item
    }
  }
}

class CountedMap<K, V> extends Map<K, V> {
  override *[Symbol.iterator](): MapIterator<[K, V]> {
    for (const entry of super[Symbol.iterator]()) {
      visited++
      yield entry
    }
  }
  override *keys(): MapIterator<K> {
    for (const [key] of this) yield key
  }
  override *values(): MapIterator<V> {
    for (const [, value] of this) yield value
  }
}

const phases: ReadonlyArray<Exclude<Phase, "open">> = ["parked", "woken", "held", "completed", "difficult", "failed"]

const counted = (): State => ({
  ...initial(),
  cases: new CountedMap(),
  pending: new CountedMap(),
  phases: Object.fromEntries(phases.map((phase) => [phase, new CountedSet<string>()])) as unknown as State["phases"]
})

type Event = DispatcherEvent.DispatcherEvent

const parks = (id: string): Event => ({
  _tag: "CaseParked",
  at,
  case: id,
  rev: 1,
  name: "p",
  request: `${id}/1/p`,
  payload: null
})

const ids = (prefix: string) => Array.from({ length: waiting }, (_, index) => `${prefix}-${index}`)

/** A run beside which many cases are parked, held, done and not yet begun. */
const crowded = () => {
  const state = counted()
  const live = makeLive(4, 4, undefined)
  const held = ids("held").map((id): Event => ({ _tag: "CaseHeld", at, case: id, rev: 1, name: "h", until: at * 2 }))
  const done = ids("done").map((id): Event => ({ _tag: "CaseCompleted", at, case: id, rev: 1 }))
  for (const event of [...ids("parked").map(parks), ...held, ...done]) evolve(state, event)
  const cases = ["fresh", "parked", "held", "done"].flatMap(ids).map((id) => ({ id }))
  const byId = new CountedMap(cases.map((case_) => [case_.id, case_]))
  select(state, live, { cases, byId, next: 0, fresh: waiting, readAt: at })
  live.selected = true
  visited = 0
  return { state, live }
}

describe("with many cases that wait", () => {
  it("a snapshot goes through none of them", () => {
    const { state } = crowded()
    assert.strictEqual(snapshotOf(state, undefined).waiting.held, waiting)
    // The oldest of each class that waits, and no other.
    assert.isAtMost(visited, 3)
  })

  it("explain goes through none of them", () => {
    const { state, live } = crowded()
    for (const id of ["fresh-7", "parked-7", "held-7", "done-7"]) assert.isDefined(explain(state, live, id, at))
    assert.strictEqual(visited, 0)
  })

  it("the end of an apply goes through none but its own batch", () => {
    const { state, live } = crowded()
    const heldBefore = live.holds.size
    const events: ReadonlyArray<Event> = [
      { _tag: "ApplyStarted", at, apply: "001", version: "v0", requests: ["parked-7/1/p", "parked-8/1/p"] },
      { _tag: "ApplyEnded", at, apply: "001", applied: { _tag: "Skipped", reason: "nothing" } }
    ]
    for (const event of events) {
      evolve(state, event)
      note(state, live, event)
    }
    assert.strictEqual(state.phases.woken.size, 2)
    assert.strictEqual(live.holds.size, heldBefore)
    assert.strictEqual(visited, 0)
    next(state, live, at)
    assert.strictEqual(visited, 0)
  })
})
