import { execFileSync } from "node:child_process"
import { chmod, mkdir, readdir, stat, unlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { FileStorage } from "shiftboss/node"
import { Storage } from "shiftboss"
import { nodeDisk } from "../../src/node/internal/storage/disk.ts"
import { append, diskWith, failure, folder, mounted, read, replay, storageIn } from "./support/folders.ts"

const modeOf = (path: string) => Effect.promise(async () => (await stat(path)).mode & 0o777)
const isLog = (path: string) => path.endsWith("log.ndjson")

describe("a disk that fails", () => {
  it.live("fails cleanly when it is full, and works again when there is room", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const isReal = yield* mounted(path, "size=256k,mode=700")
      let room = true
      const full = diskWith((file) => ({
        write: (buffer, at, position) =>
          room || buffer.length < 1000 ? file.write(buffer, at, position) : Promise.reject(failure("ENOSPC"))
      }))
      const storage = isReal ? storageIn(path) : storageIn(path, full)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storage.open("log")
          yield* log.append(["before"])
          yield* isReal
            ? Effect.promise(() => writeFile(join(path, "filler"), "x".repeat(230_000)))
            : Effect.sync(() => (room = false))
          const error = yield* Effect.flip(log.append(["y".repeat(100_000)]))
          assert(error._tag === "StorageError")
          assert.include(error.message, `could not append the log "log"`)
          assert.include(error.remedy, `Make room on the disk of ${path}`)
          assert.deepStrictEqual(yield* read(storage, "log"), ["before"])
          yield* isReal ? Effect.promise(() => unlink(join(path, "filler"))) : Effect.sync(() => (room = true))
          yield* log.append(["after"])
        })
      )
      assert.deepStrictEqual(yield* replay(storage, "log"), ["before", "after"])
    })
  )

  it.live("gives a log back on a full disk", () =>
    Effect.gen(function* () {
      const path = yield* folder
      let isFull = false
      const full = diskWith((file) => ({
        write: (buffer, at, position) => (isFull ? Promise.reject(failure("ENOSPC")) : file.write(buffer, at, position))
      }))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storageIn(path, full).open("log")
          yield* log.append([1])
          isFull = true
          assert.strictEqual((yield* Effect.flip(log.replace([2])))._tag, "StorageError")
        })
      )
      assert.deepStrictEqual(yield* replay(storageIn(path), "log"), [1])
    })
  )

  it.live("keeps what it had when a write stops half-way, and goes on", () =>
    Effect.gen(function* () {
      const path = yield* folder
      let isBroken = false
      const half = diskWith((file, name) => ({
        write: async (buffer, at, position) => {
          if (!isBroken || !isLog(name)) return file.write(buffer, at, position)
          if (at > 0) throw failure("EIO")
          return file.write(buffer.subarray(0, buffer.length >> 1), at, position)
        }
      }))
      const storage = storageIn(path, half)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storage.open("log")
          yield* log.append([1])
          isBroken = true
          assert.strictEqual((yield* Effect.flip(log.append([2, 3])))._tag, "StorageError")
          isBroken = false
          yield* log.append([4])
        })
      )
      assert.deepStrictEqual(yield* replay(storage, "log"), [1, 4])
    })
  )

  it.live("writes on when the system takes a few bytes at a time", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const piecemeal = diskWith((file) => ({
        write: (buffer, at, position) => file.write(buffer.subarray(0, Math.min(buffer.length, at + 7)), at, position)
      }))
      yield* append(storageIn(path, piecemeal), "log", 1, "é".repeat(100))
      yield* append(storageIn(path, piecemeal), "log", 2)
      assert.deepStrictEqual(yield* replay(storageIn(path), "log"), [1, "é".repeat(100), 2])
    })
  )

  it.live("never syncs a file again after its sync failed: what was acknowledged moves to a new one", () =>
    Effect.gen(function* () {
      const path = yield* folder
      let isBroken = false
      const failed = new Set<object>()
      const disk = diskWith((file, name) => ({
        datasync: async () => {
          assert(!failed.has(file), "it was synced again")
          if (!isBroken || !isLog(name)) return file.datasync()
          failed.add(file)
          throw failure("EIO")
        }
      }))
      const storage = storageIn(path, disk)
      const log = yield* storage.open("log")
      yield* log.append([1])
      const { ino } = yield* Effect.promise(() => stat(join(path, "log.ndjson")))
      isBroken = true
      const error = yield* Effect.flip(log.append([2]))
      assert(error._tag === "StorageError")
      assert.include(error.remedy, `Check the disk of ${path}`)
      isBroken = false
      assert.notStrictEqual((yield* Effect.promise(() => stat(join(path, "log.ndjson")))).ino, ino)
      yield* log.append([3])
      assert.strictEqual(failed.size, 1)
      assert.deepStrictEqual(yield* read(storage, "log"), [1, 3])
    })
  )

  it.live("closes the log when the copy fails too, and keeps all that was acknowledged", () =>
    Effect.gen(function* () {
      const path = yield* folder
      let isBroken = false
      const refuse = async () => {
        if (isBroken) throw failure("EIO")
      }
      const disk = diskWith((file) => ({
        datasync: () => Effect.runPromise(Effect.promise(refuse)).then(file.datasync),
        sync: () => refuse().then(file.sync)
      }))
      const storage = storageIn(path, disk)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storage.open("log")
          yield* log.append([1])
          isBroken = true
          yield* Effect.flip(log.append([2]))
          isBroken = false
          for (const write of [log.append([3]), log.replace([4])]) {
            const error = yield* Effect.flip(write)
            assert(error._tag === "StorageError")
            assert.include(error.remedy, "open the log again")
          }
        })
      )
      const entries = yield* replay(storageIn(path), "log")
      assert.strictEqual(entries[0], 1)
      assert.notInclude(entries, 3)
    })
  )

  it.live("writes the last flush again and syncs it before anybody reads it: its holder may have failed to", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* append(storageIn(path), "log", 1)
      yield* append(storageIn(path), "log", 2, 3)
      const done: Array<string> = []
      const disk = diskWith((file, name) => ({
        read: (buffer, at, position) => {
          if (isLog(name) && !done.includes("sync")) done.push("read")
          return file.read(buffer, at, position)
        },
        write: async (buffer, at, position) => {
          if (isLog(name)) done.push(buffer.toString("utf8", at).replaceAll(/"crc":"\w+",/g, ""))
          return file.write(buffer, at, position)
        },
        sync: async () => {
          await file.sync()
          if (isLog(name)) done.push("sync")
        }
      }))
      assert.deepStrictEqual(yield* replay(storageIn(path, disk), "log"), [1, 2, 3])
      const line = (seq: number) => `{"epoch":2,"seq":${seq},"first":2,"last":3,"entry":${seq}}\n`
      assert.deepStrictEqual(done, ["read", line(2) + line(3), "sync"])
    })
  )

  it.live("writes a last flush again that is longer than what is read at once", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const long = Array.from({ length: 40 }, (_, n) => `${n}${"x".repeat(10_000)}`)
      yield* append(storageIn(path), "log", "before")
      yield* append(storageIn(path), "log", ...long)
      let written = 0
      const disk = diskWith((file, name) => ({
        write: (buffer, at, position) => {
          if (isLog(name)) written += buffer.length - at
          return file.write(buffer, at, position)
        }
      }))
      assert.deepStrictEqual(yield* replay(storageIn(path, disk), "log"), ["before", ...long])
      assert.isAbove(written, 400_000)
      assert.isBelow(written, 405_000)
    })
  )

  it.live("acknowledges nothing in a new file whose folder could not be synced", () =>
    Effect.gen(function* () {
      const path = yield* folder
      let isBroken = false
      const disk = diskWith((file, name) => ({
        sync: () => (isBroken && name === path ? Promise.reject(failure("EIO")) : file.sync())
      }))
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storageIn(path, disk).open("log")
          yield* log.append([1])
          isBroken = true
          yield* Effect.flip(log.replace([2]))
          isBroken = false
          const error = yield* Effect.flip(log.append([3]))
          assert(error._tag === "StorageError")
          assert.include(error.remedy, "open the log again")
        })
      )
      assert.deepStrictEqual(yield* replay(storageIn(path), "log"), [2])
    })
  )

  it.live("answers an interruption while the disk hangs, and keeps the log until the write has ended", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const writing = yield* Deferred.make<void>()
      let goOn: () => void = () => undefined
      let isHanging = false
      const disk = diskWith((file, name) => ({
        datasync: async () => {
          if (isHanging && isLog(name)) {
            Deferred.doneUnsafe(writing, Exit.void)
            await new Promise<void>((resolve) => (goOn = resolve))
          }
          await file.datasync()
        }
      }))
      const scope = yield* Scope.make()
      const log = yield* Scope.provide(storageIn(path, disk, { closeWithin: "20 millis" }).open("log"), scope)
      yield* log.append([1])
      isHanging = true
      const appending = yield* Effect.forkChild(log.append([2]))
      yield* Deferred.await(writing)
      yield* Fiber.interrupt(appending)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Effect.flip(Effect.scoped(storageIn(path).open("log"))))._tag, "LogHeld")
      goOn()
      const entries = yield* Effect.retry(replay(storageIn(path), "log"), { while: ({ _tag }) => _tag === "LogHeld" })
      assert.deepStrictEqual(entries, [1, 2])
    })
  )
})

describe("the folder", () => {
  it.live("closes a file that it opened for a reader who was interrupted meanwhile", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* append(storageIn(path), "log", 1)
      const asked = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      let goOn: () => void = () => undefined
      const hanging = new Promise<void>((resolve) => (goOn = resolve))
      const storage = storageIn(path, {
        open: async (...args) => {
          Deferred.doneUnsafe(asked, Effect.void)
          await hanging
          const file = await nodeDisk.open(...args)
          const close = async () => {
            await file.close()
            Deferred.doneUnsafe(closed, Effect.void)
          }
          return { ...file, close }
        }
      })
      const reading = yield* Effect.forkChild(read(storage, "log"), { startImmediately: true })
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(reading)
      goOn()
      yield* Deferred.await(closed)
    })
  )

  it.live("is closed to others, with all files in it, also when it was open before", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "deep", "logs")
      yield* Effect.promise(() => mkdir(path, { recursive: true }))
      yield* append(storageIn(path), "log", 1)
      yield* Effect.promise(async () => {
        await chmod(path, 0o777)
        await chmod(join(path, "log.ndjson"), 0o666)
      })
      yield* append(storageIn(path), "log", 2)
      assert.strictEqual(yield* modeOf(path), 0o700)
      for (const file of yield* Effect.promise(() => readdir(path))) {
        assert.strictEqual(yield* modeOf(join(path, file)), 0o600, file)
      }
    })
  )

  it.live("is refused when it is shared with others, as /tmp is", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* Effect.promise(() => chmod(path, 0o1777))
      const error = yield* Effect.flip(append(storageIn(path), "log", 1))
      assert(error._tag === "StorageError")
      assert.include(error.message, "Give the logs a folder of their own")
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(path)), [])
    })
  )

  it.live("says what to do when it cannot be written, and can still be read", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const isMounted = yield* mounted(path, "size=1m,mode=700")
      const storage = storageIn(path)
      yield* append(storage, "log", 1)
      // The rights of a directory do not bind the superuser, who can mount one read-only instead.
      yield* isMounted
        ? Effect.sync(() => execFileSync("mount", ["-o", "remount,ro", path]))
        : Effect.promise(() => chmod(path, 0o500))
      const error = yield* Effect.flip(append(storage, "log", 2))
      assert(error._tag === "StorageError")
      assert.include(error.message, `Let this process read and write ${path}`)
      assert.deepStrictEqual(yield* read(storage, "log"), [1])
      assert.deepStrictEqual(yield* Stream.runCollect(storage.list()), ["log"])
    })
  )

  it.live("says what to do when it is a file", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "file")
      yield* Effect.promise(() => writeFile(path, ""))
      const error = yield* Effect.flip(append(storageIn(path), "log", 1))
      assert(error._tag === "StorageError")
      assert.include(error.message, `Make ${path} a directory`)
    })
  )

  it.live("keeps logs of any name inside", () =>
    Effect.gen(function* () {
      const outer = yield* folder
      const path = join(outer, "logs")
      for (const log of ["../x", "/etc/x", "a/../../x", "..", ".hidden", "x".repeat(300)])
        yield* append(storageIn(path), log, log)
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(outer)), ["logs"])
      const files = yield* Effect.promise(() => readdir(path))
      assert.strictEqual(files.filter((file) => /^[a-z0-9%_.-]+\.ndjson$/.test(file)).length, 6, files.join("\n"))
    })
  )

  it.live("loses the unfinished files of a holder that died, and no others", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* append(storageIn(path), "log", 1)
      for (const file of [".log.7.tmp", ".log.a.7.tmp", "notes.txt"]) {
        yield* Effect.promise(() => writeFile(join(path, file), "x"))
      }
      yield* append(storageIn(path), "log", 2)
      const files = yield* Effect.promise(() => readdir(path))
      assert.deepStrictEqual(files.filter((file) => !file.startsWith("log.")).toSorted(), [".log.a.7.tmp", "notes.txt"])
    })
  )

  it.effect("says that Windows is not supported", () =>
    Effect.gen(function* () {
      const real = process.platform
      Object.defineProperty(process, "platform", { value: "win32" })
      const storage = yield* Storage.Storage
      const error = yield* Effect.flip(append(storage, "log", 1))
      Object.defineProperty(process, "platform", { value: real })
      assert.include(error.message, "not supported on Windows. Use Linux or macOS")
    }).pipe(Effect.provide(FileStorage.layer("logs-that-are-never-made")))
  )
})
