/**
 * What an adapter has to do itself, and what the guarantees above the seam make of it.
 */
import { Effect, Layer, Stream } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { Storage } from "shiftboss"
import { type Case, failsAs, holds, names, readAll, rule, same, using } from "./check.ts"

type Encoded = Storage.Encoded

const lines = (encoded: Encoded, log: string) => Stream.runCollect(encoded.lines(log))

/** Takes the log as this holder; dies when somebody has it. */
const acquire = Effect.fnUntraced(function* (encoded: Encoded, log: string, holder: string, now = 0) {
  const acquired = yield* encoded.acquire(log, holder, { now })
  return acquired._tag === "Acquired"
    ? acquired.epoch
    : yield* Effect.die(`"${log}" is held by ${acquired.lock.holder}`)
})

const lockOf = Effect.fnUntraced(function* (encoded: Encoded, log: string) {
  const answer = yield* encoded.acquire(log, "somebody who asks", { now: 0 })
  return answer._tag === "Held" ? answer.lock : yield* Effect.die(`"${log}" is free`)
})

/** Changes the lines behind the storage's back, as damage would. */
const rewrite = Effect.fnUntraced(function* (
  encoded: Encoded,
  log: string,
  change: (lines: ReadonlyArray<string>) => ReadonlyArray<string>
) {
  const changed = change(yield* lines(encoded, log))
  const epoch = yield* acquire(encoded, log, "damage")
  yield* encoded.replace(log, epoch, changed)
  yield* encoded.release(log, epoch)
})

const locks: ReadonlyArray<Case<Encoded>> = [
  rule("gives a log to one of many that acquire it at once", (encoded, name) =>
    Effect.gen(function* () {
      const holders = ["a", "b", "c", "d", "e", "f"]
      const answers = yield* Effect.forEach(holders, (holder) => encoded.acquire("log", holder, { now: 0 }), {
        concurrency: "unbounded"
      })
      yield* same(name, answers.filter(({ _tag }) => _tag === "Acquired").length, 1)
    })
  ),
  rule("never gives an epoch twice: not after a release, a takeover or a removal", (encoded, name) =>
    Effect.gen(function* () {
      const first = yield* acquire(encoded, "log", "a")
      yield* encoded.append("log", first, 0, ["line"])
      yield* encoded.release("log", first)
      const second = yield* acquire(encoded, "log", "b")
      const dead = { lock: yield* lockOf(encoded, "log"), proven: true }
      const third = yield* encoded.acquire("log", "c", { now: 0, dead })
      if (third._tag === "Held") return yield* holds(name, false, third)
      yield* encoded.remove("log", third.epoch)
      yield* encoded.release("log", third.epoch)
      const fourth = yield* acquire(encoded, "log", "d")
      yield* holds(name, first < second && second < third.epoch && third.epoch < fourth, [first, second, third, fourth])
    })
  ),
  rule("takes a lock over only while it is exactly the one that was judged", (encoded, name) =>
    Effect.gen(function* () {
      const epoch = yield* acquire(encoded, "log", "a", 1000)
      const lock = yield* lockOf(encoded, "log")
      yield* same(name, [lock.epoch, lock.holder, lock.renewedAt], [epoch, "a", 1000])
      yield* same(name, yield* encoded.renew("log", epoch, 2000), true)
      const late = yield* encoded.acquire("log", "b", { now: 2000, dead: { lock, proven: false } })
      yield* same(name, late._tag, "Held")
      const renewed = yield* lockOf(encoded, "log")
      yield* same(name, renewed.renewedAt, 2000)
      const other = { ...renewed, holder: "x" }
      const wrong = yield* encoded.acquire("log", "b", { now: 2000, dead: { lock: other, proven: true } })
      yield* same(name, wrong._tag, "Held")
      const taken = yield* encoded.acquire("log", "b", { now: 2000, dead: { lock: renewed, proven: false } })
      yield* same(name, taken._tag, "Acquired")
    })
  ),
  rule("lets a former epoch renew, release, append, replace and remove nothing", (encoded, name) =>
    Effect.gen(function* () {
      const former = yield* acquire(encoded, "log", "a")
      yield* encoded.append("log", former, 0, ["1", "2"])
      const dead = { lock: yield* lockOf(encoded, "log"), proven: false }
      const taken = yield* encoded.acquire("log", "b", { now: 0, dead })
      if (taken._tag === "Held") return yield* holds(name, false, taken)
      yield* same(name, yield* encoded.renew("log", former, 1), false)
      yield* encoded.release("log", former)
      yield* same(name, (yield* lockOf(encoded, "log")).holder, "b")
      yield* same(name, yield* encoded.append("log", former, 2, ["late"]), false)
      yield* same(name, yield* encoded.append("log", taken.epoch, 2, ["3"]), true)
      yield* same(name, yield* encoded.append("log", former, 2, ["later"]), false)
      yield* same(name, yield* encoded.replace("log", former, ["late"]), false)
      yield* same(name, yield* encoded.remove("log", former), false)
      yield* same(name, yield* lines(encoded, "log"), ["1", "2", "3"])
    })
  )
]

const content: ReadonlyArray<Case<Encoded>> = [
  rule("drops what it holds beyond the lines that stand, when more are appended", (encoded, name) =>
    Effect.gen(function* () {
      const epoch = yield* acquire(encoded, "log", "a")
      yield* encoded.append("log", epoch, 0, ["1", "2"])
      yield* encoded.append("log", epoch, 2, ["not acknowledged", "nor this"])
      yield* encoded.append("log", epoch, 2, ["3"])
      yield* same(name, yield* lines(encoded, "log"), ["1", "2", "3"])
    })
  ),
  rule("keeps every line as it is and in order, however many and long", (encoded, name) =>
    Effect.gen(function* () {
      const epoch = yield* acquire(encoded, "log", "a")
      const many = Array.from({ length: 20_000 }, (_, index) => `${index} é 😀 "\\ `)
      const long = `${"é".repeat(700_000)}`
      yield* encoded.append("log", epoch, 0, many)
      yield* encoded.append("log", epoch, many.length, [long, "last"])
      yield* same(name, yield* lines(encoded, "log"), [...many, long, "last"])
      yield* encoded.replace("log", epoch, ["only"])
      yield* same(name, yield* lines(encoded, "log"), ["only"])
    })
  )
]

/** With a clock of its own, which stands still unless the effect itself moves it: a process that is paused. */
const withOwnClock = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, Layer.fresh(TestClock.layer()))

const takeovers: ReadonlyArray<Case<Encoded>> = [
  rule("takes over at once from a holder that is proven dead, which is fenced off", (encoded, name) =>
    Effect.gen(function* () {
      const first = Storage.fromEncoded(encoded)
      const second = Storage.fromEncoded(encoded, { alive: () => Effect.succeed(false) })
      const log = yield* first.open("log")
      yield* log.append([1, 2])
      yield* using(second, "log", (successor) =>
        Effect.gen(function* () {
          yield* successor.append([3])
          yield* failsAs(name, log.append(["late"]), "LogFenced")
          yield* failsAs(name, log.replace(["late"]), "LogFenced")
          yield* same(name, yield* Stream.runCollect(successor.replay), [1, 2, 3])
        })
      )
      yield* same(name, yield* readAll(second, "log"), [1, 2, 3])
    })
  ),
  rule("holds the log of a holder nothing is known of until its lease ends", (encoded, name) =>
    Effect.gen(function* () {
      const first = Storage.fromEncoded(encoded, { lease: "10 seconds" })
      const second = Storage.fromEncoded(encoded, { lease: "1 second" })
      const log = yield* withOwnClock(first.open("log"))
      yield* log.append([1])
      yield* TestClock.adjust("9 seconds")
      const held = yield* failsAs(name, Effect.scoped(second.open("log")), "LogHeld")
      yield* holds(name, held.remedy.includes("1970-01-01T00:00:10"), held.remedy)
      yield* TestClock.adjust("1 second")
      yield* using(second, "log", (successor) => successor.append([2]))
      yield* failsAs(name, log.append(["late"]), "LogFenced")
      yield* same(name, yield* readAll(second, "log"), [1, 2])
    }).pipe(withOwnClock)
  ),
  rule("renews a lease for as long as the log is open", (encoded, name) =>
    Effect.gen(function* () {
      const first = Storage.fromEncoded(encoded, { lease: "10 seconds" })
      const second = Storage.fromEncoded(encoded)
      const log = yield* first.open("log")
      const epoch = (yield* lockOf(encoded, "log")).epoch
      let at = 0
      while (at < 60) {
        at += 2
        yield* TestClock.adjust("2 seconds")
        yield* renewedSince(encoded, "log", (at - 6) * 1000)
      }
      yield* failsAs(name, Effect.scoped(second.open("log")), "LogHeld")
      yield* same(name, (yield* lockOf(encoded, "log")).epoch, epoch)
      yield* log.append([1])
    }).pipe(withOwnClock)
  ),
  rule("never takes over from a holder that lives, however old its lock", (encoded, name) =>
    Effect.gen(function* () {
      const first = Storage.fromEncoded(encoded)
      const second = Storage.fromEncoded(encoded, { alive: () => Effect.succeed(true) })
      const log = yield* withOwnClock(first.open("log"))
      yield* TestClock.adjust("365 days")
      yield* failsAs(name, Effect.scoped(second.open("log")), "LogHeld")
      yield* log.append([1])
    }).pipe(withOwnClock)
  )
]

/** Lets the renewal, which the clock has only set going, come through. */
const renewedSince = Effect.fnUntraced(function* (encoded: Encoded, log: string, millis: number) {
  while ((yield* lockOf(encoded, log)).renewedAt < millis) yield* Effect.yieldNow
})

/** Damaged however: opening, replaying, reading and writing may each find it, and none of them may change anything. */
const findsDamage = Effect.fnUntraced(function* (encoded: Encoded, name: string, tag: "LogCorrupt" | "LogTooNew") {
  const storage = Storage.fromEncoded(encoded)
  const before = yield* lines(encoded, "log")
  yield* failsAs(name, readAll(storage, "log"), tag)
  const error = yield* failsAs(
    name,
    using(storage, "log", (log) => Stream.runCollect(log.replay)),
    tag
  )
  yield* same(name, error.log, "log")
  yield* Effect.exit(using(storage, "log", (log) => log.append(["after the damage"])))
  yield* same(name, yield* lines(encoded, "log"), before)
  return error
})

const newerHeader = `{"crc":"fe39944a","shiftboss":2,"log":"log"}`

const flip = (line: string, at: number): string =>
  `${line.slice(0, at)}${String.fromCharCode(line.charCodeAt(at) ^ 1)}${line.slice(at + 1)}`

const damage: ReadonlyArray<Case<Encoded>> = [
  rule("finds a changed character in any line, says in which, and leaves the log as it is", (encoded, name) =>
    Effect.gen(function* () {
      yield* using(Storage.fromEncoded(encoded), "log", (log) =>
        Effect.andThen(log.append(["first"]), log.append(["a", "b"]))
      )
      const whole = yield* lines(encoded, "log")
      for (const [index, line] of whole.entries()) {
        for (const at of [0, 9, 20, line.length - 3, line.length - 1]) {
          yield* rewrite(encoded, "log", () => whole.with(index, flip(line, at)))
          const error = yield* findsDamage(encoded, name, "LogCorrupt")
          if (error._tag === "LogCorrupt") yield* same(name, error.line, index + 1)
        }
      }
    })
  ),
  rule("finds a line that is missing or stands twice", (encoded, name) =>
    Effect.gen(function* () {
      const storage = Storage.fromEncoded(encoded)
      yield* using(storage, "log", (log) =>
        Effect.forEach([1, 2, 3], (entry) => log.append([entry]), { discard: true })
      )
      const whole = yield* lines(encoded, "log")
      yield* rewrite(encoded, "log", () => whole.toSpliced(2, 1))
      yield* findsDamage(encoded, name, "LogCorrupt")
      yield* rewrite(encoded, "log", () => whole.toSpliced(2, 0, whole[1]!))
      yield* findsDamage(encoded, name, "LogCorrupt")
      yield* rewrite(encoded, "log", () => whole)
      yield* same(name, yield* readAll(storage, "log"), [1, 2, 3])
    })
  ),
  rule("leaves a log of a newer version alone", (encoded, name) =>
    Effect.gen(function* () {
      yield* using(Storage.fromEncoded(encoded), "log", (log) => log.append([1]))
      yield* rewrite(encoded, "log", ([, ...records]) => [newerHeader, ...records])
      yield* findsDamage(encoded, name, "LogTooNew")
      yield* same(name, yield* names(Storage.fromEncoded(encoded)), ["log"])
    })
  ),
  rule("ignores what a former holder wrote after its successor, and writes over it", (encoded, name) =>
    Effect.gen(function* () {
      const storage = Storage.fromEncoded(encoded)
      yield* using(storage, "log", (log) => log.append([1]))
      const withLate = yield* Effect.gen(function* () {
        yield* using(storage, "log", (log) => log.append(["late"]))
        const late = (yield* lines(encoded, "log")).at(-1)!
        yield* rewrite(encoded, "log", (all) => all.slice(0, -1))
        yield* using(storage, "log", (log) => log.append([2]))
        return [...(yield* lines(encoded, "log")), late]
      })
      yield* rewrite(encoded, "log", () => withLate)
      yield* same(name, yield* readAll(storage, "log"), [1, 2])
      yield* using(storage, "log", (log) =>
        Effect.gen(function* () {
          yield* same(name, yield* Stream.runCollect(log.replay), [1, 2])
          yield* log.append([3])
        })
      )
      yield* same(name, yield* lines(encoded, "log"), [
        ...withLate.slice(0, -1),
        ...(yield* lines(encoded, "log")).slice(-1)
      ])
      yield* same(name, yield* readAll(storage, "log"), [1, 2, 3])
    })
  ),
  rule("drops a flush of which only a part stands", (encoded, name) =>
    Effect.gen(function* () {
      const storage = Storage.fromEncoded(encoded)
      yield* using(storage, "log", (log) => Effect.andThen(log.append([1]), log.append(["a", "b", "c"])))
      yield* rewrite(encoded, "log", (all) => all.slice(0, -1))
      yield* same(name, yield* readAll(storage, "log"), [1])
      yield* using(storage, "log", (log) => log.append([2]))
      yield* same(name, yield* readAll(storage, "log"), [1, 2])
    })
  )
]

export const seamCases: ReadonlyArray<Case<Encoded>> = [...locks, ...content, ...takeovers, ...damage]
