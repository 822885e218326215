import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RetryPolicy, Storage } from "shiftboss"
import { makeAgent, policy, settle, turn } from "./agent.ts"
import { hour } from "./play.ts"

const collect = (globalThis as { gc?: () => void }).gc

describe.skipIf(collect === undefined)("10,000 waiting turns", () => {
  const turns = 10_000
  const measured = (inlineWait: number | "Infinity") =>
    Effect.gen(function* () {
      const agent = makeAgent(() => ({ fails: { kind: "RateLimited", scope: "request", resetIn: hour } }))
      yield* Effect.gen(function* () {
        yield* Effect.forkChild(Effect.ignore(RetryPolicy.run(turn({ id: "warm" }))))
        yield* settle
        collect?.()
        const before = process.memoryUsage().heapUsed
        for (let number = 0; number < turns; number++) {
          const run = RetryPolicy.run(turn({ id: `turn-${number}`, rules: { inlineWait } }))
          yield* Effect.forkChild(Effect.ignore(run))
          if (number % 100 === 0) yield* settle
        }
        yield* settle
        assert.strictEqual(agent.launches.length, turns + 1)
        agent.launches.length = 0
        collect?.()
        const each = (process.memoryUsage().heapUsed - before) / turns
        console.log(
          `inlineWait ${inlineWait}: ${Math.round(each)} bytes for each of ${turns} waiting turns, journal in memory included`
        )
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
    })
  it.effect("held", () => measured(0))
  it.effect("inline", () => measured("Infinity"))
})
