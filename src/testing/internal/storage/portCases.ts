/**
 * The contract of `Storage` as any host can observe it.
 */
import { Deferred, Effect, Exit, Fiber, Scope, Stream } from "effect"
import type { Storage } from "shiftboss"
import { type Case, failsAs, holds, names, readAll, rule, same, type Service, using } from "./check.ts"

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index)

const awkward: ReadonlyArray<Storage.Json> = [
  null,
  "",
  0,
  -1.5e300,
  [],
  {},
  { nested: [{ deep: [[]] }] },
  "line\nbreak\r\u2028\u0000",
  "é, ﬁ, 😀, \ud800 alone",
  { "": 1, __proto__x: 2, entry: 3, crc: "00000000" },
  JSON.parse('{ "__proto__": { "own": 1 }, "constructor": 2 }'),
  "x".repeat(1_000_000)
]

const hostileNames: ReadonlyArray<string> = [
  "",
  "a",
  "A",
  ".",
  "..",
  "../x",
  "/etc/passwd",
  "a/b",
  "a\\b",
  "a\u0000b",
  "CON",
  "nul.txt",
  "a.ndjson",
  "a.1.lock",
  "%61",
  "*",
  "é",
  "e\u0301",
  "ﬁ",
  "\ud800",
  " a",
  "a ",
  "a.",
  "x".repeat(300),
  `${"x".repeat(299)}y`,
  "ü".repeat(150)
]

const entriesAndOrder: ReadonlyArray<Case<Service>> = [
  rule(
    "gives acknowledged entries back in the order of their appends, also after it was opened again",
    (storage, name) =>
      Effect.gen(function* () {
        const inOrder = numbers(200)
        yield* using(storage, "log", (log) =>
          Effect.gen(function* () {
            for (const number of inOrder) yield* log.append([number])
            yield* same(name, yield* Stream.runCollect(log.replay), inOrder)
          })
        )
        yield* same(name, yield* using(storage, "log", (log) => Stream.runCollect(log.replay)), inOrder)
        yield* same(name, yield* readAll(storage, "log"), inOrder)
      })
  ),
  rule("keeps whatever JSON can say", (storage, name) =>
    Effect.gen(function* () {
      yield* using(storage, "log", (log) => log.append(awkward))
      yield* same(name, yield* using(storage, "log", (log) => Stream.runCollect(log.replay)), awkward)
    })
  ),
  rule("keeps the entries of one call together, and all of concurrent calls", (storage, name) =>
    Effect.gen(function* () {
      const calls = numbers(64).map((call) => numbers(5).map((index) => `${call}.${index}`))
      yield* using(storage, "log", (log) =>
        Effect.forEach(calls, (entries) => log.append(entries), { concurrency: "unbounded", discard: true })
      )
      const kept = yield* readAll(storage, "log")
      yield* same(name, kept.toSorted(), calls.flat().toSorted())
      for (let at = 0; at < kept.length; at += 5) {
        const call = String(kept[at]).split(".")[0]
        yield* same(
          name,
          kept.slice(at, at + 5),
          numbers(5).map((index) => `${call}.${index}`)
        )
      }
    })
  ),
  rule("keeps the order of appends that one fiber makes while others append", (storage, name) =>
    Effect.gen(function* () {
      yield* using(storage, "log", (log) =>
        Effect.forEach(
          numbers(8),
          (fiber) => Effect.forEach(numbers(20), (index) => log.append([[fiber, index]]), { discard: true }),
          { concurrency: "unbounded", discard: true }
        )
      )
      const kept = yield* readAll(storage, "log")
      for (const fiber of numbers(8)) {
        const own = kept.filter((entry) => Array.isArray(entry) && entry[0] === fiber)
        yield* same(
          name,
          own,
          numbers(20).map((index) => [fiber, index])
        )
      }
    })
  ),
  rule("keeps an entry as it was when the append was made", (storage, name) =>
    Effect.gen(function* () {
      const entry = { list: [1] }
      yield* using(storage, "log", (log) =>
        Effect.gen(function* () {
          const appending = yield* Effect.forkChild(log.append([entry]), { startImmediately: true })
          entry.list.push(2)
          yield* Fiber.join(appending)
        })
      )
      yield* same(name, yield* readAll(storage, "log"), [{ list: [1] }])
    })
  ),
  rule("keeps its entries whatever is done to those that it gave", (storage, name) =>
    using(storage, "log", (log) =>
      Effect.gen(function* () {
        yield* log.append([{ list: [1] }])
        for (const read of [Stream.runCollect(log.replay), readAll(storage, "log")]) {
          for (const entry of yield* read) (entry as { list: Array<number> }).list.push(2)
        }
        yield* same(name, yield* Stream.runCollect(log.replay), [{ list: [1] }])
      })
    )
  ),
  rule("takes an append of nothing", (storage, name) =>
    Effect.gen(function* () {
      yield* using(storage, "log", (log) => log.append([]))
      yield* same(name, yield* readAll(storage, "log"), [])
      yield* same(name, yield* names(storage), [])
    })
  )
]

const holding: ReadonlyArray<Case<Service>> = [
  rule("lets nobody open a log that is held, and says who holds it and what to do", (storage, name) =>
    using(storage, "log", () =>
      Effect.gen(function* () {
        const error = yield* failsAs(name, Effect.scoped(storage.open("log")), "LogHeld")
        yield* same(name, error.log, "log")
        yield* holds(name, error.host !== "" && error.process !== "" && error.remedy !== "", error)
        yield* holds(name, Number.isFinite(error.since), error.since)
        yield* using(storage, "another log", (log) => log.append([1]))
      })
    )
  ),
  rule("lets one of many open a log at once", (storage, name) =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const attempts = yield* Effect.forEach(
        numbers(8),
        () => Effect.result(Scope.provide(storage.open("log"), scope)),
        {
          concurrency: "unbounded"
        }
      )
      yield* same(name, attempts.filter(({ _tag }) => _tag === "Success").length, 1)
      yield* Scope.close(scope, Exit.void)
      yield* using(storage, "log", (log) => log.append([1]))
    })
  ),
  rule("is free once the scope it was opened in has ended, in whatever way", (storage, name) =>
    Effect.gen(function* () {
      yield* using(storage, "log", (log) => log.append([1]))
      yield* Effect.exit(using(storage, "log", () => Effect.die("a defect of the host")))
      const opened = yield* Deferred.make<void>()
      const work = using(storage, "log", () => Effect.andThen(Deferred.succeed(opened, undefined), Effect.never))
      const fiber = yield* Effect.forkChild(work)
      yield* Deferred.await(opened)
      yield* Fiber.interrupt(fiber)
      yield* using(storage, "log", (log) => log.append([2]))
      yield* same(name, yield* readAll(storage, "log"), [1, 2])
    })
  ),
  rule("is free after an open that was interrupted", (storage, name) =>
    Effect.gen(function* () {
      for (const turns of numbers(12)) {
        const fiber = yield* Effect.forkChild(Effect.scoped(Effect.andThen(storage.open("log"), Effect.never)))
        for (const _ of numbers(turns)) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
      }
      yield* eventually(using(storage, "log", (log) => log.append([1])))
      yield* same(name, yield* readAll(storage, "log"), [1])
    })
  ),
  rule("fails to append once its scope has ended, and says so", (storage, name) =>
    Effect.gen(function* () {
      const log = yield* Effect.scoped(storage.open("log"))
      const error = yield* failsAs(name, log.append([1]), "StorageError")
      yield* holds(name, error.message.includes(`"log"`) && error.remedy !== "", error)
      yield* same(name, yield* readAll(storage, "log"), [])
    })
  ),
  rule("keeps other appends whole when one is interrupted", (storage, name) =>
    Effect.gen(function* () {
      const calls = numbers(40).map((call) => [`${call}.a`, `${call}.b`])
      yield* using(storage, "log", (log) =>
        Effect.gen(function* () {
          const fibers = yield* Effect.forEach(calls, (entries) => Effect.forkChild(log.append(entries)))
          for (const fiber of fibers.filter((_, index) => index % 3 === 0)) yield* Fiber.interrupt(fiber)
          for (const fiber of fibers.filter((_, index) => index % 3 !== 0)) yield* Fiber.join(fiber)
          yield* log.append(["after"])
        })
      )
      const kept = yield* readAll(storage, "log")
      for (const [index, [a, b]] of calls.entries()) {
        if (index % 3 !== 0) yield* holds(name, kept.includes(a!) && kept.includes(b!), kept)
        if (kept.includes(a!) || kept.includes(b!)) yield* same(name, kept.indexOf(b!), kept.indexOf(a!) + 1)
      }
    })
  )
]

/** An open that was interrupted may still be giving the log back. */
const eventually = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.retry(effect, { times: 100_000, while: (error) => Effect.as(Effect.yieldNow, error._tag === "LogHeld") })

const contents: ReadonlyArray<Case<Service>> = [
  rule("makes what it is replaced with the whole content, and appends after it", (storage, name) =>
    Effect.gen(function* () {
      yield* using(storage, "log", (log) =>
        Effect.gen(function* () {
          yield* log.append(numbers(100))
          yield* log.replace(["a", "b"])
          yield* same(name, yield* Stream.runCollect(log.replay), ["a", "b"])
          yield* log.append(["c"])
        })
      )
      yield* using(storage, "log", (log) =>
        Effect.gen(function* () {
          yield* same(name, yield* Stream.runCollect(log.replay), ["a", "b", "c"])
          yield* log.replace(numbers(3000))
          yield* log.append(["d"])
        })
      )
      yield* same(name, yield* readAll(storage, "log"), [...numbers(3000), "d"])
    })
  ),
  rule("stays a log when it is replaced with nothing", (storage, name) =>
    Effect.gen(function* () {
      yield* using(storage, "log", (log) => Effect.andThen(log.append([1]), log.replace([])))
      yield* same(name, yield* readAll(storage, "log"), [])
      yield* same(name, yield* names(storage), ["log"])
      yield* using(storage, "log", (log) => log.append([2]))
      yield* same(name, yield* readAll(storage, "log"), [2])
    })
  ),
  rule("is empty when it does not exist", (storage, name) =>
    Effect.gen(function* () {
      yield* same(name, yield* readAll(storage, "log"), [])
      yield* same(name, yield* names(storage), [])
      yield* same(name, yield* using(storage, "log", (log) => Stream.runCollect(log.replay)), [])
    })
  ),
  rule("reads whole calls, a prefix of the log, while a writer is at work", (storage, name) =>
    using(storage, "log", (log) =>
      Effect.gen(function* () {
        yield* log.append(["0.a", "0.b"])
        const writer = yield* Effect.forkChild(
          Effect.forEach(numbers(100), (call) => log.append([`${call + 1}.a`, `${call + 1}.b`]), { discard: true })
        )
        let seen = 0
        while (seen < 202) {
          const read = yield* readAll(storage, "log")
          yield* same(
            name,
            read,
            numbers(read.length).map((at) => `${at >> 1}.${at % 2 === 0 ? "a" : "b"}`)
          )
          yield* holds(name, read.length % 2 === 0 && read.length >= seen, read.length)
          seen = read.length
        }
        yield* Fiber.join(writer)
      })
    )
  )
]

const namesAreData: ReadonlyArray<Case<Service>> = [
  rule("takes any string as a name, and gives no two of them the same log", (storage, name) =>
    Effect.gen(function* () {
      for (const log of hostileNames) yield* using(storage, log, ({ append }) => append([log]))
      for (const log of hostileNames)
        yield* same(`${name} (${JSON.stringify(log)})`, yield* readAll(storage, log), [log])
      yield* same(name, yield* names(storage), hostileNames.toSorted())
    })
  ),
  rule("lists the names that begin with a prefix", (storage, name) =>
    Effect.gen(function* () {
      for (const log of ["a/1", "a/2", "b/1", "a"]) yield* using(storage, log, ({ append }) => append([1]))
      yield* same(name, yield* names(storage, "a/"), ["a/1", "a/2"])
      yield* same(name, yield* names(storage, "c"), [])
    })
  ),
  rule("removes a log that nobody holds, and one that is not there", (storage, name) =>
    Effect.gen(function* () {
      yield* using(storage, "log", (log) => log.append([1]))
      yield* using(storage, "log", () => failsAs(name, storage.remove("log"), "LogHeld"))
      yield* same(name, yield* readAll(storage, "log"), [1])
      yield* storage.remove("log")
      yield* storage.remove("log")
      yield* same(name, yield* names(storage), [])
      yield* same(name, yield* readAll(storage, "log"), [])
      yield* using(storage, "log", (log) => log.append([2]))
      yield* same(name, yield* readAll(storage, "log"), [2])
    })
  )
]

export const portCases: ReadonlyArray<Case<Service>> = [...entriesAndOrder, ...holding, ...contents, ...namesAreData]
