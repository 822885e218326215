import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { RetryPolicy, Storage } from "shiftboss"
import { type Act, advance, makeAgent, policy, seen, turn } from "./agent.ts"
import { minute, second } from "./play.ts"

type When = "begins" | "is written"

/** A storage that tells when its n-th append begins or is written, and counts them. */
const telling = Effect.fnUntraced(function* (n: number, when: When) {
  const storage = yield* Storage.Storage.pipe(Effect.provide(Layer.fresh(Storage.layerMemory)))
  const reached = yield* Deferred.make<void>()
  let appends = 0
  const tell = (now: When) => (appends === n && when === now ? Deferred.succeed(reached, undefined) : Effect.void)
  const open: Storage.Storage["Service"]["open"] = (name) =>
    Effect.map(storage.open(name), (log) => ({
      ...log,
      append: (entries) =>
        Effect.suspend(() => {
          appends += 1
          return Effect.andThen(
            tell("begins"),
            Effect.tap(log.append(entries), () => tell("is written"))
          )
        })
    }))
  const layer = Layer.succeed(Storage.Storage, Storage.Storage.of({ ...storage, open }))
  return { layer, reached, appends: () => appends }
})

const busy = { after: 10 * second, activity: [seen("session-1")] }
const acts: ReadonlyArray<Act> = [
  { ...busy, fails: "StreamCut" },
  { ...busy, fails: "Capacity" },
  { ...busy, fails: { kind: "RateLimited", resetIn: 2 * minute } },
  busy
]
const scripted = () => makeAgent((_, index) => acts[index] ?? busy)
const asked = turn({ rules: { resetJitter: 0 } })

/** Stops the turn at that moment, then runs it again to its end. */
const stoppedAt = Effect.fnUntraced(function* (n: number, when: When) {
  const storage = yield* telling(n, when)
  const agent = scripted()
  return yield* Effect.gen(function* () {
    const first = yield* Effect.forkChild(RetryPolicy.run(asked))
    const stopping = yield* Effect.forkChild(
      Effect.andThen(
        Deferred.await(storage.reached),
        Effect.suspend(() => RetryPolicy.stop(asked.id))
      )
    )
    while (!(yield* Deferred.isDone(storage.reached))) yield* advance(second)
    // A stop takes no time of the turn's own waits.
    yield* advance(0)
    yield* Fiber.join(stopping)
    const { status } = yield* Fiber.join(first)
    const alive = agent.alive.size
    const again = yield* Effect.forkChild(RetryPolicy.run(asked))
    yield* advance(10 * minute)
    return { status, alive, outcome: yield* Fiber.join(again), launches: agent.launches.length }
  }).pipe(Effect.provide(policy(agent, storage.layer)))
})

describe("a stop", () => {
  it.effect("at each append ends the turn at once with no agent alive, and the turn goes on when it is run again", () =>
    Effect.gen(function* () {
      const whole = yield* telling(0, "begins")
      const undisturbed = yield* Effect.forkChild(
        Effect.provide(RetryPolicy.run(asked), policy(scripted(), whole.layer))
      )
      yield* advance(10 * minute)
      assert.strictEqual((yield* Fiber.join(undisturbed)).status, "succeeded")
      const appends = whole.appends()
      assert.isAbove(appends, 15)

      for (let n = 1; n <= appends; n++) {
        for (const when of ["begins", "is written"] as const) {
          const { status, alive, outcome, launches } = yield* stoppedAt(n, when)
          const where = `append ${n} ${when}`
          // Only the record of the end comes too late to be stopped.
          assert.strictEqual(status, n >= appends - 1 && status === "succeeded" ? status : "stopped", where)
          assert.strictEqual(alive, 0, where)
          assert.strictEqual(outcome.status, "succeeded", where)
          assert.isAtMost(launches, acts.length + 1, where)
        }
      }
    })
  )
})
