import { assert, describe, it } from "@effect/vitest"
import { Verdict } from "shiftboss"

const rubric = (...passed: ReadonlyArray<boolean>) => passed.map((passed, at) => ({ name: `item ${at}`, passed }))

describe("Verdict", () => {
  it("counts only what was graded", () => {
    const verdicts: ReadonlyArray<Verdict.Verdict<string>> = [
      Verdict.right(),
      Verdict.wrong("say why"),
      Verdict.void("the reference answer is missing"),
      Verdict.unread("no verdict line")
    ]
    assert.deepStrictEqual(verdicts.map(Verdict.countsAs), ["pass", "failure", "nothing", "nothing"])
  })

  it("counts a right answer with a failed rubric item as a failure", () => {
    assert.strictEqual(Verdict.countsAs(Verdict.right({ rubric: rubric(true, true), repair: "" })), "pass")
    const flawed = Verdict.right({ rubric: rubric(true, false), repair: "no source named" })
    assert.strictEqual(Verdict.countsAs(flawed), "failure")
    assert.strictEqual(flawed.repair, "no source named")
  })

  it("has a score only with a rubric", () => {
    assert.strictEqual(Verdict.score(Verdict.wrong("x", rubric(true, false, false, true))), 0.5)
    assert.strictEqual(Verdict.score(Verdict.right()), null)
    assert.strictEqual(Verdict.score(Verdict.void("x")), null)
  })
})
