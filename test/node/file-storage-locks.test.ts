import { existsSync } from "node:fs"
import { readdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { type Disk, nodeDisk } from "../../src/node/internal/storage/disk.ts"
import { append, folder, read, storageIn } from "./support/folders.ts"

/** Does something else at one moment of an acquisition: when the taker is about to link its lock for the first time. */
const beforeFirstLink = (meanwhile: (link: { readonly from: string; readonly to: string }) => Promise<void>) => {
  let done = false
  return {
    link: async (from, to) => {
      if (!done) {
        done = true
        await meanwhile({ from, to })
      }
      await nodeDisk.link(from, to)
    }
  } satisfies Partial<Disk>
}

describe("two who take one log at the same time", () => {
  it.live("take different numbers, when the number of one was used and removed since it looked", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* append(storageIn(path), "log", 1)
      const others = Effect.gen(function* () {
        // Takes the number that the late one is about to link, frees it, and leaves no record that would tell of it.
        yield* Effect.scoped(storageIn(path).open("log"))
        return yield* storageIn(path).open("log") // removes that number, and holds the next
      })
      const context = yield* Effect.context<Effect.Services<typeof others>>()
      let number = ""
      let other: Effect.Success<typeof others> | undefined
      const late = storageIn(
        path,
        beforeFirstLink(async ({ to }) => {
          number = to
          other = await Effect.runPromiseWith(context)(others)
        })
      )
      const error = yield* Effect.flip(Effect.scoped(late.open("log")))
      assert.strictEqual(number, join(path, "log.2.lock"))
      assert.strictEqual(error._tag, "LogHeld")
      assert(other !== undefined)
      yield* other.append([2])
      assert.deepStrictEqual(yield* Stream.runCollect(other.replay), [1, 2])
      // Not even a trace of the late one is left, which its successors could take for a lock.
      assert.isFalse(existsSync(number))
    })
  )

  it.live("never hold one number both, when the first has freed it and left no record of it", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* append(storageIn(path), "log", 1)
      let number = ""
      const late = storageIn(
        path,
        beforeFirstLink(async ({ to }) => {
          number = to
          await Effect.runPromise(Effect.scoped(storageIn(path).open("log")))
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* late.open("log")
          assert.isTrue(number.endsWith("log.2.lock"))
          assert.isFalse(existsSync(number), "the number that was freed is not held again")
          assert.strictEqual((yield* Effect.flip(Effect.scoped(storageIn(path).open("log"))))._tag, "LogHeld")
          yield* log.append([2])
        })
      )
      assert.deepStrictEqual(yield* read(storageIn(path), "log"), [1, 2])
    })
  )

  it.live("take one after the other, when the first is done before the second has linked", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const late = storageIn(
        path,
        beforeFirstLink(() => Effect.runPromise(append(storageIn(path), "log", "first")))
      )
      yield* append(late, "log", "second")
      assert.deepStrictEqual(yield* read(late, "log"), ["first", "second"])
    })
  )
})

describe("a lock that was being written", () => {
  const unfinished = (path: string, epoch: number) => join(path, `.log.${epoch}.0a-1b.lock.tmp`)

  it.live("when its process was killed is removed by the next holder, one with a later number is left alone", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* append(storageIn(path), "log", 1)
      for (const epoch of [1, 2, 3]) yield* Effect.promise(() => writeFile(unfinished(path, epoch), "{"))
      yield* append(storageIn(path), "log", 2)
      const files = yield* Effect.promise(() => readdir(path))
      assert.deepStrictEqual(files.toSorted(), [".log.3.0a-1b.lock.tmp", "log.2.free", "log.ndjson"])
    })
  )

  it.live("and is gone before it stands in its place is written anew", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const late = storageIn(
        path,
        beforeFirstLink(({ from }) => rm(from))
      )
      yield* append(late, "log", 1)
      assert.deepStrictEqual(yield* read(late, "log"), [1])
    })
  )
})
