import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import { Case, Dispatcher, Improvements, RetryPolicy, Storage } from "shiftboss"
import { Pages } from "shiftboss/node"
import { Advance } from "shiftboss/testing"
import { follow } from "../../src/node/internal/pages/follow.ts"
import { renderers, type Renderers } from "../../src/node/internal/pages/pages.ts"
import { cases, layer, Missing, passing } from "../core/dispatch/support.ts"
import { memoryDisk } from "./pages/disk.ts"
import { pagesIn } from "./pages/folder.ts"
import { agent, makeLoop, options } from "./pages/loop.ts"
import { failure, folder, mounted } from "./support/folders.ts"

const seconds = (n: number) => Advance.advance(`${n} seconds`, "1 second")

/** What is logged. */
const hearing = () => {
  const said: Array<string> = []
  return { said, logger: Logger.layer([Logger.make(({ message }) => void said.push(String(message)))]) }
}

/** Every case has the system edited once, so that there are as many applies as cases. */
const edits = (count: number) => ({
  cases: cases(...Array.from({ length: count }, (_, n) => `${n}`)),
  improve: {
    request: Missing,
    apply: ({ name }: Improvements.Batch) => Effect.succeed(Improvements.changed(`v${name}`, `w${name}`, `+ ${name}`))
  },
  train: (one: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
    Effect.gen(function* () {
      yield* seat.step("work", Effect.sleep("1 second"))
      yield* seat.park("p", { missing: one.id })
      return Case.completed()
    })
})

const one = { seats: 1, applyAt: 1 }

const names = (count: number) =>
  Array.from({ length: count }, (_, n) => `/state/applies/${`${n + 1}`.padStart(3, "0")}.md`)

const appliesOn = ({ files }: { readonly files: ReadonlyMap<string, string> }) =>
  [...files.keys()].filter((file) => /^\/state\/applies\/[^.]/.test(file)).toSorted()

const followOn = (disk: ReturnType<typeof memoryDisk>, render?: Renderers) =>
  Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => follow(dispatcher, { disk, path: "/state" }, render))

describe("pages that cannot be written", () => {
  it.effect("on a full disk stop no run, are told of once, and are all there when there is room again", () => {
    const { said, logger } = hearing()
    return Effect.gen(function* () {
      const disk = memoryDisk()
      let made = 0
      yield* followOn(disk, { ...renderers, apply: (page) => (made++, renderers.apply(page)) })
      yield* seconds(1)
      disk.broken = "ENOSPC"
      const run = yield* Effect.forkChild(Dispatcher.run(edits(150), one))
      yield* Advance.advance("130 seconds", "2 seconds")
      made = 0
      yield* Advance.advance("14 seconds", "2 seconds")
      // More applies than are kept in memory meanwhile: so many are tried each time, and the newest.
      assert.strictEqual(made, 65)
      yield* Advance.advance("16 seconds", "2 seconds")
      assert.strictEqual((yield* Fiber.join(run)).end._tag, "Finished")
      assert.deepStrictEqual(appliesOn(disk), [])
      assert.deepStrictEqual(said.length, 1)
      assert.include(said[0], "pages: STATUS.md: ENOSPC")
      disk.broken = undefined
      yield* seconds(20)
      assert.isFalse([...disk.files.keys()].some((file) => file.endsWith(".tmp")))
      assert.deepStrictEqual(appliesOn(disk), names(150))
      assert.include(disk.files.get("/state/STATUS.md"), "- run 1 is finished")
    }).pipe(Effect.provide(Layer.merge(layer, logger)))
  })

  it.effect("to a folder that was removed are all there again, the earlier ones too", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      yield* followOn(disk)
      const run = yield* Effect.forkChild(Dispatcher.run(edits(60), one))
      yield* seconds(30)
      assert.isAbove(appliesOn(disk).length, 10)
      for (const file of [...disk.files.keys()]) disk.files.delete(file)
      disk.folders.clear()
      yield* seconds(50)
      yield* Fiber.join(run)
      assert.deepStrictEqual(appliesOn(disk), names(60))
    }).pipe(Effect.provide(layer))
  )

  it.effect("to a folder that was removed are there also when the host ends at once", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* followOn(disk)
          yield* passing(Dispatcher.run(edits(20), one), "1 seconds")
          for (const file of [...disk.files.keys()]) disk.files.delete(file)
          disk.folders.clear()
        })
      )
      assert.deepStrictEqual(appliesOn(disk), names(20))
    }).pipe(Effect.provide(layer))
  )

  it.effect("because a directory is in their place are written when it is gone, the others at once", () =>
    Effect.gen(function* () {
      const disk = memoryDisk()
      disk.folders.add("/state/STATUS.md").add("/state/applies/002.md")
      yield* followOn(disk)
      const run = yield* Effect.forkChild(Dispatcher.run(edits(40), one))
      yield* seconds(60)
      yield* Fiber.join(run)
      assert.deepStrictEqual(
        appliesOn(disk),
        names(40).filter((name) => !name.endsWith("002.md"))
      )
      disk.folders.delete("/state/STATUS.md")
      disk.folders.delete("/state/applies/002.md")
      yield* seconds(20)
      assert.deepStrictEqual(appliesOn(disk), names(40))
      assert.include(disk.files.get("/state/STATUS.md"), "- run 1 is finished")
    }).pipe(Effect.provide(layer))
  )

  it.effect("because they cannot be made are told of, and stop neither the run nor the other pages", () => {
    const { said, logger } = hearing()
    return Effect.gen(function* () {
      const disk = memoryDisk()
      let isMended = false
      const breaks = (name: string) => {
        if (!isMended) throw new Error(`${name} breaks`)
      }
      yield* followOn(disk, {
        apply: (page) => {
          if (page.line.name === "001") breaks("001")
          return renderers.apply(page)
        },
        status: renderers.status,
        rest: (state, snapshot) => {
          breaks("rest")
          return renderers.rest(state, snapshot)
        }
      })
      const run = yield* Effect.forkChild(Dispatcher.run(edits(2), one))
      yield* seconds(20)
      assert.strictEqual((yield* Fiber.join(run)).end._tag, "Finished")
      assert.deepStrictEqual(appliesOn(disk), names(2).slice(1))
      assert.include(disk.files.get("/state/STATUS.md"), "- run 1 is finished")
      assert.strictEqual(said.filter((line) => line.includes("001 breaks")).length, 1)
      isMended = true
      yield* seconds(20)
      assert.deepStrictEqual(appliesOn(disk), names(2))
      assert.include(disk.files.get("/state/STATUS.md"), "## Latest applies")
    }).pipe(Effect.provide(Layer.merge(layer, logger)))
  })

  it.effect("because the disk does not answer hold up neither the run nor, beyond five seconds, the host's end", () =>
    Effect.gen(function* () {
      const disk = { ...memoryDisk(), rename: () => new Promise<void>(() => undefined) }
      const scope = yield* Scope.make()
      const dispatcher = yield* Dispatcher.Dispatcher
      yield* Scope.provide(follow(dispatcher, { disk, path: "/state" }), scope)
      const run = yield* Effect.forkChild(Dispatcher.run(edits(3), one))
      yield* seconds(5)
      assert.strictEqual((yield* Fiber.join(run)).end._tag, "Finished")
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* seconds(4)
      assert.isUndefined(closing.pollUnsafe())
      yield* seconds(1)
      assert.isDefined(closing.pollUnsafe())
    }).pipe(Effect.provide(layer))
  )

  it.effect("because the log cannot be read are written when it can", () => {
    const { said, logger } = hearing()
    return Effect.gen(function* () {
      yield* passing(Dispatcher.run(edits(3), one), "1 seconds")
      const dispatcher = yield* Dispatcher.Dispatcher
      const error = new Storage.StorageError({ operation: "read", log: "dispatch", remedy: "Wait", cause: "injected" })
      let [isBroken, reads] = [true, 0]
      const broken = {
        ...dispatcher,
        history: (after?: number) =>
          Stream.suspend(() => {
            reads++
            return isBroken ? Stream.fail(error) : dispatcher.history(after)
          })
      }
      const disk = memoryDisk()
      yield* follow(broken, { disk, path: "/state" })
      yield* seconds(5)
      // A page would say less than is known.
      assert.deepStrictEqual([...disk.files.keys()], [])
      assert.strictEqual(said.filter((line) => line.includes("pages: the log: ")).length, 1)
      yield* seconds(40)
      assert.strictEqual(reads, 4)
      isBroken = false
      yield* seconds(15)
      assert.deepStrictEqual(appliesOn(disk), names(3))
    }).pipe(Effect.provide(Layer.merge(layer, logger)))
  })

  it.effect("because the log cannot be read when something was missed are whole when it can", () =>
    Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      const error = new Storage.StorageError({ operation: "read", log: "dispatch", remedy: "Wait", cause: "injected" })
      let isBroken = false
      const lossy = {
        ...dispatcher,
        events: () => Stream.filter(dispatcher.events(), (item) => item._tag === "Gap" || item.cursor % 3 === 0),
        history: (after?: number) => Stream.suspend(() => (isBroken ? Stream.fail(error) : dispatcher.history(after)))
      }
      const disk = memoryDisk()
      yield* follow(lossy, { disk, path: "/state" })
      isBroken = true
      const run = yield* Effect.forkChild(Dispatcher.run(edits(60), one))
      // Read in vain at least twice.
      yield* seconds(35)
      assert.deepStrictEqual(appliesOn(disk), [])
      isBroken = false
      yield* seconds(40)
      yield* Fiber.join(run)
      assert.deepStrictEqual(appliesOn(disk).slice(0, 59), names(59))
    }).pipe(Effect.provide(layer))
  )

  it.live("on a disk that is really full, or whose folder is really gone, are there when that is over", () =>
    Effect.gen(function* () {
      const outer = yield* folder
      const path = join(outer, "state")
      mkdirSync(path)
      const isReal = yield* mounted(path, "size=64k,mode=700")
      if (isReal) writeFileSync(join(path, "filler"), "x".repeat(65_536))
      // Where nothing can be mounted, a file stands in the place of the folder.
      else renameSync(mkdtempSync(join(outer, "x")), join(path, "applies.away"))
      if (!isReal) writeFileSync(join(path, "applies"), "")
      const dispatcher = yield* Dispatcher.Dispatcher
      yield* Dispatcher.run({ ...edits(0), cases: cases("a"), train: () => Effect.succeed(Case.completed()) })
      const wanted = yield* Deferred.make<void>()
      const { logger, said } = hearing()
      yield* Effect.gen(function* () {
        const closed = yield* Effect.forkChild(
          Effect.andThen(Deferred.await(wanted), Effect.void).pipe(Effect.provide(Pages.layer({ directory: path })))
        )
        while (said.length === 0) yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
        rmSync(join(path, isReal ? "filler" : "applies"))
        yield* Deferred.succeed(wanted, undefined)
        yield* Fiber.join(closed)
      }).pipe(Effect.provide([Layer.succeed(Dispatcher.Dispatcher, dispatcher), logger]))
      assert.include(pagesIn(path)["STATUS.md"], "- run 1 is finished")
    }).pipe(Effect.provide(layer))
  )
})

describe("names that are data", () => {
  it.effect("never leave the folder, and two never share a page", () =>
    Effect.gen(function* () {
      const outer = yield* folder
      const path = join(outer, "state")
      const dispatcher = yield* Dispatcher.Dispatcher
      const hostile = ["../../x", "/etc/x", "..", ".hidden", "a\0b", "A", "a", "x".repeat(400), "\ud800", ""]
      const history = Stream.fromIterable(
        hostile.map((apply, n) => ({
          _tag: "Entry" as const,
          cursor: n + 1,
          event: { _tag: "ApplyStarted" as const, at: 0, apply, version: null, requests: [] }
        }))
      )
      yield* Effect.void.pipe(
        Effect.provide(Pages.layer({ directory: path })),
        Effect.provideService(Dispatcher.Dispatcher, { ...dispatcher, history: () => history })
      )
      assert.deepStrictEqual(readdirSync(outer), ["state"])
      assert.deepStrictEqual(readdirSync(path).toSorted(), ["STATUS.md", "applies"])
      const files = readdirSync(join(path, "applies"))
      assert.strictEqual(files.length, hostile.length)
      for (const file of files) assert.match(file, /^[a-z0-9%_.-]+\.md$/)
    }).pipe(Effect.provide(layer))
  )
})

describe("a loop with failing pages", () => {
  it.effect("ends as one without any", () =>
    Effect.gen(function* () {
      const failing = { ...memoryDisk(), makeDirectory: () => Promise.reject(failure("EACCES")) }
      yield* followOn(failing)
      const summary = yield* passing(Dispatcher.run(makeLoop(), options))
      assert.deepStrictEqual(
        summary.rechecks.map(({ outcome }) => outcome._tag),
        ["Regressed", "Passed", "Passed"]
      )
    }).pipe(
      Effect.provide(
        Layer.mergeAll(Dispatcher.layer, RetryPolicy.layer).pipe(
          Layer.provideMerge(agent),
          Layer.provide(Storage.layerMemory)
        )
      )
    )
  )
})
