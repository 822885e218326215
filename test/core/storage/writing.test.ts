import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Storage } from "shiftboss"
import { encodeHeader, encodeRecord } from "../../../src/core/internal/storage/record.ts"

type Flush = readonly [operation: "append" | "replace", standing: number, ...entries: ReadonlyArray<string>]

const shownLine = (line: string): string => {
  const { entry, first, last, seq } = JSON.parse(line)
  return seq === undefined ? "header" : `${seq} of ${first}-${last}: ${JSON.stringify(entry)}`
}

/** A store in memory of which each write takes a second, and what was written. */
const slow = (change: (store: Storage.Encoded) => Partial<Storage.Encoded> = () => ({})) => {
  const memory = Storage.makeMemory()
  const store = { ...memory, ...change(memory) }
  const flushes: Array<Flush> = []
  const encoded: Storage.Encoded = {
    ...store,
    append: (log, epoch, standing, lines) => {
      flushes.push(["append", standing, ...lines.map(shownLine)])
      return Effect.delay(store.append(log, epoch, standing, lines), "1 second")
    },
    replace: (log, epoch, lines) => {
      flushes.push(["replace", 0, ...lines.map(shownLine)])
      return Effect.delay(store.replace(log, epoch, lines), "1 second")
    }
  }
  return { encoded, flushes, storage: Storage.fromEncoded(encoded, { shared: false }) }
}

/** Begins the effect, and goes on at once. */
const begun = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

/** What the effect comes to, while so much time passes. */
const passing = <A, E>(effect: Effect.Effect<A, E>, seconds = 10) =>
  Effect.gen(function* () {
    const fiber = yield* begun(effect)
    yield* TestClock.adjust(seconds * 1_000)
    return yield* Fiber.join(fiber)
  })

/** Begins all of them once the first is being written. */
const underWay = <A, E>(first: Effect.Effect<A, E>, ...others: ReadonlyArray<Effect.Effect<A, E>>) =>
  Effect.gen(function* () {
    const fiber = yield* begun(first)
    yield* TestClock.adjust(1)
    return [fiber, ...(yield* Effect.forEach(others, begun))]
  })

const entriesOf = (log: Storage.Log<Storage.Json>) => Stream.runCollect(log.replay)

describe("writes", () => {
  it.effect("go on where the last one ended; the first one begins the log", () =>
    Effect.gen(function* () {
      const { flushes, storage } = slow()
      const log = yield* storage.open("log")
      yield* passing(log.append(["a"]))
      yield* passing(log.append(["b", "c"]))
      assert.deepStrictEqual(flushes, [
        ["append", 0, "header", '1 of 1-1: "a"'],
        ["append", 2, '2 of 2-3: "b"', '3 of 2-3: "c"']
      ])
    }).pipe(Effect.scoped)
  )

  it.effect("that come during a flush are the next one, but for what a replacement lies between", () =>
    Effect.gen(function* () {
      const { flushes, storage } = slow()
      const log = yield* storage.open("log")
      const fibers = yield* underWay(
        log.append([1]),
        ...[log.append([2]), log.append([3]), log.replace([4]), log.append([5]), log.append([6])]
      )
      yield* TestClock.adjust("10 seconds")
      for (const fiber of fibers) yield* Fiber.join(fiber)
      assert.deepStrictEqual(flushes, [
        ["append", 0, "header", "1 of 1-1: 1"],
        ["append", 2, "2 of 2-3: 2", "3 of 2-3: 3"],
        ["replace", 0, "header", "1 of 1-1: 4"],
        ["append", 2, "2 of 2-3: 5", "3 of 2-3: 6"]
      ])
      assert.deepStrictEqual(yield* entriesOf(log), [4, 5, 6])
    }).pipe(Effect.scoped)
  )

  it.effect("of those who append one after the other share their flushes", () =>
    Effect.gen(function* () {
      const { flushes, storage } = slow()
      const log = yield* storage.open("log")
      const each = Effect.forEach([1, 2, 3, 4, 5], (entry) => log.append([entry]), { discard: true })
      yield* passing(Effect.all([each, each, each], { concurrency: 3, discard: true }), 20)
      // The first of them is alone.
      assert.isAtMost(flushes.length, 6)
    }).pipe(Effect.scoped)
  )

  it.effect("do not make a flush grow for ever", () =>
    Effect.gen(function* () {
      const { flushes, storage } = slow()
      const log = yield* storage.open("log")
      const big = "x".repeat(4 * 1024 * 1024 - 2)
      const fibers = yield* underWay(log.append([0]), log.append([big]), log.append([1]), log.append([2]))
      yield* TestClock.adjust("10 seconds")
      for (const fiber of fibers) yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        flushes.map((flush) => flush.slice(2).map((line) => String(line).slice(0, 8))),
        [["header", "1 of 1-1"], ["2 of 2-2"], ["3 of 3-4", "4 of 3-4"]]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("of nothing ask nothing of the store, and a replacement with nothing leaves a log that goes on", () =>
    Effect.gen(function* () {
      const { flushes, storage } = slow()
      const log = yield* storage.open("log")
      yield* log.append([])
      assert.deepStrictEqual(flushes, [])
      yield* passing(log.append(["a"]))
      yield* passing(log.replace([]))
      assert.deepStrictEqual(yield* entriesOf(log), [])
      yield* passing(log.append(["b"]))
      assert.deepStrictEqual(flushes.slice(1), [
        ["replace", 0, "header"],
        ["append", 1, '1 of 1-1: "b"']
      ])
    }).pipe(Effect.scoped)
  )

  it.effect("of long content bound what a reader has to keep", () =>
    Effect.gen(function* () {
      const { flushes, storage } = slow()
      const log = yield* storage.open("log")
      const numbers = Array.from({ length: 1_025 }, (_, number) => number)
      yield* passing(log.replace(numbers))
      const places = flushes[0]?.slice(3).map((line) => String(line).split(":")[0])
      assert.deepStrictEqual(
        [1, 512, 513, 1_024, 1_025].map((at) => places?.[at - 1]),
        ["1 of 1-512", "512 of 1-512", "513 of 513-1024", "1024 of 513-1024", "1025 of 1025-1025"]
      )
      assert.deepStrictEqual(yield* entriesOf(log), numbers)
    }).pipe(Effect.scoped)
  )

  it.effect("keep what was given when they were called, whatever its owner does later", () =>
    Effect.gen(function* () {
      const { storage } = slow()
      const log = yield* storage.open("log")
      yield* begun(log.append([0]))
      const entry = { is: "before" }
      const entries: Array<Storage.Json> = [entry]
      const append = yield* begun(log.append(entries))
      entry.is = "after"
      entries.push("more")
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(append)
      assert.deepStrictEqual(yield* entriesOf(log), [0, { is: "before" }])
    }).pipe(Effect.scoped)
  )

  it.effect("of what is no JSON write nothing, and stand in nobody's way", () =>
    Effect.gen(function* () {
      const { flushes, storage } = slow()
      const log = yield* storage.open("log")
      const exit = yield* Effect.exit(log.append([1, undefined as never]))
      assert.match(String(exit), /an entry of a log has to be JSON/)
      yield* passing(log.append([2]))
      assert.deepStrictEqual(flushes, [["append", 0, "header", "1 of 1-1: 2"]])
    }).pipe(Effect.scoped)
  )

  it.effect("whose caller is interrupted go on, for others wait for the same flush", () =>
    Effect.gen(function* () {
      const { storage } = slow()
      const log = yield* storage.open("log")
      const [first, second, third] = yield* underWay(log.append([1]), log.append([2]), log.append([3]))
      yield* Fiber.interrupt(first!)
      yield* Fiber.interrupt(second!)
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(third!)
      assert.deepStrictEqual(yield* entriesOf(log), [1, 2, 3])
    }).pipe(Effect.scoped)
  )

  it.effect("that failed did not happen: the next one takes their place", () =>
    Effect.gen(function* () {
      let isFull = true
      const { flushes, storage } = slow((store) => ({
        append: (...lines) => (isFull ? Effect.fail("no space") : store.append(...lines))
      }))
      const log = yield* storage.open("log")
      const error = yield* Effect.flip(passing(log.append(["a"])))
      assert.include(error.message, "no space. Mend that, then append again: until it succeeds nothing of it counts.")
      isFull = false
      yield* passing(log.append(["b"]))
      assert.deepStrictEqual(flushes[1], ["append", 0, "header", '1 of 1-1: "b"'])
      assert.deepStrictEqual(yield* entriesOf(log), ["b"])
    }).pipe(Effect.scoped)
  )

  it.effect("of a holder that was fenced off fail, and later ones do not reach the store", () =>
    Effect.gen(function* () {
      const { flushes, storage } = slow(() => ({ append: () => Effect.succeed(false) }))
      const log = yield* storage.open("log")
      const waiting = yield* underWay(
        Effect.flip(log.append([1])),
        Effect.flip(log.append([2])),
        Effect.flip(log.replace([3]))
      )
      yield* TestClock.adjust("10 seconds")
      for (const fiber of waiting) assert.strictEqual((yield* Fiber.join(fiber))._tag, "LogFenced")
      assert.strictEqual((yield* Effect.flip(log.append([4])))._tag, "LogFenced")
      assert.lengthOf(flushes, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("to a log whose scope has ended are refused, by their name", () =>
    Effect.gen(function* () {
      const { storage } = slow()
      const log = yield* Effect.scoped(storage.open("log"))
      for (const operation of ["append", "replace"] as const) {
        const error = yield* Effect.flip(log[operation]([1]))
        assert.deepStrictEqual(error._tag === "StorageError" && error.operation, operation)
        assert.include(error.message, "the scope it was opened in has ended")
      }
    })
  )
})

// -----------------------------------------------------------------------------
// what is not known of the content
// -----------------------------------------------------------------------------

/** A log of three entries, each a flush, opened by its end alone; `read` is what is read of it later. */
const openedByEnd = Effect.fnUntraced(function* (
  read: (lines: ReadonlyArray<string>) => Stream.Stream<string, unknown>
) {
  const memory = Storage.makeMemory()
  const lines = [
    encodeHeader("log"),
    ...[1, 2, 3].map((seq) => encodeRecord({ epoch: 1, seq, first: seq, last: seq }, String(seq)))
  ]
  yield* memory.acquire("log", "", { now: 0 })
  yield* memory.replace("log", 1, lines)
  yield* memory.release("log", 1)
  const storage = Storage.fromEncoded(
    {
      ...memory,
      ending: () => Effect.succeed({ first: lines[0], last: lines.slice(-1) }),
      lines: () => read(lines)
    },
    { shared: false }
  )
  return yield* storage.open("log")
})

describe("a log that was opened by its end", () => {
  it.effect("is not written to when it has lost what was acknowledged", () =>
    Effect.gen(function* () {
      const log = yield* openedByEnd((lines) => Stream.fromArray(lines.slice(0, -1)))
      for (const write of [log.append, log.replace]) {
        const error = yield* Effect.flip(write([4]))
        assert.include(error.message, "it holds 2 entries, but 3 were acknowledged")
      }
      const { message } = yield* Effect.flip(entriesOf(log))
      assert.include(message, "damaged in line 4: it ends here, but entry 3 was acknowledged")
    }).pipe(Effect.scoped)
  )

  it.effect("is not written to when it is damaged, which is what the error is of", () =>
    Effect.gen(function* () {
      const log = yield* openedByEnd((lines) =>
        Stream.fromArray(lines.map((line, index) => (index === 1 ? `${line} ` : line)))
      )
      const error = yield* Effect.flip(log.append([4]))
      assert(error._tag === "StorageError")
      assert.deepStrictEqual([error.operation, error.log], ["append", "log"])
      assert.instanceOf(error.cause, Storage.LogCorrupt)
    }).pipe(Effect.scoped)
  )

  it.effect("is not written to while it cannot be read, which is said once", () =>
    Effect.gen(function* () {
      const log = yield* openedByEnd(() => Stream.fail("unreadable"))
      const error = yield* Effect.flip(log.append([4]))
      assert.include(error.message, `could not append the log "log": unreadable. Mend that`)
    }).pipe(Effect.scoped)
  )

  it.effect("is not read when it does not say how it can", () =>
    Effect.gen(function* () {
      const memory = Storage.makeMemory()
      const storage = Storage.fromEncoded({ ...memory, lines: () => Stream.fail("unreadable") })
      const open = yield* Effect.flip(Effect.scoped(storage.open("log")))
      assert.include(open.message, `could not open the log "log": unreadable. Mend that, then open it again.`)
      const read = yield* Effect.flip(Stream.runCollect(storage.read("log")))
      assert.include(read.message, `could not read the log "log": unreadable. Mend that, then read again.`)
    })
  )
})

describe("a replacement whose answer was lost", () => {
  it.effect("together with what stood is told, and nothing is written over it", () =>
    Effect.gen(function* () {
      const memory = Storage.makeMemory()
      let kept = Infinity
      const storage = Storage.fromEncoded(
        {
          ...memory,
          replace: () =>
            Effect.suspend(() => {
              kept = 2
              return Effect.fail("no answer")
            }),
          lines: (log) => Stream.take(memory.lines(log), kept)
        },
        { shared: false }
      )
      const log = yield* storage.open("log")
      yield* log.append(["a"])
      yield* log.append(["b"])
      yield* Effect.flip(log.replace(["c"]))
      const error = yield* Effect.flip(log.append(["d"]))
      assert.include(error.message, "it holds 1 entries, but 2 were acknowledged")
    }).pipe(Effect.scoped)
  )

  for (const isDone of [true, false]) {
    for (const next of ["append", "replace"] as const) {
      it.effect(`${isDone ? "but" : "and"} was ${isDone ? "" : "not "}made is found out before the next ${next}`, () =>
        Effect.gen(function* () {
          const memory = Storage.makeMemory()
          let isLost = true
          let surveys = 0
          const storage = Storage.fromEncoded(
            {
              ...memory,
              replace: (...content) => {
                if (!isLost) return memory.replace(...content)
                const lost = Effect.fail("no answer")
                return isDone ? Effect.andThen(memory.replace(...content), lost) : lost
              },
              lines: (log) =>
                Stream.suspend(() => {
                  surveys++
                  return memory.lines(log)
                })
            },
            { shared: false }
          )
          const log = yield* storage.open("log")
          // As many entries before and after: only what they are tells the one content from the other.
          yield* log.append(["a", "b"])
          const error = yield* Effect.flip(log.replace(["c", "d"]))
          assert.include(error.message, "until it succeeds the former content stands")
          isLost = false
          surveys = 0
          yield* log[next](["e"])
          assert.strictEqual(surveys, 1)
          const former = isDone ? ["c", "d"] : ["a", "b"]
          assert.deepStrictEqual(yield* entriesOf(log), next === "replace" ? ["e"] : [...former, "e"])
          surveys = 0
          yield* log.append(["f"])
          assert.strictEqual(surveys, 0)
        }).pipe(Effect.scoped)
      )
    }
  }
})

describe("a replay", () => {
  it.effect("that a replacement overtakes before its first line is of the new content", () =>
    Effect.gen(function* () {
      const memory = Storage.makeMemory()
      const released = yield* Deferred.make<void>()
      let isHeldUp = false
      const storage = Storage.fromEncoded(
        {
          ...memory,
          lines: (log) =>
            Stream.unwrap(
              Effect.suspend(() => {
                const lines = memory.lines(log)
                if (!isHeldUp) return Effect.succeed(lines)
                isHeldUp = false
                return Effect.as(Deferred.await(released), lines)
              })
            )
        },
        { shared: false }
      )
      const log = yield* storage.open("log")
      yield* log.append([1, 2, 3])
      isHeldUp = true
      const replaying = yield* begun(entriesOf(log))
      yield* log.replace([4])
      yield* log.append([5])
      yield* Deferred.succeed(released, undefined)
      assert.deepStrictEqual(yield* Fiber.join(replaying), [4, 5])
    }).pipe(Effect.scoped)
  )

  it.effect("of a log without entries asks nothing of the store", () =>
    Effect.gen(function* () {
      const memory = Storage.makeMemory()
      let reads = 0
      const lines: Storage.Encoded["lines"] = (log) =>
        Stream.suspend(() => {
          reads++
          return memory.lines(log)
        })
      const log = yield* Storage.fromEncoded({ ...memory, lines }, { shared: false }).open("log")
      reads = 0
      assert.deepStrictEqual(yield* entriesOf(log), [])
      assert.strictEqual(reads, 0)
    }).pipe(Effect.scoped)
  )
})

describe("an identity", () => {
  it.effect("is drawn once a store, never twice, and numbers its holders", () =>
    Effect.gen(function* () {
      const memory = Storage.makeMemory()
      const ids: Array<string> = []
      const acquire: Storage.Encoded["acquire"] = (log, holder, options) => {
        ids.push(JSON.parse(holder).id)
        return memory.acquire(log, holder, options)
      }
      let drawn = 0
      const identity = Effect.sync(() => ({ id: `id ${++drawn}`, host: "h", process: "p" }))
      const own = Storage.fromEncoded({ ...memory, acquire }, { identity, shared: false })
      for (const log of ["a", "b"]) yield* Effect.scoped(own.open(log))
      assert.deepStrictEqual(ids, ["id 1/1", "id 1/2"])
      ids.length = 0
      for (let store = 0; store < 2; store++) {
        const storage = Storage.fromEncoded({ ...memory, acquire }, { shared: false })
        for (const log of ["c", "d"]) yield* Effect.scoped(storage.open(log))
      }
      const [first, second, third, fourth] = ids.map((id) => id.split("/"))
      assert.deepStrictEqual([first?.[1], second?.[1]], ["1", "2"])
      assert.strictEqual(first?.[0], second?.[0])
      assert.strictEqual(third?.[0], fourth?.[0])
      assert.notStrictEqual(first?.[0], third?.[0])
    })
  )

  it("of times that make no sense is refused", () => {
    for (const lease of [0, -1, Infinity, NaN]) {
      assert.throws(() => Storage.fromEncoded(Storage.makeMemory(), { lease }), RangeError, /lease/)
    }
    assert.isDefined(Storage.fromEncoded(Storage.makeMemory(), { lease: 1, closeWithin: 1 }))
  })
})

describe("what an adapter says to do", () => {
  it.effect("is said instead of the general advice, where it says something", () =>
    Effect.gen(function* () {
      const memory = Storage.makeMemory()
      const storage = Storage.fromEncoded(
        { ...memory, append: () => Effect.fail("full"), replace: () => Effect.fail("other") },
        {
          shared: false,
          remedy: (operation, cause) => (cause === "full" ? `Make room to ${operation}` : undefined)
        }
      )
      const log = yield* storage.open("log")
      const full = yield* Effect.exit(log.append([1]))
      assert(Exit.isFailure(full))
      assert.include(String(full.cause), `could not append the log "log": full. Make room to append.`)
      const other = yield* Effect.flip(log.replace([1]))
      assert.include(other.message, "other. Mend that, then replace again")
      const failing = Storage.fromEncoded({ ...memory, names: Stream.fail({ code: "EIO" }) })
      const list = yield* Effect.flip(Stream.runCollect(failing.list("pre")))
      assert.include(list.message, `could not list the log "pre*": {"code":"EIO"}. Mend that, then list again.`)
    }).pipe(Effect.scoped)
  )
})

describe("errors of logs", () => {
  it("say whose log it is, what became of it, and what to do", () => {
    const fenced = new Storage.LogFenced({ log: "a" }).message
    assert.match(fenced, /^the log "a" was taken over by another holder; .* make sure that only one process is meant/)
    const tooNew = new Storage.LogTooNew({ log: "a", version: 3, supported: 1 }).message
    assert.match(tooNew, /^the log "a" has format 3; this version of shiftboss reads up to 1\. Upgrade shiftboss/)
  })
})
