/**
 * What a waiting turn costs. Needs `--expose-gc`:
 *
 *     npx vitest run test/core/retry/memory.test.ts --execArgv=--expose-gc
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RetryPolicy, type Storage } from "shiftboss"
import { makeAgent, policy, settle, turn } from "./agent.ts"
import { crashing } from "./crash.ts"
import { hour } from "./play.ts"

const collect = (globalThis as { readonly gc?: () => void }).gc
const turns = 10_000

const bytesEach = (inlineWait: number | "Infinity") =>
  Effect.gen(function* () {
    const agent = makeAgent(() => ({ fails: { kind: "RateLimited", scope: "request", resetIn: hour } }))
    const entries: Array<Storage.Json> = []
    const start = (id: string) => Effect.forkChild(Effect.ignore(RetryPolicy.run(turn({ id, rules: { inlineWait } }))))
    return yield* Effect.gen(function* () {
      yield* start("first")
      yield* settle
      collect?.()
      const before = process.memoryUsage().heapUsed
      for (let number = 0; number < turns; number++) {
        yield* start(`turn-${number}`)
        if (number % 200 === 0) {
          yield* settle
          entries.length = 0
          agent.launches.length = 0
        }
      }
      yield* settle
      entries.length = 0
      agent.launches.length = 0
      collect?.()
      return Math.round((process.memoryUsage().heapUsed - before) / turns)
    }).pipe(Effect.provide(policy(agent, crashing(entries, undefined).layer)))
  })

describe.skipIf(collect === undefined)("10,000 waiting turns", () => {
  it.effect("that are held cost less than 4 KiB each", () =>
    Effect.gen(function* () {
      const bytes = yield* bytesEach(0)
      console.log(`held: ${bytes} bytes each`)
      assert.isBelow(bytes, 4096)
    })
  )

  it.effect("in their calls", () =>
    Effect.gen(function* () {
      const bytes = yield* bytesEach("Infinity")
      console.log(`in the call: ${bytes} bytes each`)
      assert.isBelow(bytes, 16_384)
    })
  )
})
