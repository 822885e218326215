import { appendFile, readFile, stat, truncate, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { append, folder, read, replay, storageIn } from "./support/folders.ts"

/** A log of two single entries and a flush of three, and its bytes. */
const written = Effect.gen(function* () {
  const path = yield* folder
  const storage = storageIn(path)
  const file = join(path, "log.ndjson")
  for (const entries of [["first @ 1"], ["second é"], ["a", "b", "c"]]) yield* append(storage, "log", ...entries)
  const bytes = yield* Effect.promise(() => readFile(file))
  const put = (content: Buffer) => Effect.promise(() => writeFile(file, content))
  const lineStart = (line: number) => bytes.toString("latin1").split("\n").slice(0, line).join("\n").length + 1
  return { storage, file, bytes, put, lineStart }
})

const all = ["first @ 1", "second é", "a", "b", "c"]

describe("damage to a log's file", () => {
  it.live("drops a last flush that was cut at any byte, whole, and appends cleanly after it", () =>
    Effect.gen(function* () {
      const { storage, bytes, put, lineStart } = yield* written
      for (let length = lineStart(3); length < bytes.length; length++) {
        yield* put(bytes.subarray(0, length))
        assert.deepStrictEqual(yield* read(storage, "log"), all.slice(0, 2), `cut at ${length}`)
      }
      for (const length of [lineStart(3) + 1, lineStart(4), bytes.length - 1]) {
        yield* put(bytes.subarray(0, length))
        yield* append(storage, "log", "after")
        assert.deepStrictEqual(yield* replay(storage, "log"), [...all.slice(0, 2), "after"])
      }
    })
  )

  it.live("finds a flipped bit in every byte of the file, says in which line, and leaves the file as it is", () =>
    Effect.gen(function* () {
      const { storage, file, bytes, put } = yield* written
      for (let at = 0; at < bytes.length; at++) {
        const damaged = Buffer.from(bytes)
        damaged[at] = bytes[at]! ^ (1 << (at % 8))
        yield* put(damaged)
        const error = yield* Effect.flip(read(storage, "log"))
        assert(error._tag === "LogCorrupt", `bit ${at % 8} of byte ${at}: ${error.message}`)
        // A flipped newline makes one line of two, and a new one two of one: either is the right place to look.
        const line = bytes.toString("latin1", 0, at).split("\n").length
        assert.closeTo(error.line, line, 1)
        assert.include(error.message, `the log "log" is damaged in line ${error.line}`)
        if (at % 40 !== 0) continue
        assert.strictEqual((yield* Effect.flip(replay(storage, "log")))._tag, "LogCorrupt")
        assert(Exit.isFailure(yield* Effect.exit(append(storage, "log", "never"))))
        assert.deepStrictEqual(yield* Effect.promise(() => readFile(file)), damaged)
      }
    })
  )

  it.live("finds every single bit flipped in the last line", () =>
    Effect.gen(function* () {
      const { storage, bytes, put, lineStart } = yield* written
      for (let bit = 8 * lineStart(5); bit < 8 * bytes.length; bit++) {
        const damaged = Buffer.from(bytes)
        damaged[bit >> 3] = damaged[bit >> 3]! ^ (1 << (bit & 7))
        yield* put(damaged)
        assert.strictEqual((yield* Effect.flip(read(storage, "log")))._tag, "LogCorrupt", `bit ${bit}`)
      }
    })
  )

  it.live("drops pages of the last flush that never reached the disk, and cuts them off before the next append", () =>
    Effect.gen(function* () {
      const { storage, file, bytes, put, lineStart } = yield* written
      const holes = [
        [lineStart(3), bytes.length],
        [lineStart(3) + 10, lineStart(4) + 10],
        [lineStart(4), lineStart(5)],
        [lineStart(5) + 4, bytes.length]
      ] as const
      for (const [from, to] of holes) {
        yield* put(Buffer.from(bytes).fill(0, from, to))
        assert.deepStrictEqual(yield* read(storage, "log"), all.slice(0, 2), `zeros from ${from} to ${to}`)
      }
      yield* put(bytes)
      yield* Effect.promise(() => truncate(file, bytes.length + 10_000))
      assert.deepStrictEqual(yield* replay(storage, "log"), all)
      assert.strictEqual((yield* Effect.promise(() => stat(file))).size, bytes.length + 10_000)
      yield* append(storage, "log", "after")
      assert.isBelow((yield* Effect.promise(() => stat(file))).size, bytes.length + 200)
      assert.deepStrictEqual(yield* replay(storage, "log"), [...all, "after"])
    })
  )

  it.live("does not take pages lost from an earlier flush for a torn end", () =>
    Effect.gen(function* () {
      const { storage, bytes, put, lineStart } = yield* written
      yield* put(Buffer.from(bytes).fill(0, lineStart(2), lineStart(3)))
      const error = yield* Effect.flip(replay(storage, "log"))
      assert(error._tag === "LogCorrupt")
      assert.strictEqual(error.line, 3)
    })
  )

  it.live("does not take an empty file, a file of zeros or one of another log for a new log", () =>
    Effect.gen(function* () {
      const { storage, bytes, put } = yield* written
      for (const content of [Buffer.alloc(0), Buffer.alloc(5000), bytes.subarray(0, 10), Buffer.from("\n")]) {
        yield* put(content)
        assert.strictEqual((yield* Effect.flip(read(storage, "log")))._tag, "LogCorrupt")
        assert.strictEqual((yield* Effect.flip(replay(storage, "log")))._tag, "LogCorrupt")
      }
      yield* append(storage, "another", 1)
      const file = join(yield* folder, "log.ndjson")
      assert.isString(file)
      yield* put(bytes)
      yield* put(Buffer.from(bytes.toString().replace(`"log":"log"`, `"log":"lag"`)))
      assert.strictEqual((yield* Effect.flip(read(storage, "log")))._tag, "LogCorrupt")
    })
  )

  it.live("never appends after damage that only a reading of the whole log can find", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const storage = storageIn(path)
      const file = join(path, "log.ndjson")
      yield* append(storage, "log", "damaged here")
      // More than the end that opening looks at.
      for (let count = 0; count < 3; count++) yield* append(storage, "log", "x".repeat(60_000))
      const text = yield* Effect.promise(() => readFile(file, "utf8"))
      const damaged = text.replace("damaged", "Damaged")
      yield* Effect.promise(() => writeFile(file, damaged))
      const error = yield* Effect.flip(append(storage, "log", "never"))
      assert(error._tag === "StorageError")
      assert.include(error.message, "damaged in line 2")
      assert.strictEqual(yield* Effect.promise(() => readFile(file, "utf8")), damaged)
      assert.strictEqual((yield* Effect.flip(replay(storage, "log")))._tag, "LogCorrupt")
      yield* Effect.promise(() => appendFile(file, "x"))
      assert.strictEqual((yield* Effect.flip(replay(storage, "log")))._tag, "LogCorrupt")
    })
  )
})
