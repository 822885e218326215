import { assert, describe, it } from "@effect/vitest"
import { Counters, type Usage } from "shiftboss"

const tokens = (input: number, output: number): Usage.Usage => ({
  input,
  output,
  cacheRead: 0,
  cacheWrite: 0,
  reasoning: null
})

interface Given {
  readonly id?: string
  readonly usage?: Usage.Usage | null
  readonly costUsd?: number | null
  readonly counters?: Counters.Scopes
  readonly resumed?: boolean
}

const shares = (results: ReadonlyArray<Given>): ReadonlyArray<Counters.Share> => {
  let ledger = Counters.empty
  return results.map(({ id = "s", usage = null, costUsd = null, counters, resumed = false }) => {
    const [share, next] = Counters.share(ledger, { sessionId: id, usage, costUsd, counters }, resumed)
    ledger = next
    return share
  })
}

const perSession = { usage: "session", cost: "session" } as const
const claude = { usage: "attempt", cost: "session" } as const

describe("Counters", () => {
  it("takes counters of the attempt as they are", () => {
    const found = shares([
      { usage: tokens(100, 25), costUsd: 0.5 },
      { usage: tokens(100, 25), costUsd: 0.5, resumed: true }
    ])
    assert.deepStrictEqual(found, [
      { usage: tokens(100, 25), costUsd: 0.5 },
      { usage: tokens(100, 25), costUsd: 0.5 }
    ])
  })

  it("divides a Codex thread over three resumes", () => {
    const found = shares(
      [1, 2, 3, 4].map((n) => ({ usage: tokens(80 * n, 25 * n), counters: perSession, resumed: n > 1 }))
    )
    assert.deepStrictEqual(
      found.map((share) => share.usage),
      [tokens(80, 25), tokens(80, 25), tokens(80, 25), tokens(80, 25)]
    )
  })

  it("divides a cost of the session while the usage is of the attempt", () => {
    const found = shares([
      { usage: tokens(5000, 1000), costUsd: 0.08, counters: claude },
      { usage: tokens(100, 25), costUsd: 0.0809, counters: claude, resumed: true }
    ])
    assert.deepStrictEqual(found[1]?.usage, tokens(100, 25))
    assert.closeTo(found[1]?.costUsd ?? 0, 0.0009, 1e-9)
  })

  it("does not take the zero totals of a crash for a reset", () => {
    const found = shares([
      { usage: tokens(100, 50), costUsd: 0.08, counters: perSession },
      { usage: tokens(0, 0), costUsd: 0, counters: perSession, resumed: true },
      { usage: tokens(150, 60), costUsd: 0.1, counters: perSession, resumed: true }
    ])
    assert.deepStrictEqual(found[1], { usage: null, costUsd: null })
    assert.deepStrictEqual(found[2]?.usage, { input: 50, output: 10, cacheRead: 0, cacheWrite: 0, reasoning: null })
    assert.closeTo(found[2]?.costUsd ?? 0, 0.02, 1e-9)
  })

  it("takes a counter that was started again whole", () => {
    const found = shares([
      { usage: tokens(100, 50), costUsd: 0.08, counters: perSession },
      { usage: tokens(30, 60), costUsd: 0.01, counters: perSession, resumed: true }
    ])
    assert.deepStrictEqual(found[1], { usage: tokens(30, 60), costUsd: 0.01 })
  })

  it("goes on from the last total it knows after an attempt that told none", () => {
    const found = shares([
      { usage: tokens(100, 50), counters: perSession },
      { usage: null, counters: perSession, resumed: true },
      { usage: tokens(300, 70), counters: perSession, resumed: true }
    ])
    assert.deepStrictEqual(
      found.map((share) => share.usage),
      [tokens(100, 50), null, tokens(200, 20)]
    )
  })

  it("finds what an attempt used that was killed in the share of the next", () => {
    const found = shares([
      { usage: null, counters: perSession },
      { usage: tokens(160, 50), counters: perSession, resumed: true },
      { usage: tokens(240, 75), counters: perSession, resumed: true }
    ])
    assert.deepStrictEqual(
      found.map((share) => share.usage),
      [null, tokens(160, 50), tokens(80, 25)]
    )
  })

  it("cannot divide the first total of a session that was in use before", () => {
    const found = shares([
      { usage: tokens(900, 90), costUsd: 9, counters: perSession, resumed: true },
      { usage: tokens(1000, 100), costUsd: 10, counters: perSession, resumed: true }
    ])
    assert.deepStrictEqual(found, [
      { usage: null, costUsd: null },
      { usage: tokens(100, 10), costUsd: 1 }
    ])
  })

  it("says of a session that costs nothing, or nothing more, that it costs nothing", () => {
    const found = shares([
      { costUsd: 0, counters: perSession },
      { costUsd: 0, counters: perSession, resumed: true },
      { costUsd: 2, counters: perSession, resumed: true },
      { costUsd: 2, counters: perSession, resumed: true }
    ])
    assert.deepStrictEqual(
      found.map((share) => share.costUsd),
      [0, 0, 2, 0]
    )
  })

  it("does not compare a total with what an attempt alone had used", () => {
    const found = shares([
      { usage: tokens(100, 50), costUsd: 5 },
      { usage: tokens(160, 80), costUsd: 8, counters: perSession, resumed: true }
    ])
    assert.deepStrictEqual(found[1], { usage: tokens(160, 80), costUsd: 8 })
  })

  it("does not divide a field that one of two totals leaves out, and the others all the same", () => {
    const with_ = (input: number, reasoning: number | null) => ({ ...tokens(input, 1), reasoning })
    const found = shares(
      [with_(10, null), with_(30, 7), with_(60, null)].map((usage) => ({ usage, counters: perSession }))
    )
    assert.deepStrictEqual(
      found.map(({ usage }) => [usage?.input, usage?.output, usage?.reasoning]),
      [
        [10, 1, null],
        [20, 0, null],
        [30, 0, null]
      ]
    )
  })

  it("learns nothing from a result without a session, and does not take it for one of a session called null", () => {
    const result = { sessionId: null, usage: null, costUsd: 3, counters: perSession }
    const [first, ledger] = Counters.share(Counters.empty, result, false)
    assert.deepStrictEqual([first.costUsd, ledger], [3, Counters.empty])
    const [, called] = Counters.share(ledger, { ...result, sessionId: "null" }, false)
    assert.deepStrictEqual(Counters.share(called, { ...result, costUsd: 5 }, true), [
      { usage: null, costUsd: null },
      called
    ])
  })

  it("keeps sessions apart", () => {
    const found = shares([
      { id: "a", costUsd: 1, counters: perSession },
      { id: "b", costUsd: 3, counters: perSession },
      { id: "a", costUsd: 2, counters: perSession, resumed: true }
    ])
    assert.deepStrictEqual(
      found.map((share) => share.costUsd),
      [1, 3, 1]
    )
  })
})
