import { assert, describe, it } from "@effect/vitest"
import type { DispatcherEvent } from "shiftboss"
import { add, initial, rows } from "../../../src/core/internal/dispatch/usage.ts"

type Spent = Extract<DispatcherEvent.DispatcherEvent, { readonly _tag: "TurnSpent" }>
type One = Spent["spent"][number]

const tokens = (input: number, reasoning: number | null = null) => ({
  ...{ input, output: 2, cacheRead: 0, cacheWrite: null, reasoning }
})
const attempt = (one: Partial<One>): One => ({
  ...{ model: "m", usage: null, usageSoFar: null, costUsd: null, estimatedCostUsd: null },
  ...one
})

const of = (
  ...events: ReadonlyArray<readonly [recheck: string | null, stage: string, ...spent: ReadonlyArray<One>]>
) => {
  const state = initial()
  for (const [recheck, stage, ...spent] of events) {
    add(state, { _tag: "TurnSpent", at: 0, case: "a", rev: 1, recheck, turnId: "t", stage, attempt: 1, spent })
  }
  return rows(state)
}

describe("usage", () => {
  it("is summed by what it was part of, stage and model, rows of cases first", () => {
    const seen = of(
      ["001", "grade", attempt({}), attempt({ model: null })],
      [null, "answer", attempt({}), attempt({}), attempt({ model: "n" })],
      [null, "grade", attempt({})],
      ["002", "grade", attempt({})],
      [null, "answer", attempt({})]
    )
    assert.deepStrictEqual(
      seen.map((row) => [row.of, row.stage, row.model, row.attempts]),
      [
        ["cases", "answer", "m", 3],
        ["cases", "answer", "n", 1],
        ["cases", "grade", "m", 1],
        ["rechecks", "grade", "m", 2],
        ["rechecks", "grade", null, 1]
      ]
    )
  })

  it("is a total when every attempt told it whole, and otherwise what is known", () => {
    const [whole] = of([null, "s", attempt({ usage: tokens(5, 1) }), attempt({ usage: tokens(7, 3) })])
    assert.deepStrictEqual(whole?.usage, {
      input: { total: 12, known: 12 },
      output: { total: 4, known: 4 },
      cacheRead: { total: 0, known: 0 },
      cacheWrite: { total: null, known: null },
      reasoning: { total: 4, known: 4 }
    })
    const [part] = of([null, "s", attempt({ usage: tokens(5, 1) }), attempt({ usage: tokens(7) }), attempt({})])
    assert.deepStrictEqual(
      [part?.usage.input, part?.usage.reasoning],
      [
        { total: null, known: 12 },
        { total: null, known: 1 }
      ]
    )
    const [soFar] = of([null, "s", attempt({ usage: tokens(5) }), attempt({ usageSoFar: tokens(7) })])
    assert.deepStrictEqual(soFar?.usage.input, { total: null, known: 12 })
    const [both] = of([null, "s", attempt({ usage: tokens(5), usageSoFar: tokens(4) })])
    assert.deepStrictEqual(both?.usage.input, { total: 5, known: 5 })
  })

  it("costs what was told, and apart from it what was estimated", () => {
    const [told] = of([null, "s", attempt({ costUsd: 1 }), attempt({ costUsd: 0.5 })])
    assert.deepStrictEqual([told?.costUsd, told?.estimatedCostUsd], [{ total: 1.5, known: 1.5 }, null])
    const [some] = of([
      null,
      "s",
      attempt({ costUsd: 1 }),
      attempt({ estimatedCostUsd: 2 }),
      attempt({ estimatedCostUsd: 3 })
    ])
    assert.deepStrictEqual([some?.costUsd, some?.estimatedCostUsd], [{ total: null, known: 1 }, 5])
  })
})
