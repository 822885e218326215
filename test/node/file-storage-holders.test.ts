import { readdir, readFile, unlink, utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { nodeDisk } from "../../src/node/internal/storage/disk.ts"
import { append, child, folder, lockFile, read, replay, storageIn, textOf } from "./support/folders.ts"

const change = (path: string, edit: (text: string) => string) =>
  Effect.promise(async () => writeFile(path, edit(await readFile(path, "utf8"))))

const seenAgo = (path: string, millis: number) =>
  Effect.promise(() => utimes(path, (Date.now() - millis) / 1000, (Date.now() - millis) / 1000))

const held = (path: string, log = "log") => Effect.flip(Effect.scoped(storageIn(path).open(log)))

describe("holders of a log in a folder", () => {
  it.live("keeps a second process out, names the first, and lets it in once that has ended", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const first = yield* child(path, "log", "hold")
      assert.strictEqual(yield* first.line, "held")
      const error = yield* held(path)
      assert(error._tag === "LogHeld")
      assert.strictEqual(error.host, hostname())
      assert.strictEqual(error.process, `process ${first.process.pid}`)
      assert.include(error.message, `the log "log" is held by process ${first.process.pid}`)
      const second = yield* child(path, "log", "once")
      assert.include(yield* second.line, "LogHeld: ")
      yield* first.kill("SIGTERM")
      assert.deepStrictEqual(yield* replay(storageIn(path), "log"), [])
    })
  )

  it.live(
    "takes over at once from a process killed with SIGKILL, again and again, and loses nothing acknowledged",
    () =>
      Effect.gen(function* () {
        const path = yield* folder
        let acknowledged = 0
        for (const lines of [1, 7, 30]) {
          const writer = yield* child(path, "log", "append")
          assert.strictEqual(yield* writer.line, "held")
          for (let line = 0; line < lines; line++) acknowledged = Number(yield* writer.line) + 1
          yield* writer.kill("SIGKILL")
          const entries = yield* replay(storageIn(path), "log")
          assert.isAtLeast(entries.length, acknowledged)
          assert.deepStrictEqual(
            entries,
            entries.map((_, index) => index)
          )
        }
      })
  )

  it.live("lets one of several processes take over from a dead one", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const dead = yield* child(path, "log", "hold")
      yield* dead.line
      yield* dead.kill("SIGKILL")
      const takers = yield* Effect.forEach([1, 2, 3, 4], () => child(path, "log", "hold"))
      const said = yield* Effect.forEach(takers, ({ line }) => line, { concurrency: "unbounded" })
      assert.strictEqual(said.filter((line) => line === "held").length, 1, said.join("\n"))
      assert.strictEqual(said.filter((line) => line.startsWith("LogHeld: ")).length, 3, said.join("\n"))
    })
  )

  it.live("does not take a reused process id for its predecessor", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const dead = yield* child(path, "log", "hold")
      yield* dead.line
      const alive = yield* child(path, "another", "hold")
      yield* alive.line
      yield* dead.kill("SIGKILL")
      const lock = join(path, "log.1.lock")
      yield* change(lock, (text) => text.replaceAll(String(dead.process.pid), String(alive.process.pid)))
      yield* append(storageIn(path), "log", "mine")
    })
  )

  it.live("never breaks the lock of a process that lives, however old it is", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const first = yield* child(path, "log", "hold")
      yield* first.line
      yield* first.kill("SIGSTOP")
      yield* seenAgo(yield* lockFile(path), 365 * 24 * 3600 * 1000)
      assert.strictEqual((yield* held(path))._tag, "LogHeld")
    })
  )

  it.live("takes over at once from a process of before the machine was started again", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const first = yield* child(path, "log", "hold")
      yield* first.line
      yield* change(yield* lockFile(path), (text) => text.replace(/boot\\":\\"[^\\]+/, `boot\\":\\"another`))
      yield* append(storageIn(path), "log", 1)
    })
  )

  const strangers: ReadonlyArray<readonly [string, (text: string) => string]> = [
    ["empty", () => ""],
    ["half written", (text) => text.slice(0, text.length / 2)],
    ["not JSON", () => "held by me"],
    ["of another host", (text) => text.replaceAll(/(boot|machine)\\":\\"[^\\]+/g, `$1\\":\\"another`)],
    ["of another pid namespace", (text) => text.replace(/pid:\[\d+\]/, "pid:[1]")]
  ]
  for (const [kind, edit] of strangers) {
    it.live(`keeps a lock that is ${kind} until its lease ends, and names the file to remove`, () =>
      Effect.gen(function* () {
        const path = yield* folder
        yield* append(storageIn(path), "log", 1)
        const former = storageIn(path)
        const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
        const log = yield* Scope.provide(former.open("log"), scope)
        yield* log.append([2])
        const lock = yield* lockFile(path)
        yield* change(lock, edit)
        const error = yield* held(path)
        assert(error._tag === "LogHeld")
        assert.include(error.remedy, lock)
        assert.include(error.remedy, "the log is free at")
        yield* seenAgo(lock, 31_000)
        yield* append(storageIn(path), "log", 3)
        assert.strictEqual((yield* Effect.flip(log.append(["late"])))._tag, "LogFenced")
        assert.deepStrictEqual(yield* replay(storageIn(path), "log"), [1, 2, 3])
      })
    )
  }

  it.live("lets what a paused holder writes afterwards go nowhere, also when its successor died in between", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const log = yield* storageIn(path).open("log")
      yield* log.append([1])
      const lock = yield* lockFile(path)
      yield* seenAgo(lock, 31_000)
      const blind = { alive: () => Effect.succeed(undefined) }
      // A successor that dies between its lock and its copy leaves a lock that says so.
      const successor = storageIn(path, { rename: () => Promise.reject(new Error("died here")) }, blind)
      assert.strictEqual((yield* Effect.flip(Effect.scoped(successor.open("log"))))._tag, "StorageError")
      const next = yield* storageIn(path, {}, { alive: () => Effect.succeed(false) }).open("log")
      yield* next.append([2])
      const before = yield* textOf(join(path, "log.ndjson"))
      assert.strictEqual((yield* Effect.flip(log.append(["late"])))._tag, "LogFenced")
      assert.strictEqual(yield* textOf(join(path, "log.ndjson")), before)
      assert.deepStrictEqual(yield* Stream.runCollect(next.replay), [1, 2])
    })
  )

  it.live("goes on above the epochs of the records when somebody removed the lock files", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const storage = storageIn(path)
      for (const entry of [1, 2, 3]) yield* append(storage, "log", entry)
      for (const name of yield* Effect.promise(() => readdir(path))) {
        if (!name.endsWith(".ndjson")) yield* Effect.promise(() => unlink(join(path, name)))
      }
      yield* append(storage, "log", 4)
      assert.deepStrictEqual(yield* replay(storage, "log"), [1, 2, 3, 4])
      assert.deepStrictEqual(yield* read(storage, "log"), [1, 2, 3, 4])
    })
  )

  it.live("gives back the hold it took above the epochs of the records", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* append(storageIn(path), "log", 1)
      for (const file of yield* Effect.promise(() => readdir(path))) {
        if (!file.endsWith(".ndjson")) yield* Effect.promise(() => unlink(join(path, file)))
      }
      yield* append(storageIn(path), "log", 2)
      assert.notInclude((yield* Effect.promise(() => readdir(path))).join(), ".lock")
      // Another storage of this process, which lives: it cannot tell that nobody works with a lock that was left.
      yield* append(storageIn(path), "log", 3)
      assert.deepStrictEqual(yield* read(storageIn(path), "log"), [1, 2, 3])
    })
  )

  it.live("fences off the holder whose lock file somebody removed", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const log = yield* storageIn(path).open("log")
      yield* log.append([1])
      const lock = yield* lockFile(path)
      yield* Effect.promise(() => unlink(lock))
      assert.strictEqual((yield* Effect.flip(log.append([2])))._tag, "LogFenced")
    })
  )

  it.live("keeps what a holder whose lock file somebody removed writes away from its successor's entries", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const former = yield* storageIn(path).open("log")
      for (const entry of [1, 2]) yield* former.append([entry])
      const lock = yield* lockFile(path)
      yield* Effect.promise(() => unlink(lock))
      const successor = storageIn(path)
      const log = yield* successor.open("log")
      yield* log.append([3])
      assert.strictEqual((yield* Effect.flip(former.append(["lost"])))._tag, "LogFenced")
      assert.deepStrictEqual(yield* read(successor, "log"), [1, 2, 3])
      yield* log.append([4])
      assert.deepStrictEqual(yield* read(successor, "log"), [1, 2, 3, 4])
    })
  )

  it.live("leaves no file open, also when it opened a log again that it had lost", () =>
    Effect.gen(function* () {
      const path = yield* folder
      let open = 0
      const storage = storageIn(path, {
        open: async (...args) => {
          const file = await nodeDisk.open(...args)
          open++
          const close = async () => {
            await file.close()
            open--
          }
          return { ...file, close }
        }
      })
      const lost = yield* Scope.make()
      const log = yield* Scope.provide(storage.open("log"), lost)
      for (const entry of [1, 2]) yield* log.append([entry])
      const lock = yield* lockFile(path)
      yield* Effect.promise(() => unlink(lock))
      yield* append(storageIn(path), "log", 3)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const again = yield* storage.open("log")
          yield* again.append([4])
          yield* Scope.close(lost, Exit.void)
          yield* again.append([5])
        })
      )
      assert.deepStrictEqual(yield* read(storage, "log"), [1, 2, 3, 4, 5])
      // Readers do not wait until what they have read is closed.
      yield* Effect.repeat(Effect.yieldNow, { while: () => open > 0, times: 10_000 })
      assert.strictEqual(open, 0)
    })
  )

  it.live("gives prefixes of whole calls to a reader beside a writer in another process", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const writer = yield* child(path, "log", "append")
      assert.strictEqual(yield* writer.line, "held")
      const storage = storageIn(path)
      let seen = 0
      while (seen < 200) {
        const entries = yield* read(storage, "log")
        assert.deepStrictEqual(
          entries,
          entries.map((_, index) => index)
        )
        assert.isAtLeast(entries.length, seen)
        seen = entries.length
      }
    })
  )

  it.live("gives the log back when opening is interrupted while the disk hangs", () =>
    Effect.gen(function* () {
      const path = yield* folder
      let goOn: () => void = () => undefined
      const hanging = new Promise<void>((resolve) => (goOn = resolve))
      const storage = storageIn(path, { makeDirectory: () => hanging })
      const opening = yield* Effect.forkChild(Effect.scoped(storage.open("log")), { startImmediately: true })
      yield* Fiber.interrupt(opening)
      goOn()
      yield* Effect.retry(append(storageIn(path), "log", 1), { while: ({ _tag }) => _tag === "LogHeld" })
    })
  )
})
