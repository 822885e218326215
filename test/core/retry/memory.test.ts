import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RetryPolicy, type Storage } from "shiftboss"
import { makeAgent, policy, settle, turn } from "./agent.ts"
import { crashing } from "./crash.ts"
import { hour } from "./play.ts"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void
const heap = () => {
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

const turns = 2000

/** Bytes of each turn that waits for an hour, its fiber included; what is journaled of it is thrown away. */
const bytesEach = (inlineWait: number | "Infinity") =>
  Effect.gen(function* () {
    const agent = makeAgent(() => ({ fails: { kind: "RateLimited", scope: "request", resetIn: hour } }))
    const entries: Array<Storage.Json> = []
    const start = (id: string) => Effect.forkChild(RetryPolicy.run(turn({ id, rules: { inlineWait } })))
    const clear = Effect.sync(() => {
      entries.length = 0
      agent.launches.length = 0
    })
    return yield* Effect.gen(function* () {
      for (let number = 0; number < 300; number++) yield* start(`warm-${number}`)
      yield* Effect.andThen(settle, clear)
      const before = heap()
      for (let number = 0; number < turns; number++) {
        yield* start(`turn-${number}`)
        if (number % 100 === 0) yield* Effect.andThen(settle, clear)
      }
      yield* Effect.andThen(settle, clear)
      return (heap() - before) / turns
    }).pipe(Effect.provide(policy(agent, crashing(entries, undefined).layer, { firstLaunchAlone: 0 })))
  })

describe("a waiting turn costs less than 4 KiB", () => {
  it.effect("in its call", () => Effect.map(bytesEach("Infinity"), (bytes) => assert.isBelow(bytes, 4096)))
  it.effect("held", () => Effect.map(bytesEach(0), (bytes) => assert.isBelow(bytes, 2048)))
})
