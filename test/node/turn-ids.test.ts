/**
 * Ids of turns that nobody should give, in a log of files.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { AgentLauncher, RetryPolicy } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { folder } from "./support/folders.ts"

const ids = [
  "",
  "/",
  "../..",
  ".",
  "__proto__",
  "constructor",
  "\u0000",
  "\ud800",
  "\ud83d",
  "a\nb",
  "\u2028",
  "long ".repeat(200_000)
]

describe("an id of a turn", () => {
  it.effect("may be any text: each is a turn of its own, after a restart too", () =>
    Effect.gen(function* () {
      const path = yield* folder
      let launches = 0
      const agent = AgentLauncher.layer((attempt) =>
        Effect.sync(() => AgentLauncher.result(`${ids.indexOf(attempt.turnId)}, launch ${++launches}`))
      )
      const host = () =>
        Layer.fresh(RetryPolicy.layerWith({ firstLaunchAlone: 0 })).pipe(
          Layer.provide(Layer.merge(agent, Layer.fresh(FileStorage.layer(path))))
        )
      const run = Effect.forEach(ids, (id) => Effect.map(RetryPolicy.run({ id, prompt: "do it" }), ({ text }) => text))
      const expected = ids.map((_, index) => `${index}, launch ${index + 1}`)
      for (const _ of ["first", "again"]) assert.deepStrictEqual(yield* Effect.provide(run, host()), expected)
    })
  )
})
