/** Rechecks while their batch waits for its check, and while a newer apply comes. */
import { assert, describe, it } from "@effect/vitest"
import { RecheckRule } from "shiftboss"
import { applyOf, begun, Loop, outcomes, rulesOf, started } from "./loop.ts"

describe("a try on the new version that passes", () => {
  for (const crash of [false, true]) {
    it(`passes its recheck while the batch waits for its check, ${crash ? "also when a crash kept that from being said" : "whatever that says"}`, () => {
      const loop = begun(6, rulesOf())
      const taken = new Set<string>()
      for (let n = 0; n < 4; n++) taken.add(loop.take((id) => !taken.has(id))!.case)
      const [passed, ...failed] = [...taken] as [string, ...Array<string>]
      for (const id of failed) loop.say(id, "new", "failure")
      loop.say(passed, "new", "pass")
      assert.deepStrictEqual(outcomes(loop), ["Passed"])
      loop.drain(() => "failure")
      assert.include(
        loop.log.map(({ _tag }) => _tag),
        "BatchJudged"
      )
      if (!crash) return assert.deepStrictEqual(outcomes(loop), ["Passed", "Void", "Void", "Void", "Void", "Void"])
      // All that was said before was lost: the ends are found again from the tries.
      const kept = loop.log.filter(({ _tag }) => _tag !== "RecheckEnded" && _tag !== "BatchJudged")
      const again = new Loop(loop.rules, loop.completed, [...kept, started(2)])
      again.recover()
      assert.deepStrictEqual(outcomes(again).toSorted(), ["Passed", "Void", "Void", "Void", "Void", "Void"])
    })
  }
})

describe("a batch is not called void by the environment", () => {
  const isJudged = (loop: Loop) => loop.log.some(({ _tag }) => _tag === "BatchJudged")

  it("when cases that failed at first pass before others have been tried", () => {
    const loop = begun(6, rulesOf())
    const ids: Array<string> = []
    for (let n = 0; n < 6; n++) ids.push(loop.take((id) => !ids.includes(id))!.case)
    for (const id of ids.slice(0, 2)) loop.say(id, "new", "failure")
    for (const id of ids.slice(0, 2)) loop.say(loop.take((free) => free === id)!.case, "new", "pass")
    loop.say(ids[2]!, "new", "failure")
    for (const id of ids.slice(3)) loop.say(id, "new", "pass")
    loop.drain(() => "pass")
    assert.isFalse(isJudged(loop))
    assert.deepStrictEqual(new Set(outcomes(loop)), new Set(["Passed"]))
  })

  it("when the cases it was to be checked with are gone", () => {
    const loop = begun(6, rulesOf())
    const failed: Array<string> = []
    for (let n = 0; n < 3; n++) failed.push(loop.take((id) => !failed.includes(id))!.case)
    for (const id of failed) loop.say(id, "new", "failure")
    for (const id of failed.toSorted().slice(0, 2)) loop.completed.delete(id)
    loop.drain(() => "pass")
    assert.isFalse(isJudged(loop))
    assert.deepStrictEqual(outcomes(loop).toSorted(), ["Passed", "Passed", "Passed", "Passed", "Void", "Void"])
  })

  it("when tries on the new version say nothing, however often they are made again", () => {
    const loop = begun(6, rulesOf())
    const ids: Array<string> = []
    for (let n = 0; n < 6; n++) ids.push(loop.take((id) => !ids.includes(id))!.case)
    for (const id of ids.slice(0, 2)) {
      loop.say(id, "new", "failure")
      for (let n = 0; n < 3; n++) loop.say(id, "new", "error")
    }
    loop.say(ids[2]!, "new", "failure")
    assert.isFalse(isJudged(loop))
    assert.deepStrictEqual(outcomes(loop), ["Void", "Void"])
  })
})

describe("a batch that waits for a check", () => {
  it("goes on when the check says nothing, however often it is made again", () => {
    const loop = begun(6, rulesOf())
    // Three first tries, and three on the previous version of each of two cases.
    assert.strictEqual(
      loop.drain((_, arm) => (arm === "new" ? "failure" : "error")),
      9
    )
    assert.strictEqual(loop.state.open.size, 0)
  })

  it("says what came to its end meanwhile when the check is over, before another try", () => {
    const loop = begun(8, rulesOf({ rule: RecheckRule.controlled({ redos: 0 }) }))
    const ids = [...loop.state.open.keys()]
    // The check is made with the first two by name; the last has a second try under way when it is found to be needed.
    const [first, second, third, last] = ids.slice(0, 4).toSorted() as [string, string, string, string]
    for (const id of [last, first, second]) loop.say(id, "new", "failure")
    loop.take((id) => id === last)
    loop.say(third, "new", "failure")
    loop.say(last, "new", "error")
    assert.strictEqual(loop.ended.length, 0)
    loop.say(first, "control", "pass")
    loop.say(second, "control", "failure")
    assert.deepStrictEqual(
      loop.ended.map((ended) => [ended.case, ended.outcome._tag === "Void" && ended.outcome.why]),
      [[last, "broke"]]
    )
  })
})

it("a batch that waits for a check no longer needs it when a recheck of an older apply joins it", () => {
  const rules = { ...rulesOf({ rule: RecheckRule.controlled({ redos: 0 }) }), rechecks: 1 }
  const loop = begun(7, rules)
  const [older] = [...loop.state.open.keys()] as [string]
  rules.rechecks = 6
  loop.apply(2)
  const others = [...loop.state.open.keys()].filter((id) => id !== older)
  const [first, second, last] = others.toSorted() as [string, string, string] // the check is made with the first two
  for (const id of [last, first]) loop.say(id, "new", "failure")
  loop.take((id) => id === last)
  loop.say(second, "new", "failure") // three of six: the check is due
  loop.say(last, "new", "error")
  assert.strictEqual(loop.ended.length, 0)
  assert.strictEqual(loop.take((id) => id === older)?.arm, "new") // three of seven
  assert.deepStrictEqual(
    loop.ended.map((ended) => ended.case),
    [last]
  )
})

describe("a recheck without a counted try", () => {
  /** Three of six have failed, so that the batch waits for its check, and a newer apply has come. */
  const behind = () => {
    const loop = begun(6, rulesOf())
    const failed = [...loop.state.open.keys()].slice(0, 3)
    for (const id of failed) {
      loop.take()
      loop.say(id, "new", "failure")
    }
    loop.apply(2)
    return { loop, failed, others: [...loop.state.open.keys()].filter((id) => !failed.includes(id)) }
  }

  it("joins a newer apply at once, though its batch waits for a check", () => {
    const { loop, others } = behind()
    assert.strictEqual(loop.take()?.case, others[0])
    assert.strictEqual(loop.state.open.get(others[0]!)?.change.apply, "002")
  })

  it("joins a newer apply at once, though it holds", () => {
    const loop = begun(1)
    loop.take()
    const held = { _tag: "RecheckHeld", at: 0, case: "c0", apply: "001", arm: "new", name: "h", until: 500 } as const
    loop.append([held, ...applyOf(2)])
    assert.strictEqual(loop.take()?.case, "c0")
    assert.strictEqual(loop.state.open.get("c0")?.change.apply, "002")
  })

  it("has all its tries again on the newer one", () => {
    const loop = begun(1, rulesOf())
    for (const _ of [1, 2]) {
      loop.take()
      loop.say("c0", "new", "error")
    }
    loop.append(applyOf(2))
    assert.strictEqual(
      loop.drain(() => "error"),
      3
    )
  })

  for (const control of ["failure", "pass"] as const) {
    it(`that had a seat joins it when all of its apply ends, by a control ${control}`, () => {
      const { loop, failed, others } = behind()
      // Known to be reliable, so that the edit is broken at large.
      for (const member of loop.state.batches.get("001")!.members.values()) Object.assign(member, { passed: 20 })
      const isFree = (id: string) => failed.includes(id)
      for (let next = loop.take(isFree); next?.arm === "control"; next = loop.take(isFree)) {
        loop.say(next.case, "control", control)
        if (loop.log.some(({ _tag }) => _tag === "BatchJudged")) break
      }
      assert.include(
        loop.log.map(({ _tag }) => _tag),
        "BatchJudged"
      )
      assert.deepStrictEqual(
        loop.ended.map((ended) => ended.case),
        failed
      )
      for (const id of others) assert.strictEqual(loop.state.open.get(id)?.change.apply, "002", id)
    })
  }
})
