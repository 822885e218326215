import { assert, describe, it } from "@effect/vitest"
import { type DispatcherEvent, Improvements } from "shiftboss"
import {
  applyName,
  evolve,
  initial,
  isBeingTaken,
  keyOf,
  requestId,
  type State
} from "../../../src/core/internal/dispatch/state.ts"

type Event = DispatcherEvent.DispatcherEvent

const at = 7
const of = (id: string, rev = 1) => ({ at, case: id, rev })
const parks = (id: string, { rev = 1, name = "p" }: { readonly rev?: number; readonly name?: string } = {}): Event => ({
  ...{ _tag: "CaseParked", name, request: `${id}/${rev}/${name}`, payload: `for ${id}` },
  ...of(id, rev)
})
const step = (id: string, name: string, result?: number): Event => ({
  ...{ _tag: "StepEnded", step: name },
  ...of(id),
  ...(result === undefined ? {} : { result })
})
const begins = (...requests: ReadonlyArray<string>): Event => ({
  ...{ _tag: "ApplyStarted", at, apply: "001", version: "v0", requests }
})
const changes = Improvements.changed("v0", "v1")
const ends: Event = { _tag: "ApplyEnded", at: at + 1, apply: "001", applied: changes }
const fails: Event = { _tag: "ApplyFailed", at, apply: "001", reason: "no" }
const forgets = (id: string): Event => ({ _tag: "CaseForgotten", ...of(id) })

const after = (...events: ReadonlyArray<Event>): State => events.reduce(evolve, initial())
const phaseOf = (state: State, id: string) => state.cases.get(id)?.phase
const idsIn = ({ phases }: State) =>
  Object.fromEntries(Object.entries(phases).flatMap(([phase, ids]) => (ids.size === 0 ? [] : [[phase, [...ids]]])))

describe("names", () => {
  it("are of the case, its rev and its round, and no two the same", () => {
    assert.deepStrictEqual(
      [keyOf("a", 1, 1), keyOf("a", 2, 1), keyOf("a", 2, 3), keyOf("a/1", 1, 1)],
      [...["a/1", "a/2", "a/2.3", "a%2F1/1"]]
    )
    assert.strictEqual(requestId("a", 2, 3, "p"), "a/2.3/p")
    assert.deepStrictEqual([1, 42, 1000].map(applyName), ["001", "042", "1000"])
  })
})

describe("a case", () => {
  it("keeps the results of its steps until it has ended, and then nothing that only going on needs", () => {
    const state = after(step("a", "s", 1), step("a", "t"), parks("a"), begins("a/1/p"), ends)
    const record = state.cases.get("a")
    assert.deepStrictEqual(
      [...(record?.steps ?? [])],
      [
        ["s", 1],
        ["t", undefined]
      ]
    )
    assert.deepStrictEqual([...(record?.wakes ?? [])], [["p", changes]])
    assert.deepStrictEqual([record?.phase, record?.since, record?.parks], ["woken", at + 1, 1])
    evolve(state, { _tag: "CaseHeld", ...of("a"), name: "h", until: 99 })
    assert.deepStrictEqual([record?.phase, record?.until, record?.holds?.get("h")], ["held", 99, 99])
    evolve(state, { _tag: "CaseDifficult", ...of("a"), reason: "hard" })
    assert.deepInclude(state.cases.get("a"), {
      ...{ phase: "difficult", reason: "hard", steps: undefined, wakes: undefined, holds: undefined, told: undefined }
    })
    assert.deepStrictEqual(idsIn(state), { difficult: ["a"] })
  })

  it("that completed with a value keeps that, and one with none shares its record", () => {
    const state = after(
      ...["a", "b"].map((id): Event => ({ _tag: "CaseCompleted", ...of(id) })),
      { _tag: "CaseCompleted", ...of("c"), value: null },
      { _tag: "CaseCompleted", ...of("d", 2) }
    )
    assert.strictEqual(state.cases.get("a"), state.cases.get("b"))
    assert.deepStrictEqual(state.cases.get("c")?.value, null)
    assert.deepInclude(state.cases.get("d"), { rev: 2, phase: "completed", since: at })
    // One of a later round has to be told from those of the first.
    const again = after(forgets("e"), { _tag: "CaseCompleted", ...of("e") })
    assert.deepInclude(again.cases.get("e"), { round: 2, phase: "completed" })
    assert.deepStrictEqual(idsIn(state), { completed: ["a", "b", "c", "d"] })
  })

  it("that failed says in which run, and is open again when it is resumed", () => {
    const state = after({ ...runStarted(3) }, step("a", "s", 1), { _tag: "CaseFailed", ...of("a"), reason: "no" })
    assert.deepInclude(state.cases.get("a"), { phase: "failed", failedIn: 3, reason: "no" })
    evolve(state, { _tag: "CaseResumed", ...of("a"), reason: "no" })
    assert.deepInclude(state.cases.get("a"), { phase: "open", reason: undefined })
    assert.strictEqual(state.cases.get("a")?.steps?.get("s"), 1)
    assert.deepStrictEqual(idsIn(state), {})
  })

  it("of a new rev begins anew, in its first round, without the request of the old one", () => {
    const state = after(step("a", "s", 1), parks("a"), { _tag: "CaseRevised", ...of("a", 2), from: 1 })
    assert.deepInclude(state.cases.get("a"), { rev: 2, round: 1, phase: "open", steps: undefined, request: undefined })
    assert.deepStrictEqual([state.pending.size, idsIn(state)], [0, {}])
    evolve(state, parks("a", { rev: 2 }))
    assert.deepStrictEqual([...state.pending.keys()], ["a/2/p"])
  })

  it("that is retried or forgotten has a round of its own", () => {
    for (const _tag of ["CaseRetried", "CaseForgotten"] as const) {
      const state = after(step("a", "s", 1), parks("a"), { _tag, ...of("a") }, { _tag, ...of("a") })
      assert.deepInclude(state.cases.get("a"), { rev: 1, round: 3, phase: "open", steps: undefined, parks: 0 })
      assert.deepStrictEqual([state.pending.size, idsIn(state)], [0, {}])
    }
  })
})

const runStarted = (start: number): Event => ({
  ...{ _tag: "RunStarted", at, start, version: `v${start}`, again: null },
  found: { open: 0, parked: 0, woken: 0, held: 0, failed: 0 }
})

describe("a request", () => {
  it("is pending until an apply took it, and tells what it is of", () => {
    const state = after(parks("a"), parks("b", { name: "q" }))
    assert.deepStrictEqual(state.pending.get("b/1/q"), {
      ...{ id: "b/1/q", case: "b", rev: 1, name: "q", why: "improvement", payload: "for b" }
    })
    evolve(state, begins("a/1/p"))
    assert.deepStrictEqual([isBeingTaken(state, "a/1/p"), isBeingTaken(state, "b/1/q")], [true, false])
    assert.deepStrictEqual([state.applies, state.applying?.apply], [1, "001"])
    evolve(state, ends)
    assert.deepStrictEqual([...state.pending.keys()], ["b/1/q"])
    assert.deepStrictEqual(idsIn(state), { parked: ["b"], woken: ["a"] })
    assert.deepStrictEqual([state.version, state.applying], ["v1", undefined])
    assert.isFalse(isBeingTaken(state, "a/1/p"))
  })

  it("stays pending when its apply failed, or changed nothing that would", () => {
    const state = after(runStarted(2), parks("a"), begins("a/1/p"), fails)
    assert.deepStrictEqual([[...state.pending.keys()], state.applying, state.version], [["a/1/p"], undefined, "v2"])
    assert.deepStrictEqual(idsIn(state), { parked: ["a"] })
    evolve(state, begins("a/1/p"))
    evolve(state, { _tag: "ApplyEnded", at, apply: "002", applied: { _tag: "Skipped", reason: "" } })
    assert.deepStrictEqual([state.version, state.applies], ["v2", 2])
    assert.deepStrictEqual(idsIn(state), { woken: ["a"] })
  })

  it("of a case that was forgotten meanwhile stays with its batch, wakes nobody, and goes with the batch", () => {
    const taken = after(parks("a"), begins("a/1/p"), forgets("a"))
    assert.deepStrictEqual([...taken.pending.keys()], ["a/1/p"])
    evolve(taken, ends)
    assert.deepStrictEqual(
      [taken.pending.size, phaseOf(taken, "a"), taken.cases.get("a")?.wakes],
      [...[0, "open", undefined]]
    )
    const failed = after(parks("a"), begins("a/1/p"), forgets("a"), fails)
    assert.strictEqual(failed.pending.size, 0)
    const replaced = after(parks("a"), begins("a/1/p"), { _tag: "CaseRevised", ...of("a", 2), from: 1 }, fails)
    assert.strictEqual(replaced.pending.size, 0)
  })

  it("that was cancelled wakes its case with a skipped apply", () => {
    const state = after(parks("a"), { _tag: "RequestCancelled", ...of("a"), request: "a/1/p" })
    assert.deepStrictEqual([state.pending.size, idsIn(state)], [0, { woken: ["a"] }])
    assert.strictEqual(state.cases.get("a")?.wakes?.get("p")?._tag, "Skipped")
    const unknown = after(parks("a"), { _tag: "RequestCancelled", ...of("a"), request: "other" })
    assert.deepStrictEqual(idsIn(unknown), { parked: ["a"] })
  })

  it("whose answer comes before the case is parked wakes it then: the case is not moved", () => {
    const state = after(parks("a"), begins("a/1/p"))
    evolve(state, { _tag: "CaseCompleted", ...of("a") })
    evolve(state, ends)
    assert.strictEqual(phaseOf(state, "a"), "completed")
  })
})

describe("a run", () => {
  it("has a number, a version, and an end until the next one starts", () => {
    const state = after(runStarted(1), { _tag: "RunEnded", at, end: { _tag: "Stopped" } })
    assert.deepStrictEqual([state.start, state.version, state.end], [1, "v1", { _tag: "Stopped" }])
    evolve(state, runStarted(2))
    assert.deepStrictEqual([state.start, state.end, state.cursor], [2, null, 3])
  })

  it("tells of turns once for each of their attempts, those of rechecks elsewhere", () => {
    const spent = (recheck: string | null, attempt: number): Event => ({
      ...{ _tag: "TurnSpent", recheck, turnId: "t", stage: "s", attempt, spent: [] },
      ...of("a")
    })
    const state = after(spent(null, 1), spent(null, 3), spent("001", 9))
    assert.deepStrictEqual([...(state.cases.get("a")?.told ?? [])], [["t", 3]])
  })
})
