import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { Case, Dispatcher, Improvements, Storage } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { follow } from "../../src/node/internal/pages/follow.ts"
import type { Renderers } from "../../src/node/internal/pages/pages.ts"
import { cases, changes, layer, Missing, restart } from "../core/dispatch/support.ts"
import { memoryDisk, type MemoryDisk } from "./pages/disk.ts"

const seconds = (n: number) => Advance.advance(`${n} seconds`, "1 second")

const pagesOn = (disk: MemoryDisk, render?: Renderers) =>
  Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => follow(dispatcher, { disk, path: "/state" }, render))

const status = (disk: MemoryDisk) => disk.files.get("/state/STATUS.md") ?? ""

/** The rows of a table of the status page, without its head. */
const rows = (disk: MemoryDisk, heading: string) =>
  (status(disk).split(`## ${heading}\n\n`)[1] ?? "")
    .split("\n\n")[0]!
    .trimEnd()
    .split("\n")
    .slice(2)
    .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "")))

const long = (one: Case.Case, seat: Dispatcher.Seat) =>
  Effect.as(seat.step("work", Effect.sleep("40 seconds")), Case.completed(one.id))

describe("the status page", () => {
  it.effect("says each second what each seat does, and for how long", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      yield* pagesOn(disk)
      const run = yield* Effect.forkChild(Dispatcher.run({ cases: cases("a", "b", "c"), train: long }, { seats: 2 }))
      yield* seconds(2)
      assert.deepStrictEqual(rows(disk, "Seats"), [
        ["1", "`a`", "`work`", "2 s"],
        ["2", "`b`", "`work`", "2 s"]
      ])
      const before = disk.written.length
      yield* seconds(5)
      assert.strictEqual(disk.written.length, before + 5)
      assert.deepStrictEqual(rows(disk, "Seats")[1], ["2", "`b`", "`work`", "7 s"])
      assert.deepStrictEqual(rows(disk, "Queues")[2], ["new cases", "1", "1970-01-01 00:00:00 UTC"])
      yield* seconds(34)
      assert.deepStrictEqual(rows(disk, "Seats"), [
        ["1", "`c`", "`work`", "1 s"],
        ["2", "–", "", ""]
      ])
      yield* seconds(40)
      yield* Fiber.join(run)
      assert.include(status(disk), "- run 1 is finished")
      assert.notInclude(status(disk), "## Seats")
    }).pipe(Effect.provide(layer))
  )

  it.effect("is written whole every 15 seconds, and at the end", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      yield* pagesOn(disk)
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases("fails", "works"),
            train: (one, seat) => (one.id === "fails" ? Effect.fail("it broke") : long(one, seat))
          },
          { seats: 2, failuresInARow: Infinity }
        )
      )
      yield* seconds(2)
      const wholes: Array<number> = []
      for (let second = 2; second <= 39; second++) {
        if (rows(disk, "Latest errors").length > 0) wholes.push(second)
        yield* seconds(1)
      }
      assert.deepStrictEqual([wholes[0], wholes.length], [15, 25])
      assert.deepStrictEqual(rows(disk, "Latest errors"), [
        ["1970-01-01 00:00:00 UTC", "`case fails`", "`Error: it broke`"]
      ])
      yield* seconds(2)
      yield* Fiber.join(run)
      assert.include(status(disk), "- run 1 is finished")
    }).pipe(Effect.provide(layer))
  )

  it.effect("is left alone while nothing happens", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      yield* pagesOn(disk)
      yield* seconds(5)
      assert.include(status(disk), "- no run yet")
      yield* Dispatcher.run({ cases: cases("a"), train: () => Effect.succeed(Case.completed()) })
      yield* seconds(20)
      const before = disk.written.length
      yield* seconds(300)
      assert.strictEqual(disk.written.length, before)
      assert.include(status(disk), "- run 1 is finished")
    }).pipe(Effect.provide(layer))
  )

  it.effect("is of the end once the host's scope is closed, however short the run was", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* pagesOn(disk)
          yield* Dispatcher.run({ cases: cases("a", "b"), train: () => Effect.succeed(Case.completed()) })
          yield* Dispatcher.run({ cases: cases("a", "b", "c"), train: () => Effect.succeed(Case.completed()) })
        })
      )
      assert.include(status(disk), "- run 2 is finished")
      assert.deepStrictEqual(rows(disk, "Counts")[0], ["completed", "3", "passed", "0"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("is of the end also when what follows the run was behind", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      const dispatcher = yield* Dispatcher.Dispatcher
      const goOn = yield* Deferred.make<void>()
      // From the second on, events come only when the host is about to end.
      const late = (item: Dispatcher.Entry | Dispatcher.Gap) =>
        item._tag === "Entry" && item.cursor === 1 ? Effect.succeed(item) : Effect.as(Deferred.await(goOn), item)
      const behind = { ...dispatcher, events: () => Stream.mapEffect(dispatcher.events(), late) }
      const scope = yield* Scope.make()
      yield* Scope.provide(follow(behind, { disk, path: "/state" }), scope)
      yield* Dispatcher.run({ cases: cases("a"), train: () => Effect.fail("it broke") })
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* Advance.settle
      assert.isUndefined(closing.pollUnsafe())
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(closing)
      assert.include(status(disk), "- run 1 is finished")
      assert.strictEqual(rows(disk, "Latest errors").length, 1)
    }).pipe(Effect.provide(layer))
  )

  it.effect("of a run that outlives the host's scope is of that moment, and is not waited for", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      const run = yield* Effect.scoped(
        Effect.gen(function* () {
          yield* pagesOn(disk)
          const run = yield* Effect.forkChild(Dispatcher.run({ cases: cases("a"), train: long }))
          yield* Advance.settle
          return run
        })
      )
      assert.include(status(disk), "- run 1 is running")
      yield* Fiber.interrupt(run)
    }).pipe(Effect.provide(layer))
  )
})

/** Storage that counts the entries read of it. */
const counting = (seen: { reads: number; entries: number }) =>
  Layer.effect(
    Storage.Storage,
    Effect.map(Storage.Storage, (storage) =>
      Storage.Storage.of({
        ...storage,
        read: (log) =>
          Stream.suspend(() => {
            seen.reads++
            return Stream.tap(storage.read(log), () => Effect.sync(() => seen.entries++))
          })
      })
    )
  ).pipe(Layer.provide(Storage.layerMemory))

describe("reading for the pages", () => {
  it.effect("is done once, at the start: of a run only what it tells is read, run after run", () => {
    const seen = { reads: 0, entries: 0 }
    return Effect.gen(function* () {
      yield* Dispatcher.run({ cases: cases("a", "b"), train: () => Effect.succeed(Case.completed()) })
      assert.deepStrictEqual(seen, { reads: 0, entries: 0 })
      const disk = memoryDisk()
      const run = (...ids: ReadonlyArray<string>) =>
        Effect.forkChild(Dispatcher.run({ cases: cases(...ids), train: long }))
      yield* pagesOn(disk)
      // Once for the pages, and once for a first look at a log without a run.
      assert.deepStrictEqual(seen, { reads: 2, entries: 8 })
      for (let n = 0; n < 3; n++) {
        yield* run("a", "b", `${n}`)
        yield* seconds(60)
        assert.deepStrictEqual(rows(disk, "Counts")[0], ["completed", `${3 + n}`, "passed", "0"])
      }
      assert.deepStrictEqual(seen, { reads: 2, entries: 8 })
    }).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provideMerge(counting(seen)))))
  })

  it.effect("is done again where something was missed, and every 15 seconds at most", () => {
    const seen = { reads: 0, entries: 0 }
    return Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      // A subscriber that is so slow that it gets one event of ten, and the last.
      const isKept = (item: Dispatcher.Entry | Dispatcher.Gap) =>
        item._tag === "Entry" && (item.cursor % 10 === 0 || item.event._tag === "RunEnded")
      const lossy = { ...dispatcher, events: () => Stream.filter(dispatcher.events(), isKept) }
      const disk = memoryDisk()
      yield* follow(lossy, { disk, path: "/state" })
      const reads: Array<number> = []
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases(...Array.from({ length: 60 }, (_, n) => `${n}`)),
            improve: { request: Missing, apply: changes },
            train: (one, seat) =>
              Effect.gen(function* () {
                yield* seat.step("work", Effect.sleep("1 second"))
                if (one.id === "0") yield* seat.park("p", { missing: "x" })
                return Case.completed()
              })
          },
          { seats: 1, applyAt: 1 }
        )
      )
      for (let second = 1; second <= 70; second++) {
        const before = seen.reads
        yield* seconds(1)
        if (seen.reads > before) reads.push(second)
      }
      yield* Fiber.join(run)
      assert.deepStrictEqual(
        reads.filter((second) => second <= 60),
        [15, 30, 45, 60]
      )
      // The end of the run and what it left are not waited for.
      assert.isAtMost(reads.length, 6)
      assert.include(disk.files.get("/state/applies/001.md"), "from `v0` to `v001`")
      assert.deepStrictEqual(rows(disk, "Latest applies").length, 1)
      assert.deepStrictEqual(rows(disk, "Counts")[0], ["completed", "60", "passed", "0"])
    }).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provideMerge(counting(seen)))))
  })

  it.effect("finds what was changed while no run was under way", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      yield* pagesOn(disk)
      const parks = {
        cases: cases("a"),
        improve: { request: Missing, apply: () => Effect.succeed(Improvements.skipped("later")) },
        train: () => Effect.succeed(Case.difficult("too hard"))
      }
      yield* Dispatcher.run(parks)
      yield* Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => dispatcher.retry("a"))
      // Another dispatcher on the same log, as another process has one.
      yield* restart(Dispatcher.run(parks))
      yield* Dispatcher.run({ cases: cases("b"), train: () => Effect.fail("it broke") })
      yield* seconds(16)
      assert.include(status(disk), "- run 3 is finished")
      assert.deepStrictEqual(rows(disk, "Latest errors"), [
        ["1970-01-01 00:00:00 UTC", "`case b`", "`Error: it broke`"]
      ])
    }).pipe(Effect.provide(layer))
  )
})
