import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Random } from "effect"
import { Failure, RetryPolicy, Storage } from "shiftboss"
import { type Act, advance, type Agent, makeAgent, policy, seen, settle, turn } from "./agent.ts"
import { hour, minute, second } from "./play.ts"

const limit = (resetAt: number) =>
  new Failure.Failure({ kind: "RateLimited", scope: "account", detail: "the limit is met", raw: null, resetAt })

/** An agent whose account is limited until then: it says so after two seconds and ends after twenty. */
const limitedUntil = (resetAt: number): { readonly agent: Agent; readonly into: () => number } => {
  const agent: Agent = makeAgent((_attempt, _index, at) => {
    if (at >= resetAt) return { after: minute, activity: [seen(`s${at}`), { _tag: "Text", text: "working" }] }
    return {
      after: 20 * second,
      activity: [{ _tag: "AgentRetry", failure: limit(resetAt), delayMillis: 5000 }],
      fails: { kind: "RateLimited", resetIn: resetAt - at - 20 * second }
    }
  })
  return { agent, into: () => agent.launches.filter(({ at }) => at < resetAt).length }
}
const twenty = (account?: string) =>
  Effect.forEach(
    Array.from({ length: 20 }, (_, index) => `t${index}`),
    (id) => Effect.forkChild(RetryPolicy.run(turn({ id, ...(account === undefined ? {} : { account }) }))),
    { concurrency: 1 }
  )

const gaps = (times: ReadonlyArray<number>) => times.slice(1).map((time, index) => time - (times[index] ?? 0))

describe("twenty turns and one limit", () => {
  for (const account of ["acme", undefined]) {
    it.effect(
      `that start together on ${account ?? "the account of the launcher"}: one pays, one probes, and they come back staggered`,
      () => {
        const { agent, into } = limitedUntil(hour)
        return Effect.gen(function* () {
          const turns = yield* twenty(account)
          yield* advance(90 * minute)
          const outcomes = yield* Effect.forEach(turns, Fiber.join)
          assert.deepStrictEqual(new Set(outcomes.map((outcome) => outcome.status)), new Set(["succeeded"]))
          assert.strictEqual(into(), 1)
          const back = agent.launches.map(({ at }) => at).filter((at) => at >= hour)
          assert.strictEqual(back.length, 20)
          assert.isAtLeast(back[0] ?? 0, hour + 2 * minute)
          for (const gap of gaps(back)) assert.isTrue(gap >= 5 * second && gap <= 11 * second, `${gap}`)
        }).pipe(Effect.provide(policy(agent, Storage.layerMemory)), Random.withSeed("twenty"))
      }
    )
  }

  it.effect("that start after the first sign of it: only the first one pays", () => {
    const { agent, into } = limitedUntil(hour)
    return Effect.gen(function* () {
      const first = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(second)
      const turns = yield* twenty()
      yield* advance(90 * minute)
      yield* Effect.forEach([first, ...turns], Fiber.join)
      assert.strictEqual(into(), 1)
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)), Random.withSeed("later"))
  })

  it.effect("on seats: they are held, and know until when", () => {
    const { agent } = limitedUntil(hour)
    return Effect.gen(function* () {
      yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(second)
      const error = yield* Effect.flip(RetryPolicy.run(turn({ id: "other", rules: { inlineWait: 0 } })))
      assert.isTrue(error._tag === "Held" && error.until === hour && error.rule === "shared-cooldown")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })
})

describe("a wall", () => {
  const acting = (play: (id: string, at: number) => Act) => makeAgent((attempt, _index, at) => play(attempt.turnId, at))

  it.effect("of one model does not hold turns on another one", () => {
    const agent = acting((id) => (id === "big" ? { fails: "Capacity" } : {}))
    return Effect.gen(function* () {
      yield* Effect.forkChild(RetryPolicy.run(turn({ id: "big", model: "big" })))
      yield* settle
      assert.strictEqual((yield* RetryPolicy.run(turn({ id: "small", model: "small" }))).status, "succeeded")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("of one account does not hold turns on another one", () => {
    const agent = acting((id) => (id === "a" ? { fails: "RateLimited" } : {}))
    return Effect.gen(function* () {
      yield* Effect.forkChild(RetryPolicy.run(turn({ id: "a", account: "a" })))
      yield* settle
      assert.strictEqual((yield* RetryPolicy.run(turn({ id: "b", account: "b" }))).status, "succeeded")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("lets the next turn probe when the probe says nothing for two minutes", () => {
    const agent = acting((_, at) => (at < minute ? { fails: "Capacity" } : { after: 10 * minute, activity: [] }))
    return Effect.gen(function* () {
      yield* Effect.forkChild(RetryPolicy.run(turn({ id: "a" })))
      yield* settle
      yield* Effect.forkChild(RetryPolicy.run(turn({ id: "b" })))
      yield* Effect.forkChild(RetryPolicy.run(turn({ id: "c" })))
      yield* advance(4 * minute)
      assert.deepStrictEqual(
        agent.launches.map(({ at }) => at / minute),
        [0, 1, 3]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("lets the next turn probe at once when the probe is stopped", () => {
    const agent = acting((_, at) => (at < minute ? { fails: "Capacity" } : { after: 10 * minute, activity: [] }))
    return Effect.gen(function* () {
      yield* Effect.forkChild(RetryPolicy.run(turn({ id: "a" })))
      yield* settle
      yield* Effect.forkChild(RetryPolicy.run(turn({ id: "b" })))
      yield* advance(70 * second)
      const probe = agent.launches[1]?.attempt.turnId ?? ""
      yield* RetryPolicy.stop(probe)
      yield* advance(second)
      assert.deepStrictEqual(
        agent.launches.map(({ at }) => at / second),
        [0, 60, 70]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("holds back a first launch, and a stop then ends the turn without any", () => {
    const agent = acting(() => ({ fails: "Capacity" }))
    return Effect.gen(function* () {
      yield* Effect.forkChild(RetryPolicy.run(turn({ id: "a" })))
      yield* settle
      const waiting = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "b" })))
      yield* settle
      yield* RetryPolicy.stop("b")
      const outcome = yield* Fiber.join(waiting)
      assert.deepStrictEqual([outcome.status, outcome.attempts], ["stopped", []])
      assert.deepStrictEqual(outcome.totals.costUsd, { total: 0, known: 0 })
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("goes up again when the probe meets it", () => {
    const agent = acting((_, at) => (at < 2 * minute ? { fails: "Capacity" } : {}))
    return Effect.gen(function* () {
      const first = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "a" })))
      yield* settle
      const other = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "b" })))
      yield* advance(5 * minute)
      assert.strictEqual((yield* Fiber.join(first)).status, "succeeded")
      assert.strictEqual((yield* Fiber.join(other)).status, "succeeded")
      assert.deepStrictEqual(
        agent.launches.slice(0, 3).map(({ at }) => at / minute),
        [0, 1, 4]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("is still there after a restart of the host", () => {
    const agent = acting((_, at) => (at < hour ? { fails: { kind: "RateLimited", resetIn: hour } } : {}))
    return Effect.gen(function* () {
      const held = { rules: { inlineWait: 0 } }
      const storage = yield* Storage.Storage
      const host = (id: string) =>
        Effect.flip(RetryPolicy.run(turn({ id, ...held }))).pipe(
          Effect.provide(policy(agent, Layer.succeed(Storage.Storage, storage)))
        )
      yield* host("a")
      const error = yield* host("b")
      assert.isTrue(error._tag === "Held" && error.rule === "shared-cooldown")
      assert.strictEqual(agent.launches.length, 1)
    }).pipe(Effect.provide(Layer.fresh(Storage.layerMemory)))
  })

  it.effect("a first launch is not waited for longer than ten seconds, nor is one that takes its place", () => {
    const agent = acting(() => ({ after: 10 * minute, activity: [] }))
    return Effect.gen(function* () {
      for (const id of ["a", "b", "c"]) yield* Effect.forkChild(RetryPolicy.run(turn({ id })))
      yield* advance(6 * second)
      yield* RetryPolicy.stop("a")
      yield* advance(6 * second)
      assert.deepStrictEqual(
        agent.launches.map(({ at }) => at / second),
        [0, 6, 10]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("a first launch is waited for in the call, on a seat too, until the model answers it", () => {
    const agent = acting((id) => ({ after: id === "a" ? 4 * second : 0, activity: [] }))
    return Effect.gen(function* () {
      const turns = ["a", "b", "c"].map((id) => RetryPolicy.run(turn({ id, rules: { inlineWait: 0 } })))
      const running = yield* Effect.forkChild(Effect.all(turns, { concurrency: "unbounded" }))
      yield* advance(4 * second)
      const outcomes = yield* Fiber.join(running)
      assert.deepStrictEqual(new Set(outcomes.map(({ status }) => status)), new Set(["succeeded"]))
      assert.deepStrictEqual(
        agent.launches.map(({ at }) => at / second),
        [0, 4, 4]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })
})
