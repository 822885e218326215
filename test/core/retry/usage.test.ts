/**
 * What is known of the usage of attempts that were cut off before they could tell it in a result.
 */
import { assert, describe, it } from "@effect/vitest"
import { type AgentLauncher, type Counters, RetryPolicy, Storage, type Usage } from "shiftboss"
import { Effect, Fiber } from "effect"
import { type Act, advance, makeAgent, policy, seen, settle, turn } from "./agent.ts"
import { crashing } from "./crash.ts"
import { minute, second } from "./play.ts"

const scripted = (...acts: ReadonlyArray<Act>) => makeAgent((attempt) => acts[attempt.number - 1] ?? {})

const tokens = (input: number, output: number | null = 0): Usage.Usage => ({
  ...{ input, output, cacheRead: 0, cacheWrite: 0, reasoning: null }
})

const told = (usage: Usage.Usage, counter?: Counters.CounterScope): AgentLauncher.Activity => ({
  ...{ _tag: "UsageSoFar", usage, counter }
})

/** Cut off ten seconds after it told that. */
const cut = (...usage: ReadonlyArray<AgentLauncher.Activity>): Act => ({
  ...{ fails: "Interrupted", after: 10 * second, activity: [seen("session-1"), ...usage] }
})

const prices = { m: { input: 2, output: 10 } }

describe("usage that was told before an attempt was cut off", () => {
  it.effect("is the known part of an unknown sum, the last word of each attempt counting", () =>
    Effect.gen(function* () {
      const agent = scripted(cut(told(tokens(10)), told(tokens(100))), { result: { usage: tokens(7, 3), costUsd: 1 } })
      const outcome = yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* advance(minute)
        return yield* Fiber.join(fiber)
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
      assert.deepStrictEqual(
        outcome.attempts.map(({ usage, usageSoFar }) => [usage, usageSoFar]),
        [
          [null, tokens(100)],
          [tokens(7, 3), null]
        ]
      )
      assert.deepStrictEqual(outcome.totals.usage.input, { total: null, known: 107 })
      assert.deepStrictEqual(outcome.totals.usage.reasoning, { total: null, known: null })
      assert.deepStrictEqual(outcome.totals.costUsd, { total: null, known: 1 })
    })
  )

  it.effect("counts against the budget as far as it has a price, and leaves the budget unverified", () =>
    Effect.gen(function* () {
      // Half a million tokens at two dollars a million; how long the answer was it did not tell.
      const agent = scripted(cut(told(tokens(500_000, null))), cut(told(tokens(600_000, null))))
      const outcome = yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn({ model: "m", budgetUsd: 2 })))
        yield* advance(minute)
        return yield* Fiber.join(fiber)
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory, { prices })))
      assert.deepStrictEqual(
        agent.launches.map(({ attempt }) => attempt.budgetUsd),
        [2, 1]
      )
      assert.strictEqual(outcome.rule, "budget-exhausted")
      assert.deepStrictEqual(
        outcome.attempts.map(({ costUsd, estimatedCostUsd }) => [costUsd, estimatedCostUsd]),
        [
          [null, 1],
          [null, 1.2]
        ]
      )
      assert.strictEqual(outcome.totals.estimatedCostUsd, 2.2)
      assert.isFalse(outcome.budgetVerified)
    })
  )

  it.effect("outlives the death of the host, and counts against the budget then too", () =>
    Effect.gen(function* () {
      const entries: Array<Storage.Json> = []
      const agent = scripted({ ...cut(told(tokens(750_000))), after: 100 * minute }, { result: { costUsd: 0.25 } })
      agent.reaps = "stopped"
      const asked = turn({ model: "m", budgetUsd: 2 })
      // 1 TurnStarted, 2 AttemptStarted, 3 AgentIdentified, 4 SessionSeen, 5 UsageTold
      const host = crashing(entries, { at: 5, written: true })
      yield* Effect.forkDetach(Effect.provide(RetryPolicy.run(asked), policy(agent, host.layer)))
      yield* host.crashed
      yield* settle
      const successor = policy(agent, crashing(entries, undefined).layer, { prices })
      const outcome = yield* Effect.provide(RetryPolicy.run(asked), successor)
      assert.strictEqual(agent.launches[1]?.attempt.budgetUsd, 0.5)
      assert.deepStrictEqual(outcome.totals.usage.input, { total: null, known: 750_000 })
      assert.deepStrictEqual(outcome.totals.costUsd, { total: null, known: 0.25 })
      assert.strictEqual(outcome.totals.estimatedCostUsd, 1.5)
    })
  )

  it.effect("is kept of an attempt that is stopped, and of one whose turn is interrupted", () =>
    Effect.gen(function* () {
      for (const ends of ["stop", "interrupt"] as const) {
        const agent = scripted({ ...cut(told(tokens(5))), after: 100 * minute })
        yield* Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
          yield* advance(second)
          yield* ends === "stop" ? RetryPolicy.stop("t") : Fiber.interrupt(fiber)
          const { totals } = yield* RetryPolicy.run(turn())
          assert.deepStrictEqual(totals.usage.input, { total: null, known: 5 }, ends)
        }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
      }
    })
  )

  it.effect("of a counter that goes on over the session is taken apart, and the next result is the rest", () =>
    Effect.gen(function* () {
      const counters = { usage: "session", cost: "attempt" } as const
      const agent = scripted(cut(told(tokens(100), "session")), cut(told(tokens(150), "session")), {
        result: { usage: tokens(400), counters, sessionId: "session-1" }
      })
      const outcome = yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* advance(2 * minute)
        return yield* Fiber.join(fiber)
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
      assert.deepStrictEqual(
        outcome.attempts.map(({ usage, usageSoFar }) => (usage ?? usageSoFar)?.input),
        [100, 50, 250]
      )
      // Known in full by the counter, but nobody says what the two used after they were last heard of.
      assert.deepStrictEqual(outcome.totals.usage.input, { total: null, known: 400 })
    })
  )

  it.effect("says nothing beside a result that told the usage", () =>
    Effect.gen(function* () {
      const agent = scripted({ activity: [seen("s"), told(tokens(5))], after: second, result: { usage: tokens(9) } })
      const outcome = yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* advance(second)
        return yield* Fiber.join(fiber)
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
      assert.deepStrictEqual(outcome.totals.usage.input, { total: 9, known: 9 })
      assert.isNull(outcome.attempts[0]?.usageSoFar)
    })
  )
})
