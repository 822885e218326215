import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { storageConformance } from "shiftboss/testing"
import { nodeDisk } from "../../src/node/internal/storage/disk.ts"
import { makeFiles } from "../../src/node/internal/storage/files.ts"

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "shiftboss-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)

const storage = Effect.flatMap(directory, (path) =>
  Effect.map(Layer.build(FileStorage.layer(path)), Context.get(Storage.Storage))
)

describe("FileStorage", () => {
  for (const { name, run } of storageConformance({ storage })) it.live(name, () => run)
})

describe("the seam over files", () => {
  const encoded = Effect.map(directory, (path) => makeFiles({ disk: nodeDisk, path }))
  for (const { name, run } of storageConformance({ encoded })) it.live(name, () => run)
})
