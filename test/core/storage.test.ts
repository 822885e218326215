import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Storage } from "shiftboss"

const inLog = <A, E>(work: (log: Storage.Log<Storage.Json>) => Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const storage = yield* Storage.Storage
    return yield* Effect.scoped(Effect.flatMap(storage.open("log"), work))
  }).pipe(Effect.provide(Storage.layerMemory))

describe("typed", () => {
  const At = Schema.Struct({ at: Schema.Date, note: Schema.optional(Schema.String) })

  it.effect("takes and gives values of the schema, and stores them with their version", () =>
    inLog((log) =>
      Effect.gen(function* () {
        const typed = Storage.typed(log, { entry: At, version: 3 })
        const values = [{ at: new Date(0) }, { at: new Date(1e12), note: "later" }]
        yield* typed.append(values)
        assert.deepStrictEqual(yield* Stream.runCollect(typed.replay), values)
        yield* typed.replace(values.slice(1))
        assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [
          { version: 3, value: { at: "2001-09-09T01:46:40.000Z", note: "later" } }
        ])
      })
    )
  )

  it.effect("upgrades what earlier versions stored, and leaves what later ones did alone", () =>
    inLog((log) =>
      Effect.gen(function* () {
        yield* log.append([{ version: 1, value: "1970-01-01T00:00:00.000Z" }])
        const upgrade = (stored: Storage.Json, version: number) => ({ at: stored, note: `from ${version}` })
        const typed = Storage.typed(log, { entry: At, version: 2, upgrade })
        assert.deepStrictEqual(yield* Stream.runCollect(typed.replay), [{ at: new Date(0), note: "from 1" }])
        const older = yield* Effect.flip(Stream.runCollect(Storage.typed(log, { entry: At, version: 0 }).replay))
        assert(older._tag === "LogTooNew")
        assert.deepStrictEqual([older.version, older.supported], [1, 0])
      })
    )
  )

  it.effect("leaves what the same version stored as it is, and decodes older ones as they are without an upgrade", () =>
    inLog((log) =>
      Effect.gen(function* () {
        const entry = { at: "1970-01-01T00:00:00.000Z" }
        const upgrade = () => assert.fail("there is nothing to upgrade")
        yield* log.append([{ version: 2, value: entry }])
        const same = Storage.typed(log, { entry: At, version: 2, upgrade })
        assert.deepStrictEqual(yield* Stream.runCollect(same.replay), [{ at: new Date(0) }])
        const later = Storage.typed(log, { entry: At, version: 3 })
        assert.deepStrictEqual(yield* Stream.runCollect(later.replay), [{ at: new Date(0) }])
      })
    )
  )

  it.effect("fails at an entry that has no version, whatever it is instead", () =>
    inLog((log) =>
      Effect.gen(function* () {
        const value = { at: "1970-01-01T00:00:00.000Z" }
        const typed = Storage.typed(log, { entry: At, version: 1 })
        for (const bad of [
          ...[null, 5, "version value", [], { value }, { version: 1 }],
          ...["1", null, 0, -1, 1.5].map((version) => ({ version, value }))
        ]) {
          yield* log.replace([bad])
          const error = yield* Effect.flip(Stream.runCollect(typed.replay))
          assert.strictEqual(
            error._tag === "LogCorrupt" && error.found,
            "its entry has no version",
            JSON.stringify(bad)
          )
        }
      })
    )
  )

  it.effect("fails at an entry that does not decode, and says in which line", () =>
    inLog((log) =>
      Effect.gen(function* () {
        const typed = Storage.typed(log, { entry: At, version: 1 })
        yield* typed.append([{ at: new Date(0) }])
        for (const bad of [{ version: 1, value: { at: 7 } }, "no version"]) {
          yield* log.replace([...(yield* Stream.runCollect(log.replay)).slice(0, 1), bad])
          const error = yield* Effect.flip(Stream.runCollect(typed.replay))
          assert(error._tag === "LogCorrupt")
          assert.strictEqual(error.line, 3)
          assert.include(error.message, `the log "log" is damaged in line 3: its entry`)
        }
      })
    )
  )
})

describe("logs in memory", () => {
  it.effect("are nobody else's, take no entry that is no JSON, and keep what they have then", () =>
    Effect.gen(function* () {
      const storage = yield* Storage.Storage
      assert.isFalse(storage.shared)
      const log = yield* storage.open("log")
      yield* log.append([1])
      for (const entry of [undefined, () => 1, Symbol("s")]) {
        for (const write of [log.append, log.replace]) {
          const exit = yield* Effect.exit(write([2, entry as never]))
          assert.match(String(exit), /an entry of a log has to be JSON/)
        }
      }
      assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [1])
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Storage.layerMemory)))
  )

  it.effect("give all of a long one, as it was when the reading began", () =>
    Effect.gen(function* () {
      const log = yield* (yield* Storage.Storage).open("log")
      const numbers = Array.from({ length: 10_000 }, (_, number) => number)
      yield* log.append(numbers)
      const read: Array<Storage.Json> = []
      yield* Stream.runForEachArray(log.replay, (some) => {
        read.push(...some)
        return log.append(["later"])
      })
      assert.deepStrictEqual(read, numbers)
      const { length } = yield* Stream.runCollect(log.replay)
      assert.isAbove(length, numbers.length)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Storage.layerMemory)))
  )
})

describe("a log over the seam", () => {
  it.effect("keeps what is appended while it is replayed", () =>
    Effect.gen(function* () {
      const storage = Storage.fromEncoded(Storage.makeMemory())
      const log = yield* storage.open("log")
      yield* log.append([1])
      yield* Stream.runForEach(log.replay, () => log.append([2]))
      yield* log.append([3])
      assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [1, 2, 3])
      assert.deepStrictEqual(yield* Stream.runCollect(storage.read("log")), [1, 2, 3])
    }).pipe(Effect.scoped)
  )

  it.effect("is replaced by its holder only", () =>
    Effect.gen(function* () {
      const store = Storage.makeMemory()
      const storage = Storage.fromEncoded({ ...store, replace: () => Effect.succeed(false) })
      const log = yield* storage.open("log")
      yield* log.append([1])
      assert.strictEqual((yield* Effect.flip(log.replace([2])))._tag, "LogFenced")
      assert.strictEqual((yield* Effect.flip(log.append([3])))._tag, "LogFenced")
      assert.deepStrictEqual(yield* Stream.runCollect(storage.read("log")), [1])
    }).pipe(Effect.scoped)
  )

  it.effect("makes one flush of the appends that wait for one, and no half of any", () =>
    Effect.gen(function* () {
      const store = Storage.makeMemory()
      const storage = Storage.fromEncoded(store)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storage.open("log")
          const appends = Array.from({ length: 10 }, (_, number) => log.append([number]))
          yield* Effect.all(appends, { concurrency: "unbounded", discard: true })
        })
      )
      const lines = (yield* Stream.runCollect(store.lines("log"))).slice(1).map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        lines.map(({ first, last, seq }) => [first, seq, last]),
        Array.from({ length: 10 }, (_, index) => [1, index + 1, 10])
      )
    })
  )

  it.effect("finds out which content stands after a replacement whose answer was lost", () =>
    Effect.gen(function* () {
      for (const isDone of [true, false]) {
        const store = Storage.makeMemory()
        const lost = Effect.fail("the answer was lost")
        let isBroken = true
        const storage = Storage.fromEncoded({
          ...store,
          replace: (log, epoch, lines) => {
            if (!isBroken) return store.replace(log, epoch, lines)
            return isDone ? Effect.andThen(store.replace(log, epoch, lines), lost) : lost
          }
        })
        yield* Effect.scoped(
          Effect.gen(function* () {
            const log = yield* storage.open("log")
            yield* log.append(["a", "b", "c"])
            assert.strictEqual((yield* Effect.flip(log.replace(["new"])))._tag, "StorageError")
            isBroken = false
            yield* log.append(["after"])
            assert.deepStrictEqual(
              yield* Stream.runCollect(log.replay),
              isDone ? ["new", "after"] : ["a", "b", "c", "after"]
            )
          })
        )
      }
    })
  )

  it.effect("takes a log back whose acquisition was answered with an error", () =>
    Effect.gen(function* () {
      const store = Storage.makeMemory()
      let isBroken = true
      const storage = Storage.fromEncoded({
        ...store,
        acquire: (log, holder, options) =>
          isBroken
            ? Effect.andThen(store.acquire(log, holder, options), Effect.fail("lost"))
            : store.acquire(log, holder, options)
      })
      assert.strictEqual((yield* Effect.flip(Effect.scoped(storage.open("log"))))._tag, "StorageError")
      isBroken = false
      yield* Effect.scoped(storage.open("log"))
    })
  )

  it.effect("makes an error of an adapter that throws, and works on", () =>
    Effect.gen(function* () {
      const store = Storage.makeMemory()
      let isBroken = true
      const storage = Storage.fromEncoded({
        ...store,
        append: (log, epoch, standing, lines) =>
          isBroken ? Effect.die(new Error("thrown")) : store.append(log, epoch, standing, lines)
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storage.open("log")
          const error = yield* Effect.flip(log.append([1]))
          assert.include(error.message, `could not append the log "log": thrown. `)
          isBroken = false
          yield* log.append([2])
          assert.deepStrictEqual(yield* Stream.runCollect(log.replay), [2])
        })
      )
    })
  )

  it.effect("fences a holder off as soon as a renewal finds its lock lost", () =>
    Effect.gen(function* () {
      const store = Storage.makeMemory()
      const storage = Storage.fromEncoded({ ...store, renew: () => Effect.succeed(false) }, { lease: "3 seconds" })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const log = yield* storage.open("log")
          yield* log.append([1])
          yield* TestClock.adjust("1 second")
          assert.strictEqual((yield* Effect.flip(log.append([2])))._tag, "LogFenced")
        })
      )
      assert.deepStrictEqual(yield* Stream.runCollect(storage.read("log")), [1])
    })
  )

  for (const [shared, renewals] of [
    [true, 8640],
    [false, 0]
  ] as const) {
    it.effect(`renews its hold ${renewals} times a day when it is ${shared ? "" : "not "}shared`, () =>
      Effect.gen(function* () {
        const store = Storage.makeMemory()
        let renewed = 0
        const renew: Storage.Encoded["renew"] = (...lock) =>
          Effect.andThen(
            Effect.sync(() => renewed++),
            store.renew(...lock)
          )
        yield* Storage.fromEncoded({ ...store, renew }, { shared }).open("log")
        yield* TestClock.adjust("1 day")
        assert.strictEqual(renewed, renewals)
      })
    )
  }

  it("refuses a lease that makes no sense", () => {
    assert.throws(() => Storage.fromEncoded(Storage.makeMemory(), { lease: 0 }), /lease has to be a positive/)
    assert.throws(() => Storage.fromEncoded(Storage.makeMemory(), { closeWithin: "-1 seconds" }), /closeWithin/)
  })
})
