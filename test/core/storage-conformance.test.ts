import { describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Storage } from "shiftboss"
import { storageConformance } from "shiftboss/testing"

const storage = Effect.map(Layer.build(Layer.fresh(Storage.layerMemory)), Context.get(Storage.Storage))

describe("layerMemory", () => {
  for (const { name, run } of storageConformance({ storage })) it.effect(name, () => run)
})

describe("the seam in memory", () => {
  for (const { name, run } of storageConformance({ encoded: Effect.sync(Storage.makeMemory) }))
    it.effect(name, () => run)
})
