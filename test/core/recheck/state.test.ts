import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { DispatcherEvent, RecheckRule } from "shiftboss"
import { begin, pick } from "../../../src/core/internal/recheck/decide.ts"
import { applyOf, begun, cases, fold, Loop, type Outcome, outcomes, rulesOf, started } from "./loop.ts"
import { seeded } from "./support.ts"

describe("the rechecks of an apply", () => {
  it("are queued once, however often it is asked", () => {
    const loop = begun(20)
    const queued = loop.state.open.size
    assert.strictEqual(queued, 8)
    loop.queue()
    loop.drain(() => "pass")
    loop.queue()
    assert.strictEqual(loop.log.filter(({ _tag }) => _tag === "RechecksQueued").length, 1)
  })

  it("are not queued when the apply changed nothing", () => {
    const loop = new Loop(rulesOf(), cases(4))
    const skipped = { _tag: "Skipped", reason: "nothing to do" } as const
    loop.append([started(1), { _tag: "ApplyEnded", at: 0, apply: "001", applied: skipped }])
    loop.queue()
    assert.strictEqual(loop.state.open.size, 0)
  })

  it("run oldest first, but for those whose case is claimed", () => {
    const loop = begun()
    const [first, second] = [...loop.state.open.keys()]
    assert.strictEqual(
      loop.peek((id) => id !== first),
      second
    )
    assert.strictEqual(loop.peek(), first ?? null)
  })

  it("make all first tries before any second", () => {
    const loop = begun(3)
    const ids = [...loop.state.open.keys()]
    const order: Array<string> = []
    loop.drain((id) => (order.push(id), "failure"))
    assert.deepStrictEqual(order, [...ids, ...ids])
  })

  it("cost no more to choose from when most have been tried", () => {
    const loop = begun(300, rulesOf({ rule: RecheckRule.allFail(2), rechecks: 300 }))
    let looks = 0
    const isFree = () => ++looks > 0
    let tries = 0
    for (let next = loop.take(isFree); next !== undefined; next = loop.take(isFree)) {
      tries++
      loop.say(next.case, next.arm, "failure")
    }
    assert.deepStrictEqual([tries, looks], [600, 600])
  })

  it("wait for the end of a hold, and no other waits for them", () => {
    const loop = begun(2)
    const [first, second] = [...loop.state.open.keys()]
    loop.take()
    const apply = "001"
    loop.append([{ _tag: "RecheckHeld", at: 0, case: first!, apply, arm: "new", name: "h", until: 500 }])
    assert.strictEqual(loop.peek(), second ?? null)
    const cases = { isFree: (id: string) => id === first, standingOf: loop.standing }
    assert.deepStrictEqual(pick(loop.state, cases, loop.rules, 499), { case: null, until: 500 })
    assert.strictEqual(pick(loop.state, cases, loop.rules, 500).case, first)
  })

  it("are void when their case has changed, and say why", () => {
    const loop = begun(3)
    const open = [...loop.state.open.values()]
    const standings = [
      undefined,
      { rev: 2, completed: true, selected: true },
      { rev: 1, completed: false, selected: true }
    ]
    const reasons = open.map((recheck, index) => {
      const { events, arm } = begin(loop.state, recheck, standings[index], loop.rules, 0)
      assert.strictEqual(arm, null)
      const [event] = events
      return (
        event?._tag === "RecheckEnded" && event.outcome._tag === "Void" && [event.outcome.why, event.outcome.reason]
      )
    })
    assert.deepStrictEqual(reasons, [
      ["case-changed", "the case is no longer selected"],
      ["case-changed", "the case changed: rev 1 is now 2"],
      ["case-changed", "the case is no longer completed"]
    ])
  })

  it("are void with what the host said when a try says nothing", () => {
    const loop = begun(1)
    loop.drain(() => "unread")
    const outcome = { _tag: "Void", why: "unjudged", reason: "unread: nothing was said" } as const
    assert.deepStrictEqual(loop.ended[0]?.outcome, outcome)
  })

  it("are void as broken when a try breaks", () => {
    const loop = begun(1)
    loop.drain(() => "error")
    assert.deepStrictEqual(loop.ended[0]?.outcome, { _tag: "Void", why: "broke", reason: "error: nothing was said" })
  })
})

describe("a try that is made again", () => {
  const tryOf = (outcome: Outcome) => {
    const loop = begun(1, rulesOf())
    loop.take()
    const step = (step: string) =>
      ({ _tag: "RecheckStepEnded", at: 0, case: "c0", apply: "001", arm: "new", step }) as const
    const held = { _tag: "RecheckHeld", at: 0, case: "c0", apply: "001", arm: "new", name: "quota", until: 1 } as const
    loop.append([step("run"), held, step("grade")])
    loop.say("c0", "new", outcome)
    const { number, reading, steps, holds } = loop.state.open.get("c0")!.tries.new
    return { number, reading, kept: [...steps.keys(), ...holds.keys()] }
  }

  it("keeps all its steps when it broke", () =>
    assert.deepStrictEqual(tryOf("error"), { number: 1, reading: 1, kept: ["run", "grade", "quota"] }))

  it("is only graded again, under another key, when the grading could not be read", () =>
    assert.deepStrictEqual(tryOf("unread"), { number: 1, reading: 2, kept: ["run", "quota"] }))

  it("is another run when it was void or counted", () => {
    assert.deepStrictEqual(tryOf("void"), { number: 2, reading: 1, kept: [] })
    assert.deepStrictEqual(tryOf("failure"), { number: 2, reading: 1, kept: [] })
  })
})

describe("a newer apply", () => {
  it("takes over what has no counted try yet; the rest ends as it began, asks for nothing, and is looked at anew", () => {
    const loop = begun(2)
    const { case: tried, arm } = loop.take()!
    loop.say(tried, arm, "failure")
    loop.take()
    loop.append([...applyOf(2), started(2)])
    const untried = [...loop.state.open.keys()].find((id) => id !== tried)!
    loop.queue()
    loop.drain(() => "failure")
    assert.deepStrictEqual(
      loop.ended.map((ended) => [ended.case, ended.apply, ended.outcome._tag === "Regressed" && ended.outcome.request]),
      [
        [tried, "001", null],
        [untried, "002", `${untried}@recheck-002`],
        [tried, "002", `${tried}@recheck-002`]
      ]
    )
  })
})

describe("a regression", () => {
  it("of a version that is gone is looked for on the one there is, and beside the last version that was good", () => {
    const loop = begun(1, rulesOf())
    const { case: id, arm } = loop.take()!
    loop.say(id, arm, "failure")
    loop.apply(2)
    const first = loop.state.open.get(id)!
    loop.drain((_, arm) => (first === loop.state.open.get(id) && arm === "new" ? "failure" : "pass"))
    assert.deepStrictEqual(
      loop.ended.map(({ apply, outcome }) => [apply, outcome]),
      [
        ["001", { _tag: "Regressed", confirmed: true, request: null }],
        ["002", { _tag: "Passed", unstable: false }]
      ]
    )
    const again = loop.log.filter((entry) => entry._tag === "RechecksQueued").at(-1)
    assert.deepStrictEqual(again, { _tag: "RechecksQueued", at: 0, apply: "002", cases: [{ case: id, rev: 1 }] })
    assert.deepStrictEqual([first.baseline, first.change.to], ["v0", "v1"])
  })

  it("is judged beside the last version that was good until the case passes again", () => {
    const loop = begun(1, rulesOf())
    const fail = (_: string, arm: RecheckRule.Arm) => (arm === "new" ? "failure" : "pass")
    const baselines: Array<string> = []
    for (const n of [2, 3]) {
      loop.drain(fail)
      loop.apply(n, [...loop.state.repairs.keys()])
      baselines.push(loop.state.open.get("c0")!.baseline)
    }
    loop.drain(() => "pass")
    loop.apply(4)
    baselines.push(loop.state.open.get("c0")!.baseline)
    assert.deepStrictEqual(baselines, ["v0", "v0", "v3"])
  })

  it("asks for a repair until an apply has taken it, across restarts, and never again", () => {
    const loop = begun(1)
    loop.drain(() => "failure")
    const request = "c0@recheck-001"
    const pending = [[request, "c0"]]
    assert.deepStrictEqual([...fold([...loop.log, started(2)]).repairs], pending)
    const [begin, end] = applyOf(2, [request])
    assert.deepStrictEqual([...fold([...loop.log, begin!, started(2)]).repairs], pending)
    const failed = { _tag: "ApplyFailed", at: 0, apply: "002", reason: "x" } as const
    assert.deepStrictEqual([...fold([...loop.log, begin!, failed, started(2)]).repairs], pending)
    assert.strictEqual(fold([...loop.log, begin!, end!, started(2), ...applyOf(3)]).repairs.size, 0)
  })

  it("is only reported after the case has asked so often, restarts or not", () => {
    const loop = begun(1)
    loop.drain(() => "failure")
    for (let n = 2; n <= 4; n++) {
      loop.append([...applyOf(n, [...loop.state.repairs.keys()]), started(n)])
      loop.queue()
      loop.drain(() => "failure")
    }
    const requests = loop.ended.map(({ outcome }) => outcome._tag === "Regressed" && outcome.request)
    assert.deepStrictEqual(requests, ["c0@recheck-001", "c0@recheck-002", null, null])
  })

  it("found without controls is unconfirmed, and only reported", () => {
    const loop = begun(1, rulesOf({ rule: RecheckRule.controlled({ controls: false }) }))
    loop.drain(() => "failure")
    assert.deepStrictEqual(loop.ended[0]?.outcome, { _tag: "Regressed", confirmed: false, request: null })
  })

  it("comes first after the next apply", () => {
    const loop = begun(20, rulesOf({ rule: RecheckRule.allFail(2), rechecks: 3 }))
    const [, , last] = [...loop.state.open.keys()]
    loop.drain((id) => (id === last ? "failure" : "pass"))
    loop.append(applyOf(2))
    loop.queue()
    assert.strictEqual([...loop.state.open.keys()][0], last)
  })
})

it("a case is unstable from a recheck it passed after a failure until one it passes at once", () => {
  const loop = begun(1)
  const answers: Array<Outcome> = ["failure", "pass"]
  loop.drain(() => answers.shift()!)
  assert.deepStrictEqual([...loop.state.unstable], ["c0"])
  loop.append(applyOf(2))
  loop.queue()
  loop.drain(() => "pass")
  assert.deepStrictEqual([...loop.state.unstable], [])
})

it("a void recheck leaves what is known of its case as it was", () => {
  const loop = begun(1, rulesOf())
  loop.drain(() => "failure")
  assert.deepStrictEqual(outcomes(loop), ["Void"])
  assert.strictEqual(loop.state.histories.size, 0)
})

it("a revised case begins anew, but for a request that an apply has begun to take", () => {
  const loop = begun(2)
  loop.drain(() => "failure")
  loop.append([applyOf(2, ["c0@recheck-001"])[0]!])
  const revised = (id: string) => ({ _tag: "CaseRevised", at: 0, case: id, rev: 2, from: 1 }) as const
  loop.append([revised("c0"), revised("c1")])
  assert.deepStrictEqual([loop.state.repairs.size, loop.state.taking], [0, ["c0@recheck-001"]])
  assert.strictEqual(loop.state.histories.size + loop.state.sent.size, 0)
})

it("what is known of a case is counted on by its rechecks at unchanged quality", () => {
  const loop = begun(1, rulesOf())
  loop.drain(() => "pass")
  loop.append(applyOf(2))
  loop.queue()
  const answers: Array<Outcome> = ["failure", "failure", "error", "pass", "pass"] // new, new, control twice, new
  loop.drain(() => answers.shift()!)
  assert.deepStrictEqual(loop.state.histories.get("c0"), {
    passed: 4,
    failed: 2,
    regressed: undefined,
    good: undefined
  })
  loop.append(applyOf(3))
  loop.queue()
  loop.drain((_, arm) => (arm === "new" ? "failure" : "pass"))
  assert.deepStrictEqual(loop.state.histories.get("c0"), { passed: 6, failed: 2, regressed: "confirmed", good: "v2" })
})

it("after a crash at any append nothing is tried again, and it ends as if nothing had happened", () => {
  const outcomeOf = (seed: number) => {
    // What a try says is fixed by case, apply, arm and number, so that a run after a crash finds the same world.
    return (loop: Loop, id: string, arm: RecheckRule.Arm): Outcome => {
      const recheck = loop.state.open.get(id)!
      const { newPassed, newFailed, controlPassed, controlFailed, voids, change } = recheck
      const number = [newPassed, newFailed, controlPassed, controlFailed, voids].join()
      let mixed = seed
      for (const char of `${id} ${change.apply} ${arm} ${number}`)
        mixed = (Math.imul(mixed, 31) + char.charCodeAt(0)) | 0
      const chance = seeded(mixed)()
      return chance < 0.4 ? "pass" : chance < 0.85 ? "failure" : chance < 0.95 ? "error" : "unread"
    }
  }
  const goOn = (loop: Loop, seed: number) => {
    const answer = outcomeOf(seed)
    const applied = loop.log.filter(({ _tag }) => _tag === "ApplyEnded").length
    loop.recover()
    loop.queue()
    loop.drain((id, arm) => answer(loop, id, arm))
    for (let n = applied + 1; n <= 4; n++) {
      loop.append(applyOf(n, [...loop.state.repairs.keys()]))
      loop.queue()
      loop.drain((id, arm) => answer(loop, id, arm))
    }
  }
  const tries = (loop: Loop) => inOrder(loop.log.filter((entry) => entry._tag === "TryEnded"))
  // An end that a crash kept from being said is said later: each recheck is looked at by itself.
  const inOrder = <A extends { readonly apply: string; readonly case: string }>(events: ReadonlyArray<A>) =>
    events.toSorted((one, other) => (one.apply + one.case < other.apply + other.case ? -1 : 1))
  const rule = fc.constantFrom(RecheckRule.allFail(2), RecheckRule.controlled(), RecheckRule.allFail(3))
  fc.assert(
    fc.property(rule, fc.integer({ min: 1, max: 6 }), fc.integer(), (rule, count, seed) => {
      const rules = rulesOf({ rule, rechecks: 4, requestsPerCase: 1 })
      const whole = new Loop(rules, cases(count), [started(1)])
      goOn(whole, seed)
      assert.strictEqual(whole.state.open.size, 0)
      const perCase = new Map<string, number>()
      for (const { case: id, outcome } of whole.ended) {
        if (outcome._tag === "Regressed" && outcome.request !== null) perCase.set(id, (perCase.get(id) ?? 0) + 1)
      }
      for (const sent of perCase.values()) assert.strictEqual(sent, 1)
      for (const cut of whole.appends) {
        if (whole.log[cut - 1]?._tag === "ApplyStarted") continue // the dispatcher calls that apply again itself
        const again = new Loop(rules, cases(count), [...whole.log.slice(0, cut), started(2)])
        goOn(again, seed)
        assert.deepStrictEqual(tries(again), tries(whole))
        assert.deepStrictEqual(inOrder(again.ended), inOrder(whole.ended))
        assert.deepStrictEqual(new Map(again.state.repairs), new Map(whole.state.repairs))
      }
    }),
    { numRuns: 40 }
  )
})

it("every event is what its schema says, and survives the log", () => {
  const loop = begun(6, rulesOf())
  loop.drain((_, arm) => (arm === "new" ? "failure" : "pass"))
  const schema = Schema.toCodecJson(DispatcherEvent.DispatcherEvent)
  for (const event of loop.log) {
    const line = JSON.stringify(Schema.encodeSync(schema)(event))
    assert.deepStrictEqual(Schema.decodeSync(schema)(JSON.parse(line)), event)
  }
  assert.include(outcomes(loop), "Regressed")
})
