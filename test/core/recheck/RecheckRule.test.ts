import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { RecheckRule } from "shiftboss"
import { afterTry, counts } from "./support.ts"

const few = fc.integer({ min: 0, max: 9 })
const anyCounts = fc.record({
  earlierPassed: fc.nat(40),
  earlierFailed: fc.nat(40),
  newPassed: fc.constantFrom(0, 0, 0, 1),
  newFailed: few,
  controlPassed: few,
  controlFailed: few,
  voids: fc.nat(3)
})
const anyRule: fc.Arbitrary<RecheckRule.RecheckRule> = fc.oneof(
  fc.integer({ min: 1, max: 4 }).map(RecheckRule.allFail),
  fc
    .record({
      bayesFactor: fc.double({ min: 1.5, max: 100, noNaN: true }),
      failures: fc.integer({ min: 1, max: 3 }),
      controlPasses: fc.nat(3),
      controlFailures: fc.integer({ min: 1, max: 3 }),
      runs: fc.integer({ min: 3, max: 12 }),
      redos: fc.nat(3),
      controls: fc.boolean()
    })
    .map(RecheckRule.controlled)
)
type Outcome = "pass" | "failure" | "nothing"
const outcomes = fc.array(fc.constantFrom<Outcome>("pass", "failure", "failure", "failure", "nothing"), {
  minLength: 60,
  maxLength: 60
})

/** Follows the rule to its end: what it said, and the tries it took. */
const follow = (rule: RecheckRule.RecheckRule, from: RecheckRule.Counts, answers: ReadonlyArray<Outcome>) => {
  let now = from
  const tries: Array<{ readonly arm: RecheckRule.Arm; readonly outcome: Outcome }> = []
  for (;;) {
    const judgement = RecheckRule.verdict(now, rule)
    if (judgement._tag !== "Run") return { judgement, tries }
    const outcome = answers[tries.length]!
    tries.push({ arm: judgement.arm, outcome })
    now = afterTry(now, judgement.arm, outcome)
  }
}

describe("allFail", () => {
  it("runs the new version until a try passes or all have failed", () => {
    const rule = RecheckRule.allFail()
    assert.deepStrictEqual(RecheckRule.verdict(counts(), rule), { _tag: "Run", arm: "new", redo: false })
    assert.deepStrictEqual(RecheckRule.verdict(counts({ newPassed: 1 }), rule), { _tag: "Passed", unstable: false })
    assert.deepStrictEqual(RecheckRule.verdict(counts({ newFailed: 1 }), rule), {
      _tag: "Run",
      arm: "new",
      redo: false
    })
    assert.deepStrictEqual(RecheckRule.verdict(counts({ newFailed: 1, newPassed: 1 }), rule), {
      _tag: "Passed",
      unstable: true
    })
    assert.deepStrictEqual(RecheckRule.verdict(counts({ newFailed: 2 }), rule), { _tag: "Regressed" })
  })

  it("is void at the first try that says nothing", () => {
    const rule = RecheckRule.allFail(3)
    assert.deepStrictEqual(RecheckRule.verdict(counts({ newFailed: 1, voids: 1 }), rule), {
      _tag: "Void",
      reason: "unjudged"
    })
  })
})

describe("controlled", () => {
  const rule = RecheckRule.controlled()

  it("needs as many failures, once two controls passed, as the table of the rule says", () => {
    const needed = (earlierFailed: number, earlierPassed: number) => {
      for (let newFailed = 1; ; newFailed++) {
        const now = counts({ earlierPassed, earlierFailed, newFailed, controlPassed: 2 })
        if (newFailed >= 2 && RecheckRule.bayesFactor(now) >= 20) return newFailed
      }
    }
    const table = [0, 1, 2, 3].map((failed) => [1, 2, 3, 5, 8, 10, 15, 20].map((passed) => needed(failed, passed)))
    assert.deepStrictEqual(table, [
      [3, 3, 2, 2, 2, 2, 2, 2],
      [5, 4, 3, 3, 2, 2, 2, 2],
      [7, 5, 4, 3, 3, 3, 2, 2],
      [8, 6, 5, 4, 3, 3, 2, 2]
    ])
  })

  it("can believe five failures at most within its eight runs", () => {
    const answers = (earlierPassed: number, earlierFailed: number) => {
      let now = counts({ earlierPassed, earlierFailed })
      for (;;) {
        const judgement = RecheckRule.verdict(now, rule)
        if (judgement._tag !== "Run") return [judgement._tag, now.newFailed]
        now = afterTry(now, judgement.arm, judgement.arm === "new" ? "failure" : "pass")
      }
    }
    assert.deepStrictEqual(answers(10, 0), ["Regressed", 2])
    assert.deepStrictEqual(answers(1, 1), ["Regressed", 4]) // a third control passed before the fifth failure was needed
    assert.deepStrictEqual(answers(1, 3), ["Void", 5])
  })

  it("takes control and new in turn, and only controls once the failures are likely enough", () => {
    const arms = (earlierPassed: number, earlierFailed: number, isGood: boolean) => {
      const from = counts({ earlierPassed, earlierFailed })
      let now = from
      let arms = ""
      for (;;) {
        const judgement = RecheckRule.verdict(now, rule)
        if (judgement._tag !== "Run") return `${arms} ${judgement._tag}`
        arms += judgement.arm === "new" ? "n" : "c"
        now = afterTry(now, judgement.arm, judgement.arm === "control" && isGood ? "pass" : "failure")
      }
    }
    assert.strictEqual(arms(1, 3, true), "nncncncn Void")
    assert.strictEqual(arms(10, 0, true), "nncc Regressed")
    assert.strictEqual(arms(10, 0, false), "nncc Void")
  })

  it("is void when the previous version fails as well", () => {
    assert.deepStrictEqual(RecheckRule.verdict(counts({ newFailed: 3, controlFailed: 2 }), rule), {
      _tag: "Void",
      reason: "baseline"
    })
  })

  it("makes a try that says nothing again, twice at most", () => {
    const arm = "control" as const
    assert.deepStrictEqual(RecheckRule.verdict(counts({ newFailed: 2, voids: 2 }), rule), {
      _tag: "Run",
      arm,
      redo: true
    })
    assert.deepStrictEqual(RecheckRule.verdict(counts({ newFailed: 2, voids: 3 }), rule), {
      _tag: "Void",
      reason: "unjudged"
    })
  })

  it("without controls runs the new version only, and asks for no repair", () => {
    const alone = RecheckRule.controlled({ controls: false })
    assert.deepStrictEqual(RecheckRule.verdict(counts({ earlierPassed: 4, newFailed: 2 }), alone)._tag, "Run")
    assert.deepStrictEqual(RecheckRule.verdict(counts({ earlierPassed: 5, newFailed: 2 }), alone)._tag, "Regressed")
    assert.deepStrictEqual([alone, rule, RecheckRule.allFail()].map(RecheckRule.asksForRepair), [false, true, true])
  })
})

describe("every rule", () => {
  it("ends, within its runs, each of them made again at most as often as it says", () => {
    fc.assert(
      fc.property(anyRule, fc.nat(20), fc.nat(20), outcomes, (rule, earlierPassed, earlierFailed, answers) => {
        const { tries } = follow(rule, counts({ earlierPassed, earlierFailed }), answers)
        const counted = tries.filter(({ outcome }) => outcome !== "nothing").length
        const runs = rule._tag === "AllFail" ? rule.tries : rule.runs
        const redos = rule._tag === "AllFail" ? 0 : rule.redos
        assert.isAtMost(counted, runs)
        assert.isAtMost(tries.length, (counted + 1) * (redos + 1))
      })
    )
  })

  it("does not go by the order of the tries inside an arm", () => {
    fc.assert(
      fc.property(
        anyRule,
        fc.array(fc.tuple(fc.constantFrom("new", "control"), fc.boolean())),
        fc.nat(),
        (rule, tries, seed) => {
          const fold = (ordered: typeof tries) =>
            ordered.reduce((now, [arm, passed]) => afterTry(now, arm, passed ? "pass" : "failure"), counts())
          const shuffled = tries.map((one, at) => [(at * 7919 + seed) % 101, one] as const)
          const other = shuffled.toSorted(([one], [two]) => one - two).map(([, one]) => one)
          assert.deepStrictEqual(RecheckRule.verdict(fold(tries), rule), RecheckRule.verdict(fold(other), rule))
        }
      )
    )
  })

  it("judges tries with void ones among them as without", () => {
    fc.assert(
      fc.property(anyRule, anyCounts, fc.constantFrom("pass", "failure"), (rule, before, outcome) => {
        const arm = "new" as const
        const plain = afterTry(before, arm, outcome)
        const redone = afterTry(afterTry(before, arm, "nothing"), arm, outcome)
        assert.deepStrictEqual(RecheckRule.verdict(redone, rule), RecheckRule.verdict(plain, rule))
      })
    )
  })

  it("never calls a pass on the new version a regression", () => {
    fc.assert(
      fc.property(anyRule, anyCounts, (rule, before) => {
        assert.strictEqual(RecheckRule.verdict({ ...before, newPassed: 1 }, rule)._tag, "Passed")
      })
    )
  })

  it("is never moved towards passed by one more failure on the new version", () => {
    const standing = { Passed: 0, Void: 1, Run: 1, Regressed: 2 } as const
    fc.assert(
      fc.property(anyRule, anyCounts, (rule, before) => {
        const judged = RecheckRule.verdict(before, rule)
        const after = RecheckRule.verdict(afterTry(before, "new", "failure"), rule)
        assert.isAtLeast(standing[after._tag], standing[judged._tag])
      }),
      { numRuns: 1000 }
    )
  })

  it("refuses options that mean nothing", () => {
    assert.throws(() => RecheckRule.allFail(0), /tries must be a whole number of at least 1, not 0/)
    assert.throws(() => RecheckRule.controlled({ runs: 1 }), /runs must be a whole number of at least 2/)
    assert.throws(() => RecheckRule.controlled({ bayesFactor: 1 }), /bayesFactor must be above 1/)
  })
})
