import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { RecheckRule } from "shiftboss"
import { type Expected, expectedAllFail, expectedControlled, factorOf, overHistories, type Rates } from "./oracle.ts"
import { afterTry, counts, seeded } from "./support.ts"

const rates = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99] as const

/** Ten earlier outcomes that are as its rate says. */
const tenAt = (before: number, now = before): Rates => {
  const passed = Math.round(10 * before)
  return { passed, failed: 10 - passed, now, before }
}

const simulate = (rule: RecheckRule.RecheckRule, { passed, failed, now, before }: Rates, trials: number): Expected => {
  const random = seeded(Math.round(1000 * now + before))
  const sum = { passed: 0, unstable: 0, regressed: 0, baseline: 0, inconclusive: 0, runs: 0 }
  for (let trial = 0; trial < trials; trial++) {
    let known = counts({ earlierPassed: passed, earlierFailed: failed })
    let judged = RecheckRule.verdict(known, rule)
    for (; judged._tag === "Run"; judged = RecheckRule.verdict(known, rule)) {
      sum.runs++
      known = afterTry(known, judged.arm, random() < (judged.arm === "new" ? now : before) ? "pass" : "failure")
    }
    if (judged._tag === "Passed") sum.passed++
    if (judged._tag === "Passed" && judged.unstable) sum.unstable++
    if (judged._tag === "Regressed") sum.regressed++
    if (judged._tag === "Void" && judged.reason !== "unjudged") sum[judged.reason]++
  }
  const share = (count: number) => count / trials
  return {
    passed: share(sum.passed),
    unstable: share(sum.unstable),
    regressed: share(sum.regressed),
    baseline: share(sum.baseline),
    inconclusive: share(sum.inconclusive),
    runs: share(sum.runs)
  }
}

/** What lies beyond five standard deviations; that of a recheck's runs is below three. */
const off = (seen: Expected, expected: Expected, trials: number): ReadonlyArray<string> =>
  (Object.keys(seen) as Array<keyof Expected>).filter((key) => {
    const deviation = key === "runs" ? 3 : Math.sqrt(expected[key] * (1 - expected[key]))
    return Math.abs(seen[key] - expected[key]) > (5 * deviation) / Math.sqrt(trials) + 1 / trials
  })

describe("what the rules do to a case that nothing happened to", () => {
  const percent = (share: number) => Number((100 * share).toFixed(2))
  const published = [
    [0.5, 25, 0.39, 2.3],
    [0.6, 16, 1.22, 1.86],
    [0.7, 9, 1.56, 1.52],
    [0.8, 4, 0.72, 1.29],
    [0.9, 1, 0.83, 1.12],
    [0.95, 0.25, 0.25, 1.06]
  ]

  it("is as published, by exact reckoning", () => {
    const found = published.map(([rate]) => {
      const known = tenAt(rate!)
      const one = expectedControlled(known)
      return [rate, percent(expectedAllFail(2, known).regressed), percent(one.regressed), Number(one.runs.toFixed(2))]
    })
    assert.deepStrictEqual(found, published)
  })

  it("stays below two false regressions in a hundred, whatever its ten earlier outcomes were", () => {
    for (const rate of rates) {
      const mean = overHistories(10, rate, (passed) =>
        expectedControlled({ passed, failed: 10 - passed, now: rate, before: rate })
      )
      assert.isBelow(mean.regressed, 0.02)
    }
  })
})

describe("a simulated agent", () => {
  const trials = 20_000
  for (const rate of rates) {
    it(`gets what is expected, unbroken and broken, when it passes ${rate * 100} % of its runs`, () => {
      for (const known of [tenAt(rate), tenAt(rate, 0.1), tenAt(rate, rate / 2)]) {
        const byControls = simulate(RecheckRule.controlled(), known, trials)
        assert.deepStrictEqual(off(byControls, expectedControlled(known), trials), [])
        const byFailures = simulate(RecheckRule.allFail(2), known, trials)
        assert.deepStrictEqual(off(byFailures, expectedAllFail(2, known), trials), [])
      }
    })
  }
})

describe("an environment that breaks", () => {
  const down = (rate: number): Rates => ({ ...tenAt(rate), now: 0, before: 0 })

  it("is blamed on the edit by two of two, and never with controls", () => {
    for (const rate of rates) {
      assert.strictEqual(expectedAllFail(2, down(rate)).regressed, 1)
      const { regressed, baseline, runs } = expectedControlled(down(rate))
      assert.deepStrictEqual([regressed, baseline], [0, 1])
      assert.isAtMost(runs, 5)
    }
  })
})

it("the Bayes factor is the ratio of two beta-binomial likelihoods", () => {
  for (const [newFailed, earlierPassed, earlierFailed] of [
    [1, 1, 0],
    [2, 10, 0],
    [5, 3, 4],
    [8, 20, 3]
  ] as const) {
    const found = RecheckRule.bayesFactor(counts({ newFailed, earlierPassed, earlierFailed }))
    const expected = factorOf(newFailed, earlierPassed, earlierFailed)
    assert.closeTo(found / expected, 1, 1e-9)
  }
})

it("the page about rechecks shows these figures", () => {
  const page = readFileSync(new URL("../../../docs/rechecks.md", import.meta.url), "utf8")
  const percent = (share: number) => `${(100 * share).toFixed(2)} %`
  for (const rate of rates) {
    const [whole, broken] = [tenAt(rate), tenAt(rate, 0.1)]
    const [kept, lost] = [expectedControlled(whole), expectedControlled(broken)]
    const row = [
      rate,
      percent(expectedAllFail(2, whole).regressed),
      percent(kept.regressed),
      expectedAllFail(2, whole).runs.toFixed(2),
      kept.runs.toFixed(2),
      percent(1 - expectedAllFail(2, broken).regressed),
      percent(lost.passed),
      percent(lost.baseline + lost.inconclusive),
      lost.runs.toFixed(2)
    ]
    assert.include(page, `\n| ${row.join(" | ")} |\n`)
  }
})
