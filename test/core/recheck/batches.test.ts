/** What a batch knows of its rechecks, and what is asked for in its name. */
import { assert, describe, it } from "@effect/vitest"
import { RecheckRule } from "shiftboss"
import { applyOf, begun, cases, Loop, rulesOf, started } from "./loop.ts"

const outcomeOf = (loop: Loop, id: string) => loop.ended.findLast((ended) => ended.case === id)?.outcome

describe("an edit that is broken at large", () => {
  it("is repaired at the request of the case that had passed most often, and of no other", () => {
    const completed = new Map([...cases(6)].slice(1))
    const loop = new Loop(rulesOf(), completed)
    loop.append([started(1)])
    for (const n of [1, 2, 3]) {
      loop.apply(n)
      loop.drain(() => "pass")
    }
    completed.set("c0", 1) // completed later: it has passed once, the others four times
    loop.apply(4)
    for (const id of ["c2", "c0", "c1", "c3"]) loop.say(id, "new", "failure")
    for (const id of ["c1", "c2"]) loop.say(id, "control", "pass")
    assert.deepStrictEqual(
      ["c0", "c1", "c2", "c3"].map((id) => outcomeOf(loop, id)),
      [
        { _tag: "Regressed", confirmed: true, request: null },
        { _tag: "Regressed", confirmed: true, request: "c1@recheck-004" },
        { _tag: "Regressed", confirmed: true, request: null },
        { _tag: "Regressed", confirmed: true, request: null }
      ]
    )
    const others = { _tag: "Void", why: "edit", reason: "the edit is broken at large, as other cases show" } as const
    assert.deepStrictEqual(
      ["c4", "c5"].map((id) => outcomeOf(loop, id)),
      [others, others]
    )
    assert.deepStrictEqual([...loop.state.repairs.values()], ["c1"])
  })
})

describe("the batch of an apply", () => {
  it("has no recheck that has joined a newer apply, and is gone with the last of them", () => {
    const loop = begun(2, rulesOf())
    const [first, second] = [...loop.state.open.keys()] as [string, string]
    loop.append(applyOf(2))
    const move = (id: string) => loop.append([{ _tag: "RecheckMoved", at: 0, case: id, apply: "001", to: "002" }])
    move(first)
    assert.deepStrictEqual([...(loop.state.batches.get("001")?.members.keys() ?? [])], [second])
    move(second)
    assert.isFalse(loop.state.batches.has("001"))
    assert.deepStrictEqual([...(loop.state.batches.get("002")?.members.keys() ?? [])], [first, second])
  })

  it("has no recheck that ended before it was tried, and counts on others that did", () => {
    const loop = begun(4, rulesOf())
    const [gone, failed] = [...loop.state.open.keys()] as [string, string]
    loop.completed.delete(gone)
    loop.say(failed, "new", "failure")
    loop.take((id) => id === gone)
    const batch = loop.state.batches.get("001")
    assert.deepStrictEqual([batch?.members.has(gone), batch?.members.has(failed), batch?.failures], [false, true, 1])
    loop.drain(() => "pass")
    assert.strictEqual(loop.state.batches.size, 0)
  })
})

describe("what is kept of a case", () => {
  it("says that it is unstable until a recheck passes at once", () => {
    const loop = begun(1, rulesOf({ rule: RecheckRule.allFail(2) }))
    const says = ["failure", "pass", "pass"] as const
    let n = 0
    loop.drain(() => says[n++]!)
    assert.deepStrictEqual([...loop.state.unstable], ["c0"])
    loop.apply(2)
    loop.drain(() => "pass")
    assert.deepStrictEqual([...loop.state.unstable], [])
  })

  it("loses the repairs that it asked for when it begins anew, and no others", () => {
    const loop = begun(2)
    loop.drain(() => "failure")
    assert.deepStrictEqual([...loop.state.repairs.values()].toSorted(), ["c0", "c1"])
    loop.append([{ _tag: "CaseForgotten", at: 0, case: "c0", rev: 1 }])
    assert.deepStrictEqual([...loop.state.repairs.values()], ["c1"])
  })

  it("is not that it asks for a repair which was cancelled", () => {
    const loop = begun(2)
    loop.drain(() => "failure")
    const [cancelled, kept] = [...loop.state.repairs] as [[string, string], [string, string]]
    loop.append([{ _tag: "RequestCancelled", at: 0, case: cancelled[1], rev: 1, request: cancelled[0] }])
    assert.deepStrictEqual([...loop.state.repairs], [kept])
  })
})
