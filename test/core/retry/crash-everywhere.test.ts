import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { RetryPolicy, type Storage, type Turn } from "shiftboss"
import { CrashEverywhere } from "shiftboss/testing"
import { type Act, eventOf, makeAgent, seen, turn } from "./agent.ts"
import { minute, second } from "./play.ts"

/** A policy over the storage that is crashed, whose agents outlive their host until they are reaped. */
const trial = (acts: ReadonlyArray<Act>, most: number) =>
  Effect.sync(() => {
    const overlaps: Array<number> = []
    const agent = makeAgent((attempt) => {
      if (agent.alive.size > 0) overlaps.push(attempt.number)
      return acts[attempt.number - 1] ?? { text: "done" }
    })
    agent.reaps = "stopped"
    const policy = RetryPolicy.layer.pipe(Layer.provide(agent.layer))
    return {
      program: Effect.provide(RetryPolicy.run(turn({ rules: { resetJitter: 0 } })), policy),
      check: ({ exit, storage }: CrashEverywhere.Ended<Turn.TurnOutcome, unknown>) =>
        Effect.gen(function* () {
          assert(exit._tag === "Success", String(exit))
          assert.strictEqual(exit.value.status, "succeeded")
          const events = (yield* Stream.runCollect(storage.read("turns"))).map(
            (entry: Storage.Json) => eventOf(entry)._tag
          )
          const count = (tag: string) => events.filter((event) => event === tag).length
          assert.deepStrictEqual([count("TurnStarted"), count("TurnEnded")], [1, 1])
          assert.strictEqual(count("AttemptStarted"), count("AttemptEnded"))
          assert.deepStrictEqual(overlaps, [])
          assert.isAtMost(agent.launches.length, most)
        })
    }
  })

const busy = { after: 10 * second, activity: [seen("session-1")] }

describe("a turn, whose host dies at each operation on its storage", () => {
  it.effect("comes to its end over resumes, waits and holds, with one agent at a time", () =>
    Effect.gen(function* () {
      const acts: ReadonlyArray<Act> = [
        { ...busy, fails: "StreamCut" },
        { ...busy, fails: "Capacity" },
        { ...busy, fails: { kind: "RateLimited", resetIn: 8 * minute } },
        busy
      ]
      const { points, trials } = yield* CrashEverywhere.crashEverywhere(trial(acts, acts.length + 1))
      assert.isAbove(points, 40)
      assert.strictEqual(trials, points)
    })
  )

  it.effect("comes to its end when the next host dies as well", () =>
    Effect.gen(function* () {
      const { points, trials } = yield* CrashEverywhere.crashEverywhere(trial([busy], 3), { inARow: 2 })
      assert.isAbove(trials, 10 * points)
    })
  )
})
