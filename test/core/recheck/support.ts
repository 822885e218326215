import type { RecheckRule } from "shiftboss"

export const counts = (known: Partial<RecheckRule.Counts> = {}): RecheckRule.Counts => ({
  earlierPassed: 1,
  earlierFailed: 0,
  newPassed: 0,
  newFailed: 0,
  controlPassed: 0,
  controlFailed: 0,
  voids: 0,
  ...known
})

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
export const seeded = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Counts with one more try that passed or failed, or said nothing. */
export const afterTry = (
  counts: RecheckRule.Counts,
  arm: RecheckRule.Arm,
  outcome: "pass" | "failure" | "nothing"
): RecheckRule.Counts => {
  if (outcome === "nothing") return { ...counts, voids: counts.voids + 1 }
  const key = `${arm}${outcome === "pass" ? "Passed" : "Failed"}` as const
  return { ...counts, voids: 0, [key]: counts[key] + 1 }
}
