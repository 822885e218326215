import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Storage } from "shiftboss"
it.effect("smoke", () => Effect.gen(function*() {
  const storage = yield* Storage.Storage
  yield* Effect.scoped(Effect.gen(function*(){
    const log = yield* storage.open("a")
    yield* log.append([1,2]); yield* log.append([{x:"é"}])
    assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [1,2,{x:"é"}])
    yield* log.replace(["r"])
    yield* Effect.all(Array.from({length:50},(_, i)=>log.append([i])),{concurrency:"unbounded"})
    assert.strictEqual((yield* Stream.runCollect(log.replay)).length, 51)
    const held = yield* Effect.flip(Effect.scoped(storage.open("a")))
    console.log(held.message)
  }))
  yield* Effect.scoped(storage.open("a"))
  assert.deepStrictEqual(yield* Stream.runCollect(storage.list()), ["a"])
  yield* storage.remove("a")
  assert.deepStrictEqual(yield* Stream.runCollect(storage.list()), [])
}).pipe(Effect.provide(Storage.layerMemory)))
