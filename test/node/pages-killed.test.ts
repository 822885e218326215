import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Dispatcher } from "shiftboss"
import { FileStorage, Pages } from "shiftboss/node"
import { pagesIn } from "./pages/folder.ts"
import { folder } from "./support/folders.ts"

/** Runs the host, killed with SIGKILL once so many applies were begun; whether it was. */
const run = (path: string, applies: number) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const hooks = new URL("./support/from-source.mjs", import.meta.url).href
      const program = new URL("./children/pages-host.ts", import.meta.url).pathname
      return spawn(process.execPath, ["--import", hooks, program, path], { stdio: ["ignore", "pipe", "inherit"] })
    }),
    (child) =>
      Effect.promise(async () => {
        const exited = once(child, "exit")
        let seen = 0
        for await (const _ of createInterface({ input: child.stdout })) {
          if (++seen === applies) child.kill("SIGKILL")
        }
        const [code, signal] = await exited
        assert.include([0, null], code)
        return signal === "SIGKILL"
      }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

it.live("a host that is killed over and over leaves the pages that its log tells of, beside its log", () =>
  Effect.gen(function* () {
    const path = yield* folder
    for (const applies of [2, 5]) assert.isTrue(yield* run(path, applies), "it ended by itself")
    assert.isFalse(yield* run(path, Infinity))
    const seen = yield* folder
    const applies = yield* Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      const events = yield* Stream.runCollect(dispatcher.history())
      return events.flatMap(({ event }) => (event._tag === "ApplyStarted" ? [event.apply] : []))
    }).pipe(
      Effect.provide(
        Pages.layer({ directory: seen }).pipe(
          Layer.provideMerge(Dispatcher.layer),
          Layer.provide(FileStorage.layer(path))
        )
      )
    )
    const [pages, made] = [pagesIn(path), pagesIn(seen)]
    const names = applies.map((name) => `applies/${name}.md`)
    assert.isAtLeast(names.length, 12)
    assert.deepStrictEqual(
      Object.keys(pages).filter((name) => name.endsWith(".md")),
      ["STATUS.md", ...names]
    )
    for (const name of names) assert.strictEqual(pages[name], made[name], name)
    assert.include(pages["STATUS.md"], "is finished")
    assert.include(Object.values(pages).join("\n"), "regressed, repair asked for by")
    assert.isFalse(Object.keys(pages).some((name) => name.endsWith(".tmp")))
  })
)
