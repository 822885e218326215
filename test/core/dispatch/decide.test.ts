import { assert, describe, it } from "@effect/vitest"
import type { Case, DispatcherEvent } from "shiftboss"
import {
  awaitHold,
  explain,
  type Live,
  makeLive,
  next,
  note,
  Queue,
  revOf,
  select,
  standingOf
} from "../../../src/core/internal/dispatch/decide.ts"
import { evolve, initial, type State } from "../../../src/core/internal/dispatch/state.ts"

type Event = DispatcherEvent.DispatcherEvent

const at = 1_000
const of = (id: string, rev = 1) => ({ at, case: id, rev })
const parks = (id: string): Event => ({
  ...{ _tag: "CaseParked", name: "p", request: `${id}/1/p`, payload: null },
  ...of(id)
})
const holds = (id: string, until: number): Event => ({ _tag: "CaseHeld", ...of(id), name: "h", until })
const completes = (id: string, rev = 1): Event => ({ _tag: "CaseCompleted", ...of(id, rev) })
const applies = (...requests: ReadonlyArray<string>): ReadonlyArray<Event> => [
  { _tag: "ApplyStarted", at, apply: "001", version: null, requests },
  { _tag: "ApplyEnded", at, apply: "001", applied: { _tag: "Skipped", reason: "" } }
]
const starts = (start: number): Event => ({
  ...{ _tag: "RunStarted", at, start, version: null, again: null },
  found: { open: 0, parked: 0, woken: 0, held: 0, failed: 0 }
})

const selection = (cases: ReadonlyArray<Case.Case>, fresh = cases.length): Live["selection"] => ({
  ...{ cases, byId: new Map(cases.map((case_) => [case_.id, case_])), next: 0, fresh, readAt: at }
})

interface Parts {
  readonly cases?: ReadonlyArray<string | Case.Case>
  readonly events?: ReadonlyArray<Event>
  readonly seats?: number
  readonly applyAt?: number
}

/** A run that has read its selection, after these events. */
const running = ({ cases = ["a", "b"], events = [], seats = 2, applyAt = 4 }: Parts = {}) => {
  const state = initial()
  const live = makeLive(seats, applyAt, undefined)
  const happen = (...more: ReadonlyArray<Event>) => {
    for (const event of more) {
      evolve(state, event)
      note(state, live, event)
    }
  }
  happen(starts(1), ...events)
  select(state, live, selection(cases.map((one) => (typeof one === "string" ? { id: one } : one))))
  live.selected = true
  live.surveyed = true
  /** Gives the case a seat, as a claim does. */
  const seat = (id: string) => {
    const number = live.freeSeats.pop()
    assert.isDefined(number)
    live.running.set(id, number)
  }
  const leave = (id: string) => {
    const number = live.running.get(id)!
    live.running.delete(id)
    live.freeSeats.push(number, number)
  }
  return { state, live, happen, seat, leave }
}

const shown = (state: State, live: Live, now = at): string => {
  const action = next(state, live, now)
  assert.deepStrictEqual(next(state, live, now), action, "asking twice gives the same answer")
  switch (action._tag) {
    case "Claim":
      return `${action.lane} ${action.case}`
    case "Wait":
      return `wait until ${action.until}`
    case "End":
      return action.stuck ? "stuck" : "end"
    default:
      return action._tag.toLowerCase()
  }
}

describe("what is next", () => {
  it("is the selection first, and nothing while it is read for the first time", () => {
    const { state, live } = running()
    live.selected = false
    assert.strictEqual(shown(state, live), "select")
    live.selecting = true
    assert.strictEqual(shown(state, live), "wait until Infinity")
  })

  it("is each new case in its order, as long as there are seats", () => {
    const { state, live, seat, leave, happen } = running({ cases: ["a", "b", "c"] })
    assert.strictEqual(shown(state, live), "fresh a")
    seat("a")
    assert.strictEqual(shown(state, live), "fresh b")
    seat("b")
    assert.strictEqual(shown(state, live), "wait until Infinity")
    happen(completes("a"))
    leave("a")
    assert.strictEqual(shown(state, live), "fresh c")
  })

  it("is woken cases before new ones, in the order they were woken", () => {
    const { state, live, happen } = running({
      cases: ["new", "a", "b"],
      events: [parks("b"), parks("a")]
    })
    assert.strictEqual(shown(state, live), "fresh new")
    happen(...applies("a/1/p", "b/1/p"))
    live.woken.push("a")
    live.woken.push("b")
    assert.strictEqual(shown(state, live), "woken a")
    happen(completes("a"))
    assert.strictEqual(shown(state, live), "woken b")
  })

  it("is to read the selection again when all is claimed, once after each thing that happened", () => {
    const { state, live, seat, happen, leave } = running({ cases: ["a"] })
    seat("a")
    assert.strictEqual(shown(state, live), "wait until Infinity")
    live.surveyed = false
    assert.strictEqual(shown(state, live), "select")
    live.selecting = true
    assert.strictEqual(shown(state, live), "wait until Infinity")
    live.selecting = false
    live.surveyed = true
    happen(completes("a"))
    leave("a")
    assert.strictEqual(shown(state, live), "end")
  })

  it("is not to read the selection again while the end of a case is being written", () => {
    const { state, live, seat } = running({ cases: ["a"] })
    seat("a")
    live.surveyed = false
    // Its seat is free already.
    live.freeSeats.push(1, 1)
    assert.strictEqual(shown(state, live), "wait until Infinity")
  })

  it("is nothing more once the run comes to its end, or its budget is spent", () => {
    for (const why of ["ending", "spent"] as const) {
      const { state, live, seat, leave } = running({ events: [parks("b")] })
      seat("a")
      live[why] = true
      assert.strictEqual(shown(state, live), "wait until Infinity")
      leave("a")
      assert.strictEqual(shown(state, live), "end")
      live.applying = true
      assert.strictEqual(shown(state, live), "wait until Infinity")
      live.applying = false
      live.selecting = true
      assert.strictEqual(shown(state, live), "wait until Infinity")
    }
  })
})

describe("a case of which a recheck was on a seat", () => {
  it("is not forgotten when it was passed by meanwhile, nor taken when there is nothing new about it", () => {
    const { state, live, happen, seat, leave } = running({ cases: ["a", "b"], events: [completes("a")] })
    seat("a")
    assert.strictEqual(shown(state, live), "fresh b")
    seat("b")
    // The selection has a new rev of it.
    select(state, live, selection([{ id: "a", rev: 2 }, { id: "b" }]))
    happen({ _tag: "CaseRevised", ...of("a", 2), from: 1 })
    assert.strictEqual(live.selection.next, 0)
    assert.strictEqual(shown(state, live), "wait until Infinity")
    live.selection.next = 2
    leave("a")
    live.passedBy.push("b")
    live.passedBy.push("a")
    assert.strictEqual(shown(state, live), "fresh a")
    happen(completes("a", 2))
    assert.strictEqual(shown(state, live), "wait until Infinity")
    assert.isUndefined(live.passedBy.peek())
  })
})

describe("an apply", () => {
  it("is due at so many requests, before anything is claimed", () => {
    const { state, live, happen, seat } = running({ cases: ["a", "b", "c"], applyAt: 2, events: [parks("a")] })
    seat("b")
    assert.strictEqual(shown(state, live), "fresh c")
    happen(parks("b"))
    assert.strictEqual(shown(state, live), "apply")
    live.applying = true
    assert.strictEqual(shown(state, live), "wait until Infinity")
  })

  it("waits for whoever has a seat and is about to begin", () => {
    const { state, live } = running({ applyAt: 1, events: [parks("a")] })
    live.beginning = 1
    assert.strictEqual(shown(state, live), "wait until Infinity")
    live.beginning = 0
    assert.strictEqual(shown(state, live), "apply")
  })

  it("with fewer requests comes when nothing runs and nothing else can be claimed", () => {
    const { state, live, seat, leave, happen } = running({ events: [parks("a")] })
    assert.strictEqual(shown(state, live), "fresh b")
    seat("b")
    assert.strictEqual(shown(state, live), "wait until Infinity")
    happen(completes("b"))
    leave("b")
    assert.strictEqual(shown(state, live), "apply")
  })

  it("that was cut off is called again before anything else", () => {
    const { state, live } = running({ events: [parks("a"), applies("a/1/p")[0]!] })
    assert.strictEqual(shown(state, live), "apply")
  })

  it("never comes where the workload has none: what is parked waits for a workload that has", () => {
    const { state, live } = running({ events: [parks("a"), completes("b")] })
    const without: Live = { ...live, applyAt: undefined }
    assert.strictEqual(shown(state, without), "end")
  })
})

describe("a hold", () => {
  it("is waited for to its end, which wakes its case before new ones", () => {
    const { state, live, happen } = running({ cases: ["a", "new"], events: [holds("a", at + 500)] })
    assert.strictEqual(shown(state, live, at + 500), "woken a")
    happen(completes("new"))
    const again = running({ cases: ["a"], events: [holds("a", at + 500)] })
    assert.strictEqual(shown(again.state, again.live, at + 499), `wait until ${at + 500}`)
    assert.strictEqual(shown(again.state, again.live, at + 500), "woken a")
  })

  it("whose end moved behind the clock again is waited for again", () => {
    const { state, live } = running({ cases: ["a"], events: [holds("a", at + 500)] })
    assert.strictEqual(shown(state, live, at + 600), "woken a")
    assert.strictEqual(shown(state, live, at), `wait until ${at + 500}`)
    assert.strictEqual(shown(state, live, at + 500), "woken a")
  })

  it("changes nothing while no seat is free", () => {
    const { state, live, seat } = running({ cases: ["a", "b"], seats: 1, events: [holds("a", at + 500)] })
    seat("b")
    assert.strictEqual(shown(state, live), "wait until Infinity")
  })

  it("is not waited for of a case that runs, is left behind, or is not selected", () => {
    const { state, live, seat } = running({ cases: ["a", "b"], events: [completes("b")] })
    evolve(state, holds("a", at + 500))
    evolve(state, holds("elsewhere", at + 400))
    awaitHold(state, live, "elsewhere")
    seat("a")
    awaitHold(state, live, "a")
    assert.strictEqual(live.holds.size, 0)
    live.running.clear()
    live.unwinding.add("a")
    awaitHold(state, live, "a")
    assert.strictEqual(live.holds.size, 0)
    live.unwinding.clear()
    // One that is not held, or not known, neither.
    for (const id of ["b", "nobody"]) awaitHold(state, live, id)
    assert.strictEqual(live.holds.size, 0)
    awaitHold(state, live, "a")
    assert.strictEqual(live.holds.least, at + 500)
  })

  it("that is over for another reason is forgotten", () => {
    const { state, live, happen } = running({ cases: ["a", "b"], events: [completes("b"), holds("a", at + 500)] })
    happen({ _tag: "CaseHeld", ...of("a"), name: "i", until: at + 900 })
    awaitHold(state, live, "a")
    assert.strictEqual(shown(state, live), `wait until ${at + 900}`)
    happen(completes("a"))
    assert.strictEqual(shown(state, live), "end")
  })
})

describe("a case that was retried or forgotten", () => {
  it("is new again, and found from the beginning of the selection", () => {
    for (const change of ["CaseRetried", "CaseForgotten"] as const) {
      const { state, live, happen } = running({
        cases: ["a", "b"],
        events: [{ _tag: "CaseDifficult", ...of("a"), reason: "" }, completes("b")]
      })
      assert.strictEqual(shown(state, live), "end")
      const { fresh } = live.selection
      happen({ _tag: change, ...of("a") })
      assert.strictEqual(shown(state, live), "fresh a")
      assert.strictEqual(live.selection.fresh, fresh + 1)
      // Of one that is not selected nothing waits.
      happen({ _tag: change, ...of("elsewhere") })
      assert.strictEqual(live.selection.fresh, fresh + 1)
    }
  })

  it("whose request was cancelled is woken", () => {
    const { state, live, happen } = running({ cases: ["a"], events: [parks("a")] })
    happen({ _tag: "RequestCancelled", ...of("a"), request: "a/1/p" })
    assert.strictEqual(shown(state, live), "woken a")
  })
})

describe("a fiber that ignores interruption", () => {
  it("keeps its case from its next seat, and the run from its end for good only then", () => {
    const { state, live, happen } = running({ cases: ["a", "b"], events: [completes("b")] })
    live.unwinding.add("a")
    assert.strictEqual(shown(state, live), "stuck")
    happen(completes("a"))
    assert.strictEqual(shown(state, live), "end")
    live.unwinding.add("elsewhere")
    assert.strictEqual(shown(state, live), "end")
  })
})

describe("explain", () => {
  const because = (parts: Parts, id: string, change: (live: Live) => void = () => {}, now = at) => {
    const { state, live } = running(parts)
    change(live)
    const found = explain(state, live, id, now)
    if (found?._tag === "Waiting") return `${found.for}${"until" in found ? ` until ${found.until}` : ""}`
    return found?._tag === "Ended" ? found.as : found?._tag
  }

  it("says what each case waits for, or how it ended", () => {
    assert.strictEqual(because({}, "a"), "seat")
    assert.isUndefined(because({}, "nobody"))
    assert.strictEqual(because({ events: [completes("a")] }, "a"), "completed")
    assert.strictEqual(because({ events: [{ _tag: "CaseDifficult", ...of("a"), reason: "r" }] }, "a"), "difficult")
    assert.strictEqual(because({ events: [{ _tag: "CaseFailed", ...of("a"), reason: "r" }] }, "a"), "failed")
    assert.strictEqual(because({ events: [{ _tag: "CaseFailed", ...of("a"), reason: "r" }, starts(2)] }, "a"), "seat")
    assert.strictEqual(because({ events: [parks("a")] }, "a"), "apply")
    assert.strictEqual(because({ events: [holds("a", at + 1)] }, "a"), `hold until ${at + 1}`)
    assert.strictEqual(because({ events: [holds("a", at)] }, "a"), "seat")
    assert.strictEqual(because({ events: [holds("elsewhere", at)] }, "elsewhere"), "selection")
    assert.strictEqual(
      because({}, "a", (live) => live.unwinding.add("a")),
      "unwinding"
    )
    assert.strictEqual(
      because({}, "a", (live) => void (live.ending = true)),
      "stop"
    )
    assert.strictEqual(
      because({}, "a", (live) => void (live.spent = true)),
      "budget"
    )
    assert.strictEqual(
      because({}, "a", (live) => void (live.applying = true)),
      "apply"
    )
    assert.strictEqual(because({ applyAt: 1, events: [parks("b")] }, "a"), "apply")
    assert.deepStrictEqual(
      because({}, "a", (live) => void live.running.set("a", 2)),
      "Running"
    )
  })

  it("goes by the rev that is selected, not by what became of an earlier one", () => {
    const cases = [{ id: "a", rev: 2 }]
    assert.strictEqual(because({ cases, events: [completes("a")] }, "a"), "seat")
    assert.strictEqual(because({ cases, events: [completes("a", 2)] }, "a"), "completed")
    assert.strictEqual(because({ cases: ["a"], events: [completes("a", 2)] }, "a"), "completed")
  })

  it("without a run says that none is under way, unless the case has ended or waits for more", () => {
    const state = initial()
    for (const event of [starts(1), completes("done"), parks("parked"), holds("over", at), holds("held", at + 5)]) {
      evolve(state, event)
    }
    const found = ["done", "parked", "over", "held", "nobody"].map((id) => {
      const said = explain(state, undefined, id, at)
      return said?._tag === "Waiting" ? said.for : said?._tag
    })
    assert.deepStrictEqual(found, ["Ended", "apply", "run", "hold", undefined])
  })
})

describe("what a recheck has to know of a case", () => {
  it("is its rev, whether it completed, and whether it is selected", () => {
    const { state, live } = running({
      cases: ["a", { id: "b", rev: 3 }],
      events: [completes("a"), completes("b"), parks("c")]
    })
    assert.deepStrictEqual(standingOf(state, live, "a"), { rev: 1, completed: true, selected: true })
    assert.deepStrictEqual(standingOf(state, live, "b"), { rev: 3, completed: true, selected: true })
    assert.deepStrictEqual(standingOf(state, live, "c"), { rev: 1, completed: false, selected: false })
    assert.isUndefined(standingOf(state, live, "nobody"))
  })
})

describe("a queue", () => {
  it("is first in, first out, however long it gets, and forgets what was taken", () => {
    const queue = new Queue()
    let taken = 0
    for (let n = 0; n < 10_000; n++) {
      queue.push(String(n))
      if (n % 3 === 0) continue
      assert.strictEqual(queue.peek(), String(taken++))
      queue.drop()
    }
    assert.strictEqual(queue.peek(), String(taken))
    queue.clear()
    assert.isUndefined(queue.peek())
    queue.push("x")
    assert.strictEqual(queue.peek(), "x")
  })

  it("of cases without a rev takes the first", () => {
    assert.deepStrictEqual([revOf({ id: "a" }), revOf({ id: "a", rev: 4 })], [1, 4])
  })
})
