import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { judgeBatch, type Member } from "../../../src/core/internal/recheck/batch.ts"

const member = (id: string, first: Member["first"], control: Member["control"] = null, passed = 10): Member => ({
  case: id,
  passed,
  failed: 0,
  first,
  control
})

describe("the rechecks of one apply together", () => {
  it("are left alone while fewer than three, or fewer than half of all there are to be, failed", () => {
    const usual = { _tag: "Usual" }
    assert.deepStrictEqual(
      judgeBatch(
        ["a", "b"].map((id) => member(id, "failed")),
        false
      ),
      usual
    )
    const three = ["a", "b", "c"].map((id) => member(id, "failed"))
    const waiting = ["d", "e", "f", "g"].map((id) => member(id, null))
    assert.deepStrictEqual(judgeBatch([...three, ...waiting], false), usual)
    assert.deepStrictEqual(judgeBatch([...three, ...waiting.slice(1)], false)._tag, "Check")
  })

  it("check the environment with the two most reliable cases that failed", () => {
    const failed = [member("a", "failed", null, 3), member("b", "failed", null, 9), member("c", "failed", null, 5)]
    const passed = [member("d", "passed", null, 20)]
    assert.deepStrictEqual(judgeBatch([...failed, ...passed], false), { _tag: "Check", cases: ["b", "c"] })
  })

  it("check nothing with cases whose recheck is over, nor with one alone", () => {
    const gone = [member("a", "failed", "gone", 20), member("b", "failed", "gone", 20)]
    const open = [member("c", "failed", null, 3), member("d", "failed", null, 2)]
    assert.deepStrictEqual(judgeBatch([...gone, ...open], false), { _tag: "Check", cases: ["c", "d"] })
    assert.deepStrictEqual(judgeBatch([...gone, ...open.slice(1)], false), { _tag: "Usual" })
  })

  it("keep to the cases of the check while other tries end", () => {
    const members = [
      member("a", "failed", "failed", 3),
      member("b", "failed", null, 5),
      member("c", "failed", null, 4),
      member("d", "failed", null, 4)
    ]
    assert.deepStrictEqual(judgeBatch(members, false), { _tag: "Check", cases: ["b"] })
  })

  it("are void when the previous version fails too, or cannot be judged at all", () => {
    for (const control of ["failed", "void"] as const) {
      const members = [member("a", "failed", "failed"), member("b", "failed", control), member("c", "failed")]
      assert.deepStrictEqual(judgeBatch(members, false), { _tag: "EnvironmentDown" })
    }
  })

  it("find the edit broken at large when both controls pass, and ask a repair of no repair", () => {
    const members = [member("a", "failed", "passed"), member("b", "failed", "passed"), member("c", "failed")]
    assert.deepStrictEqual(judgeBatch(members, false), { _tag: "EditBroken", repair: true })
    assert.deepStrictEqual(judgeBatch(members, true), { _tag: "EditBroken", repair: false })
  })

  it("go on one by one when the controls disagree", () => {
    const members = [member("a", "failed", "passed"), member("b", "failed", "failed"), member("c", "failed")]
    assert.deepStrictEqual(judgeBatch(members, false), { _tag: "Usual" })
  })

  it("do not take an unlucky hand of flaky cases for a broken edit", () => {
    const flaky = (id: string, first: Member["first"], control: Member["control"]): Member => ({
      case: id,
      passed: 6,
      failed: 4,
      first,
      control
    })
    const failed = ["a", "b", "c", "d"].map((id) => flaky(id, "failed", "passed"))
    const passed = ["e", "f", "g", "h"].map((id) => flaky(id, "passed", null))
    assert.deepStrictEqual(judgeBatch([...failed, ...passed], false), { _tag: "Usual" })
  })

  it("say the same in whatever order they are told", () => {
    const members = fc.uniqueArray(
      fc.record({
        case: fc.string({ maxLength: 3 }),
        passed: fc.nat(9),
        failed: fc.nat(9),
        first: fc.constantFrom("passed", "failed", "failed", null),
        control: fc.constantFrom("passed", "failed", "void", "gone", null)
      }),
      { selector: (one) => one.case, maxLength: 9 }
    )
    fc.assert(
      fc.property(members, fc.boolean(), (members, isRepair) => {
        const found = judgeBatch(members, isRepair)
        assert.deepStrictEqual(judgeBatch(members.toReversed(), isRepair)._tag, found._tag)
        if (found._tag === "Check") assert.isAtMost(found.cases.length, 2)
      })
    )
  })
})
