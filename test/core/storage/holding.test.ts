import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Storage } from "shiftboss"
import { encodeHeader, encodeRecord } from "../../../src/core/internal/storage/record.ts"

/** A store in memory, and what was asked of it. */
const watched = (change: (store: Storage.Encoded) => Partial<Storage.Encoded> = () => ({})) => {
  const memory = Storage.makeMemory()
  const store: Storage.Encoded = { ...memory, ...change(memory) }
  const asked: Array<string> = []
  const dead: Array<Storage.AcquireOptions["dead"]> = []
  const encoded: Storage.Encoded = {
    ...store,
    acquire: (log, holder, options) => {
      asked.push("acquire")
      dead.push(options.dead)
      return store.acquire(log, holder, options)
    },
    release: (log, epoch) => {
      asked.push(`release ${epoch}`)
      return store.release(log, epoch)
    },
    lines: (log) =>
      Stream.suspend(() => {
        asked.push("lines")
        return store.lines(log)
      })
  }
  return { encoded, asked, dead }
}

const identity = (id: string): Effect.Effect<Storage.Identity> =>
  Effect.succeed({ id, host: `host of ${id}`, process: `process of ${id}` })

/** Leaves the log to a holder that will not be heard of again. */
const heldBy = (encoded: Storage.Encoded, options: Storage.EncodedOptions = {}) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const storage = Storage.fromEncoded(encoded, { identity: identity("other"), shared: false, ...options })
    return yield* Scope.provide(storage.open("log"), scope)
  })

const refusal = <A, E>(open: Effect.Effect<A, E, Scope.Scope>) =>
  Effect.map(Effect.flip(Effect.scoped(open)), (error) => {
    assert.instanceOf(error, Storage.LogHeld)
    return error
  })

describe("a holder that can be seen to live", () => {
  it.effect("keeps its log however old its lock is, and whoever asks is told who it is", () =>
    Effect.gen(function* () {
      const { encoded, asked } = watched()
      yield* TestClock.adjust("1 minute")
      yield* heldBy(encoded)
      yield* TestClock.adjust("365 days")
      const seen: Array<Storage.Identity> = []
      const alive = (holder: Storage.Identity) => Effect.sync(() => seen.push(holder) > 0)
      const error = yield* refusal(Storage.fromEncoded(encoded, { alive }).open("log"))
      assert.deepStrictEqual(
        [error.log, error.host, error.process, error.since],
        [...["log", "host of other", "process of other"], 60_000]
      )
      assert.include(error.message, "It is at work: stop it, or wait for it to end.")
      assert.deepStrictEqual(
        seen.map(({ id, host }) => [id, host]),
        [["other/1", "host of other"]]
      )
      assert.deepStrictEqual(asked, ["acquire", "lines", "acquire"])
    })
  )

  it.effect("is also another scope of the same storage, and is not asked for by `alive`", () =>
    Effect.gen(function* () {
      const { encoded } = watched()
      const storage = Storage.fromEncoded(encoded, {
        identity: identity("one"),
        shared: false,
        alive: () => Effect.die("it is known")
      })
      const first = yield* Scope.make()
      yield* Scope.provide(storage.open("log"), first)
      yield* TestClock.adjust("365 days")
      assert.include((yield* refusal(storage.open("log"))).remedy, "It is at work")
      assert.include((yield* refusal(Effect.andThen(storage.remove("log"), storage.open("log")))).remedy, "at work")
      yield* Scope.close(first, Exit.void)
      yield* Effect.scoped(storage.open("log"))
    })
  )
})

describe("a holder of which nothing can be told", () => {
  it.effect("keeps its log until its own lease ends, to the millisecond", () =>
    Effect.gen(function* () {
      const { encoded, dead } = watched()
      yield* heldBy(encoded, { lease: "10 seconds" })
      const storage = Storage.fromEncoded(encoded, { lease: "1 hour", identity: identity("one") })
      yield* TestClock.adjust(9_999)
      const { remedy } = yield* refusal(storage.open("log"))
      assert.strictEqual(
        remedy,
        "Whether it still lives cannot be told from here. Unless it is heard of again, the log is free at 1970-01-01T00:00:10.000Z."
      )
      yield* TestClock.adjust(1)
      yield* Effect.scoped(storage.open("log"))
      assert.strictEqual(dead.at(-1)?.proven, false)
      assert.strictEqual(dead.at(-1)?.lock.epoch, 1)
    })
  )

  it.effect("whose lock cannot be read has the lease of whoever looks, and the person is told what to remove", () =>
    Effect.gen(function* () {
      const lock: Storage.Lock = { epoch: 4, holder: "no record", renewedAt: 5_000, where: "/locks/log" }
      const { encoded } = watched(() => ({ acquire: () => Effect.succeed({ _tag: "Held", lock }) }))
      const alive = () => Effect.die("nobody to ask about")
      const storage = Storage.fromEncoded(encoded, { lease: "20 seconds", alive })
      const error = yield* refusal(storage.open("log"))
      assert.deepStrictEqual(
        [error.host, error.process, error.since],
        [...["an unknown host", "an unknown process"], 5_000]
      )
      const until = "the log is free at 1970-01-01T00:00:25.000Z, or once you have removed /locks/log after"
      assert.include(error.remedy, until)
    })
  )

  it.effect("loses a race for its log to one of two that find it", () =>
    Effect.gen(function* () {
      const lock: Storage.Lock = { epoch: 1, holder: "", renewedAt: 0 }
      const { encoded, asked, dead } = watched(() => ({ acquire: () => Effect.succeed({ _tag: "Held", lock }) }))
      yield* TestClock.adjust("30 seconds")
      const error = yield* refusal(Storage.fromEncoded(encoded).open("log"))
      assert.include(error.remedy, "cannot be told from here")
      assert.deepStrictEqual(asked, ["acquire", "acquire"])
      assert.deepStrictEqual(dead, [undefined, { lock, proven: false }])
    })
  )
})

describe("a holder that is proven dead", () => {
  it.effect("loses its log at once", () =>
    Effect.gen(function* () {
      const { encoded, dead } = watched()
      const before = yield* heldBy(encoded)
      yield* before.append([1])
      const storage = Storage.fromEncoded(encoded, { alive: () => Effect.succeed(false) })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storage.open("log")
          yield* log.append([2])
          assert.strictEqual((yield* Effect.flip(before.append([3])))._tag, "LogFenced")
          assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [1, 2])
        })
      )
      assert.strictEqual(dead.at(-1)?.proven, true)
    })
  )

  it.effect("is one of ours whose acquisition was answered with an error", () =>
    Effect.gen(function* () {
      let isBroken = true
      const { encoded, dead } = watched((store) => ({
        acquire: (...asked) =>
          isBroken ? Effect.andThen(store.acquire(...asked), Effect.fail("lost")) : store.acquire(...asked)
      }))
      const storage = Storage.fromEncoded(encoded, { alive: () => Effect.succeed(true) })
      const error = yield* Effect.flip(Effect.scoped(storage.open("log")))
      assert.include(error.message, `could not open the log "log": lost. Mend that, then open it again.`)
      isBroken = false
      yield* Effect.scoped(storage.open("log"))
      assert.strictEqual(dead.at(-1)?.proven, true)
    })
  )
})

describe("a hold", () => {
  it.effect("is given back when its scope closes, and free to whoever finds this holder gone if that fails", () =>
    Effect.gen(function* () {
      const warnings: Array<unknown> = []
      const logger = Logger.make(({ message }) => void warnings.push(message))
      const { encoded, asked } = watched(() => ({ release: () => Effect.fail("the disk is gone") }))
      const storage = Storage.fromEncoded(encoded)
      yield* Effect.scoped(storage.open("log")).pipe(Effect.provide(Logger.layer([logger])))
      assert.deepStrictEqual(asked, ["acquire", "lines", "release 1"])
      assert.include(String(warnings), `could not release the log "log": the disk is gone`)
      yield* Effect.scoped(storage.open("log"))
    })
  )

  it.effect("is renewed at each third of its lease, also after a renewal that failed", () =>
    Effect.gen(function* () {
      const renewals: Array<readonly [epoch: number, at: number]> = []
      let answer: Effect.Effect<boolean, string> = Effect.fail("no answer")
      const { encoded } = watched(() => ({
        renew: (_, epoch, at) =>
          Effect.suspend(() => {
            renewals.push([epoch, at])
            return answer
          })
      }))
      const log = yield* Storage.fromEncoded(encoded, { lease: "9 seconds" }).open("log")
      yield* TestClock.adjust("5 seconds")
      yield* log.append([1])
      yield* TestClock.adjust("1 second")
      answer = Effect.die("thrown")
      yield* TestClock.adjust("3 seconds")
      answer = Effect.succeed(false)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(renewals, [
        [1, 3_000],
        [1, 6_000],
        [1, 9_000],
        [1, 12_000]
      ])
      assert.strictEqual((yield* Effect.flip(log.append([2])))._tag, "LogFenced")
    }).pipe(Effect.scoped)
  )

  it.effect("is not given up before what is being written, of which a closing scope waits for a while only", () =>
    Effect.gen(function* () {
      const answered = yield* Deferred.make<void>()
      const { encoded, asked } = watched((store) => ({
        append: (...lines) => Effect.andThen(Deferred.await(answered), store.append(...lines))
      }))
      const scope = yield* Scope.make()
      const storage = Storage.fromEncoded(encoded, { closeWithin: "2 seconds", shared: false })
      const log = yield* Scope.provide(storage.open("log"), scope)
      yield* Effect.forkChild(log.append([1]), { startImmediately: true })
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* TestClock.adjust(1_999)
      assert.isUndefined(closing.pollUnsafe())
      assert.include((yield* Effect.flip(log.append([2]))).message, "the scope it was opened in has ended")
      yield* TestClock.adjust(1)
      assert.isDefined(closing.pollUnsafe())
      assert.notInclude(asked, "release 1")
      yield* Deferred.succeed(answered, undefined)
      yield* TestClock.adjust(1)
      assert.strictEqual(asked.at(-1), "release 1")
      assert.deepStrictEqual(yield* Stream.runCollect(storage.read("log")), [1])
    })
  )

  it.effect("that comes after its opening was interrupted is given back", () =>
    Effect.gen(function* () {
      const answered = yield* Deferred.make<void>()
      const { encoded, asked } = watched((store) => ({
        acquire: (...asked) => Effect.tap(store.acquire(...asked), Deferred.await(answered))
      }))
      const opening = yield* Effect.forkChild(Effect.scoped(Storage.fromEncoded(encoded).open("log")), {
        startImmediately: true
      })
      yield* TestClock.adjust(1)
      yield* Fiber.interrupt(opening)
      assert.deepStrictEqual(asked, ["acquire"])
      yield* Deferred.succeed(answered, undefined)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(asked, ["acquire", "release 1"])
    })
  )

  it.effect("is traded for later ones until it is above what was ever written", () =>
    Effect.gen(function* () {
      // Somebody removed the locks: the store counts its epochs from one again.
      const { encoded, asked } = watched()
      const lines = [encodeHeader("log"), encodeRecord({ epoch: 3, seq: 1, first: 1, last: 1 }, "1")]
      yield* encoded.acquire("log", "", { now: 0 })
      yield* encoded.replace("log", 1, lines)
      yield* encoded.release("log", 1)
      asked.length = 0
      const log = yield* Storage.fromEncoded(encoded, { shared: false }).open("log")
      assert.deepStrictEqual(asked, ["acquire", "lines", "release 2", "acquire", "release 3", "acquire"])
      yield* log.append([2])
      assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [1, 2])
      const [, , last] = yield* Stream.runCollect(encoded.lines("log"))
      assert.strictEqual(JSON.parse(last ?? "").epoch, 4)
    }).pipe(Effect.scoped)
  )

  it.effect("that another one takes while it is traded is lost", () =>
    Effect.gen(function* () {
      let acquisitions = 0
      const lock: Storage.Lock = { epoch: 9, holder: "", renewedAt: 0 }
      const { encoded } = watched((store) => ({
        acquire: (...asked) => (++acquisitions > 2 ? Effect.succeed({ _tag: "Held", lock }) : store.acquire(...asked))
      }))
      yield* encoded.acquire("log", "", { now: 0 })
      yield* encoded.replace("log", 1, [
        encodeHeader("log"),
        encodeRecord({ epoch: 2, seq: 1, first: 1, last: 1 }, "1")
      ])
      yield* encoded.release("log", 1)
      const error = yield* refusal(Storage.fromEncoded(encoded).open("log"))
      assert.strictEqual(error.host, "an unknown host")
    })
  )

  it.effect("of another one keeps a log from being removed", () =>
    Effect.gen(function* () {
      const { encoded } = watched((store) => ({
        remove: (log, epoch) => (log === "taken" ? Effect.succeed(false) : store.remove(log, epoch))
      }))
      const storage = Storage.fromEncoded(encoded)
      for (const name of ["taken", "free"]) {
        yield* Effect.scoped(Effect.flatMap(storage.open(name), (log) => log.append([1])))
      }
      const error = yield* Effect.flip(storage.remove("taken"))
      assert.include(error.message, "another holder took it in the meantime")
      yield* storage.remove("free")
      assert.deepStrictEqual(yield* Stream.runCollect(storage.list()), ["taken"])
    })
  )
})

describe("an opening that is told of the end of its log", () => {
  const told = (last: (lines: ReadonlyArray<string>) => ReadonlyArray<string>, first?: (line: string) => string) =>
    watched((store) => ({
      ending: (log) =>
        Effect.map(Stream.runCollect(store.lines(log)), (lines) => ({
          first: lines[0] === undefined ? undefined : (first?.(lines[0]) ?? lines[0]),
          last: last(lines)
        }))
    }))

  const written = Effect.fnUntraced(function* (encoded: Storage.Encoded) {
    const storage = Storage.fromEncoded(encoded)
    yield* Effect.scoped(
      Effect.flatMap(storage.open("log"), (log) => Effect.andThen(log.append([1, 2]), log.append([3, 4])))
    )
    return storage
  })

  it.effect("does not read the rest of it, and goes on after it", () =>
    Effect.gen(function* () {
      // From the middle of a flush on: its beginning is told by the next one.
      const { encoded, asked } = told((lines) => lines.slice(2))
      const storage = yield* written(encoded)
      asked.length = 0
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storage.open("log")
          assert.deepStrictEqual(asked, ["acquire"])
          yield* log.append([5])
          assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [1, 2, 3, 4, 5])
        })
      )
    })
  )

  it.effect("reads all of it when the end does not say where it ends", () =>
    Effect.gen(function* () {
      for (const last of [
        () => [],
        (lines: ReadonlyArray<string>) => lines.slice(-1),
        (lines: ReadonlyArray<string>) => [...lines.slice(3), `${lines[3]?.slice(0, 9)}\0`],
        (lines: ReadonlyArray<string>) => [...lines.slice(3), "damage"],
        (lines: ReadonlyArray<string>) => lines.slice(3, 4)
      ]) {
        const { encoded, asked } = told(last)
        const storage = yield* written(encoded)
        asked.length = 0
        yield* Effect.scoped(
          Effect.gen(function* () {
            const log = yield* storage.open("log")
            assert.deepStrictEqual(asked, ["acquire", "lines"])
            yield* log.append([5])
            assert.deepStrictEqual(asked, ["acquire", "lines"])
            assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [1, 2, 3, 4, 5])
          })
        )
      }
    })
  )

  it.effect("refuses one whose first line is not its own", () =>
    Effect.gen(function* () {
      const { encoded, asked } = told(
        (lines) => lines.slice(1),
        () => encodeHeader("another")
      )
      const storage = Storage.fromEncoded(encoded)
      yield* encoded.acquire("log", "", { now: 0 })
      yield* encoded.append("log", 1, 0, [encodeHeader("log")])
      yield* encoded.release("log", 1)
      const error = yield* Effect.flip(Effect.scoped(storage.open("log")))
      assert.include(error.message, 'it holds the log "another" instead')
      assert.strictEqual(asked.at(-1), "release 2")
    })
  )
})
