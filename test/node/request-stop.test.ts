import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Dispatcher } from "shiftboss"
import { FileStorage } from "shiftboss/node"

const child = fileURLToPath(new URL("./children/dispatcher.ts", import.meta.url))

const inFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "shiftboss-stop-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** The process, and what it prints; it ends with the scope at the latest. */
const start = (folder: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const running = spawn(process.execPath, [child, folder], { stdio: ["ignore", "pipe", "inherit"] })
      const printed: Array<string> = []
      running.stdout.on("data", (chunk) => printed.push(String(chunk)))
      const ended = once(running, "close")
      await once(running.stdout, "data") // its first step
      return { running, printed, ended }
    }),
    ({ running }) => Effect.sync(() => running.kill("SIGKILL"))
  )

describe("a stop asked for by another process", () => {
  it.live("stops a run of another process between its steps", () =>
    Effect.gen(function* () {
      const folder = yield* inFolder
      const here = Dispatcher.layer.pipe(Layer.provide(FileStorage.layer(folder)))
      const { printed, ended } = yield* start(folder)
      yield* Effect.provide(Dispatcher.requestStop, here)
      yield* Effect.promise(() => ended)
      const lines = printed.join("").trim().split("\n")
      const steps = lines.length - 1
      // The step under way has ended; its case goes on at the next start, unless it had just completed.
      assert.include([`Stopped ${steps - 1}`, `Stopped ${steps}`], lines.at(-1))
      // the request was for that run, not for the next
      const next = yield* start(folder)
      next.running.kill("SIGTERM")
      yield* Effect.promise(() => next.ended)
      assert.include(next.printed.join(""), `step ${steps}\n`)
    }).pipe(Effect.scoped)
  )
})
