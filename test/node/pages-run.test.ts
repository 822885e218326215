import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Dispatcher, RetryPolicy, Storage } from "shiftboss"
import { Pages } from "shiftboss/node"
import { minutes, passing } from "../core/dispatch/support.ts"
import { pagesIn } from "./pages/folder.ts"
import { agent, makeLoop, options } from "./pages/loop.ts"
import { folder } from "./support/folders.ts"

const storage = Layer.merge(Storage.layerMemory, agent)

/** A host of its own on the same storage: its pages are in that folder. */
const host = (directory: string) =>
  Layer.fresh(Layer.mergeAll(Pages.layer({ directory }), RetryPolicy.layer).pipe(Layer.provideMerge(Dispatcher.layer)))

/** Set it to write the fixtures anew; then read them. */
const isUpdate = process.env["UPDATE_PAGES"] === "1"

const assertGolden = (pages: { readonly [name: string]: string }) => {
  for (const [name, text] of Object.entries(pages)) {
    const fixture = new URL(`../fixtures/pages/${name.replace("/", "-")}`, import.meta.url)
    if (isUpdate) writeFileSync(fixture, text)
    assert.strictEqual(text, readFileSync(fixture, "utf8"), name)
  }
}

const applies = (pages: { readonly [name: string]: string }) =>
  Object.fromEntries(Object.entries(pages).filter(([name]) => name.startsWith("applies/")))

describe("the pages of a run", () => {
  it.effect("tell of an edit that broke a case, its repair, and the recheck that passed", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* passing(Dispatcher.run(makeLoop(), options)).pipe(Effect.provide(host(path)))
      const pages = pagesIn(path)
      assert.deepStrictEqual(Object.keys(pages), ["STATUS.md", "applies/001.md", "applies/002.md"])
      assertGolden(pages)
    }).pipe(Effect.provide(storage))
  )

  it.effect("are those of its log wherever a host ends, and go on with the next one", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const loop = makeLoop()
      // Cut off after one minute more each time: in a step, in an apply, in a try, between them. The last ones are not.
      const ends: Array<string> = []
      for (let start = 1; start <= 8; start++) {
        const cut = Effect.gen(function* () {
          const run = yield* Effect.forkChild(Dispatcher.run(loop, options))
          yield* minutes(start)
          ends.push(run.pollUnsafe() === undefined ? "cut off" : "over")
          yield* Fiber.interrupt(run)
        })
        yield* cut.pipe(Effect.provide(host(path)))
        const seen = yield* folder
        yield* Effect.void.pipe(Effect.provide(host(seen)))
        assert.deepStrictEqual(applies(pagesIn(path)), applies(pagesIn(seen)), `start ${start}`)
      }
      assert.deepStrictEqual([ends[3], ends.at(-1)], ["cut off", "over"])
      assert.deepStrictEqual(Object.keys(pagesIn(path)), ["STATUS.md", "applies/001.md", "applies/002.md"])
      assert.include(pagesIn(path)["applies/002.md"], "2 passed, 0 regressed")
    }).pipe(Effect.provide(storage))
  )

  it.effect("are made again from the log alone, letter by letter", () =>
    Effect.gen(function* () {
      yield* passing(Dispatcher.run(makeLoop(), options)).pipe(Effect.provide(RetryPolicy.layer))
      const path = yield* folder
      yield* Effect.void.pipe(Effect.provide(host(path)))
      assertGolden(pagesIn(path))
    }).pipe(Effect.provide(Layer.provideMerge(Dispatcher.layer, storage)))
  )

  it.effect("are closed to others, and leave nothing else in their folder", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "deep", "state")
      mkdirSync(join(path, "applies"), { recursive: true, mode: 0o777 })
      chmodSync(path, 0o777)
      writeFileSync(join(path, ".STATUS.md.123.tmp"), "what a killed host left")
      writeFileSync(join(path, "notes.md"), "mine")
      yield* passing(Dispatcher.run(makeLoop(), options)).pipe(Effect.provide(host(path)))
      assert.deepStrictEqual(Object.keys(pagesIn(path)), ["STATUS.md", "applies/001.md", "applies/002.md", "notes.md"])
      const modes = ["", "applies", "STATUS.md", "applies/001.md"].map(
        (name) => statSync(join(path, name)).mode & 0o777
      )
      assert.deepStrictEqual(modes, [0o700, 0o700, 0o600, 0o600])
    }).pipe(Effect.provide(storage))
  )
})
