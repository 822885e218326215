import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { DispatcherEvent, RecheckRule } from "shiftboss"
import { take } from "../../../src/core/internal/recheck/decide.ts"
import { RecheckEvent } from "../../../src/core/internal/recheck/event.ts"
import { type Entry, applyOf, fold, Loop, type Outcome, rulesOf, started } from "./loop.ts"
import { seeded } from "./support.ts"

const cases = (count: number) => new Map(Array.from({ length: count }, (_, index) => [`c${index}`, 1]))

const begun = (count = 4, rules = rulesOf({ rule: RecheckRule.allFail(2) })) => {
  const loop = new Loop(rules, cases(count))
  loop.append([started(1), ...applyOf(1)])
  loop.queue()
  return loop
}

const outcomes = (loop: Loop) => loop.state.ended.map(({ outcome }) => outcome._tag)

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
    const taken = take(loop.state, (id) => ({ rev: 1, completed: true, selected: true, claimed: id === first }), 0)
    assert.strictEqual(taken.case, second)
    assert.strictEqual(loop.take(), first)
    assert.strictEqual(loop.take(), second)
  })

  it("are void when their case has changed, and say why", () => {
    const loop = begun(3)
    const [revised, gone, reopened] = [...loop.state.open.keys()]
    const { case: found, events } = take(
      loop.state,
      (id) =>
        id === gone
          ? undefined
          : { rev: id === revised ? 2 : 1, completed: id !== reopened, selected: true, claimed: false },
      0
    )
    assert.strictEqual(found, null)
    assert.deepStrictEqual(
      events.map((event) => event._tag === "RecheckEnded" && event.outcome._tag === "Void" && event.outcome.reason),
      ["the case changed: rev 1 is now 2", "the case is no longer selected", "the case is no longer completed"]
    )
  })

  it("are void with what the host said when a try says nothing", () => {
    const loop = begun(1)
    loop.drain(() => "unread")
    assert.deepStrictEqual(loop.state.ended[0]?.outcome, { _tag: "Void", reason: "unread: nothing was said" })
  })
})

describe("a newer apply", () => {
  it("takes over what has no counted try yet, and leaves the rest, of which it files no repair", () => {
    const loop = begun(2)
    const [tried, untried] = [loop.take()!, loop.take()!]
    loop.step(tried, () => "failure")
    loop.append([...applyOf(2), started(2)])
    loop.queue()
    loop.drain(() => "failure")
    assert.deepStrictEqual(
      loop.state.ended.map((ended) => [
        ended.case,
        ended.apply,
        ended.outcome._tag === "Regressed" && ended.outcome.request
      ]),
      [
        [tried, "001", null],
        [untried, "002", `${untried}@recheck-002`]
      ]
    )
  })
})

describe("a regression", () => {
  it("asks for a repair until an apply has taken it, across restarts, and never again", () => {
    const loop = begun(1)
    loop.drain(() => "failure")
    const request = "c0@recheck-001"
    const pending = [{ id: request, case: "c0", rev: 1, payload: { feedback: "wrong" } }]
    assert.deepStrictEqual([...fold([...loop.log, started(2)]).repairs.values()], pending)
    const [begin, end] = applyOf(2, [request])
    assert.deepStrictEqual([...fold([...loop.log, begin!, started(2)]).repairs.values()], pending)
    const failed = { _tag: "ApplyFailed", at: 0, apply: "002", reason: "x" } as const
    assert.deepStrictEqual([...fold([...loop.log, begin!, failed, started(2)]).repairs.values()], pending)
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
    const requests = loop.state.ended.map(({ outcome }) => outcome._tag === "Regressed" && outcome.request)
    assert.deepStrictEqual(requests, ["c0@recheck-001", "c0@recheck-002", null, null])
  })

  it("found without controls is unconfirmed, and only reported", () => {
    const loop = begun(1, rulesOf({ rule: RecheckRule.controlled({ controls: false }) }))
    loop.drain(() => "failure")
    assert.deepStrictEqual(loop.state.ended[0]?.outcome, { _tag: "Regressed", confirmed: false, request: null })
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
  assert.deepStrictEqual([...loop.state.repairs.keys()], ["c0@recheck-001"])
  assert.strictEqual(loop.state.histories.size + loop.state.sent.size, 0)
})

it("what is known of a case is counted on by its rechecks at unchanged quality", () => {
  const loop = begun(1, rulesOf())
  loop.drain(() => "pass")
  loop.append(applyOf(2))
  loop.queue()
  const answers: Array<Outcome> = ["failure", "failure", "error", "pass", "pass"] // new, new, control twice, new
  loop.drain(() => answers.shift()!)
  assert.deepStrictEqual(loop.state.histories.get("c0"), { passed: 4, failed: 2, regressed: undefined })
  loop.append(applyOf(3))
  loop.queue()
  loop.drain((_, arm) => (arm === "new" ? "failure" : "pass"))
  assert.deepStrictEqual(loop.state.histories.get("c0"), { passed: 6, failed: 2, regressed: "confirmed" })
})

it("after a crash at any append nothing is tried again, and it ends as if nothing had happened", () => {
  const outcomeOf = (seed: number) => {
    // What a try says is fixed by case, apply, arm and number, so that a run after a crash finds the same world.
    return (loop: Loop, id: string, arm: RecheckRule.Arm): Outcome => {
      const recheck = loop.state.open.get(id)!
      const { newPassed, newFailed, controlPassed, controlFailed, voids, apply } = recheck
      const number = [newPassed, newFailed, controlPassed, controlFailed, voids].join()
      let mixed = seed
      for (const char of `${id} ${apply} ${arm} ${number}`) mixed = (Math.imul(mixed, 31) + char.charCodeAt(0)) | 0
      const chance = seeded(mixed)()
      return chance < 0.4 ? "pass" : chance < 0.85 ? "failure" : chance < 0.95 ? "error" : "unread"
    }
  }
  const goOn = (loop: Loop, seed: number) => {
    const answer = outcomeOf(seed)
    const applied = loop.log.filter(({ _tag }) => _tag === "ApplyEnded").length
    loop.queue()
    loop.drain((id, arm) => answer(loop, id, arm))
    for (let n = applied + 1; n <= 4; n++) {
      loop.append(applyOf(n, [...loop.state.repairs.keys()]))
      loop.queue()
      loop.drain((id, arm) => answer(loop, id, arm))
    }
  }
  const tries = (log: ReadonlyArray<Entry>) => log.filter(({ _tag }) => _tag === "TryEnded")
  const rule = fc.constantFrom(RecheckRule.allFail(2), RecheckRule.controlled(), RecheckRule.allFail(3))
  fc.assert(
    fc.property(rule, fc.integer({ min: 1, max: 6 }), fc.integer(), (rule, count, seed) => {
      const rules = rulesOf({ rule, rechecks: 4, requestsPerCase: 1 })
      const whole = new Loop(rules, cases(count), [started(1)])
      goOn(whole, seed)
      assert.strictEqual(whole.state.open.size, 0)
      const perCase = new Map<string, number>()
      for (const { case: id, outcome } of whole.state.ended) {
        if (outcome._tag === "Regressed" && outcome.request !== null) perCase.set(id, (perCase.get(id) ?? 0) + 1)
      }
      for (const sent of perCase.values()) assert.strictEqual(sent, 1)
      for (let cut = 1; cut < whole.log.length; cut++) {
        if (whole.log[cut - 1]?._tag === "ApplyStarted") continue // the dispatcher calls that apply again itself
        const again = new Loop(rules, cases(count), [...whole.log.slice(0, cut), started(2)])
        goOn(again, seed)
        assert.deepStrictEqual(tries(again.log), tries(whole.log))
        assert.deepStrictEqual(again.state.ended, whole.state.ended)
        assert.deepStrictEqual([...again.state.repairs], [...whole.state.repairs])
      }
    }),
    { numRuns: 40 }
  )
})

it("every event is what its schema says, and survives the log", () => {
  const loop = begun(6, rulesOf())
  loop.drain((_, arm) => (arm === "new" ? "failure" : "pass"))
  const schema = Schema.toCodecJson(Schema.Union([DispatcherEvent.DispatcherEvent, RecheckEvent]))
  for (const event of loop.log) {
    const line = JSON.stringify(Schema.encodeSync(schema)(event))
    assert.deepStrictEqual(Schema.decodeSync(schema)(JSON.parse(line)), event)
  }
  assert.include(outcomes(loop), "Regressed")
})
