/**
 * What each rule is expected to do, exactly, by walking every course a recheck can take with its probability. Written
 * from the rules as a page would tell them, step by step, and not by way of the function under test.
 */

export interface Rates {
  /** Earlier passes and failures. */
  readonly passed: number
  readonly failed: number
  /** How often the new version passes, and the previous one. */
  readonly now: number
  readonly before: number
}

export interface Expected {
  readonly passed: number
  readonly unstable: number
  readonly regressed: number
  readonly baseline: number
  readonly inconclusive: number
  readonly runs: number
}

const nothing: Expected = { passed: 0, unstable: 0, regressed: 0, baseline: 0, inconclusive: 0, runs: 0 }
const keys = ["passed", "unstable", "regressed", "baseline", "inconclusive", "runs"] as const

const mix = (parts: ReadonlyArray<readonly [weight: number, part: Expected]>): Expected => {
  const sum: { -readonly [key in keyof Expected]: number } = { ...nothing }
  for (const [weight, part] of parts) for (const key of keys) sum[key] += weight * part[key]
  return sum
}

const afterOneRun = (expected: Expected): Expected => ({ ...expected, runs: expected.runs + 1 })

/** Every of `tries` fails → regressed. */
export const expectedAllFail = (tries: number, { now }: Rates, failed = 0): Expected => {
  if (failed === tries) return { ...nothing, regressed: 1 }
  const pass: Expected = { ...nothing, passed: 1, unstable: failed > 0 ? 1 : 0 }
  return afterOneRun(
    mix([
      [now, pass],
      [1 - now, expectedAllFail(tries, { passed: 0, failed: 0, now, before: now }, failed + 1)]
    ])
  )
}

const factorial = (n: number): number => (n < 2 ? 1 : n * factorial(n - 1))
const beta = (a: number, b: number): number => (factorial(a - 1) * factorial(b - 1)) / factorial(a + b - 1)

/** As a ratio of beta functions: how likely `k` failures in a row are, by either account. */
export const factorOf = (k: number, passes: number, failures: number): number =>
  beta(1, 9 + k) / beta(1, 9) / (beta(1 + passes, 1 + failures + k) / beta(1 + passes, 1 + failures))

/** New, new, then control and new in turn, only controls once the factor is reached, eight runs at most. */
export const expectedControlled = (rates: Rates, k = 0, cs = 0, cf = 0): Expected => {
  const { passed, failed, now, before } = rates
  const isReached = k >= 2 && factorOf(k, passed + cs, failed + cf) >= 20
  if (isReached && cs >= 2) return { ...nothing, regressed: 1 }
  if (cf >= 2 && cf > cs) return { ...nothing, baseline: 1 }
  if (k + cs + cf === 8) return { ...nothing, inconclusive: 1 }
  if (k >= 2 && (isReached || cs + cf <= k - 2)) {
    return afterOneRun(
      mix([
        [before, expectedControlled(rates, k, cs + 1, cf)],
        [1 - before, expectedControlled(rates, k, cs, cf + 1)]
      ])
    )
  }
  const pass: Expected = { ...nothing, passed: 1, unstable: k > 0 ? 1 : 0 }
  return afterOneRun(
    mix([
      [now, pass],
      [1 - now, expectedControlled(rates, k + 1, cs, cf)]
    ])
  )
}

const choose = (n: number, k: number): number => factorial(n) / (factorial(k) * factorial(n - k))

/** The mean over what `outcomes` earlier runs at the old rate may have been. */
export const overHistories = (outcomes: number, before: number, expected: (passed: number) => Expected): Expected =>
  mix(
    Array.from({ length: outcomes + 1 }, (_, passed) => [
      choose(outcomes, passed) * before ** passed * (1 - before) ** (outcomes - passed),
      expected(passed)
    ])
  )
