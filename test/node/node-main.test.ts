import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Queue } from "effect"

/** A main program as a process of its own, killed with the scope. */
const start = (mode: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const hooks = new URL("./support/from-source.mjs", import.meta.url).href
      const program = fileURLToPath(new URL("./support/main-program.ts", import.meta.url))
      const child = spawn(process.execPath, ["--import", hooks, program, mode], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const lines = Effect.runSync(Queue.unbounded<string>())
      createInterface({ input: child.stdout }).on("line", (line) => Queue.offerUnsafe(lines, line))
      const ended = new Promise<number | NodeJS.Signals | null>((done) =>
        child.on("close", (code, signal) => done(code ?? signal))
      )
      return {
        line: Queue.take(lines),
        signal: (signal: NodeJS.Signals) => Effect.sync(() => child.kill(signal)),
        ended: Effect.promise(() => ended)
      }
    }),
    (program) => Effect.andThen(program.signal("SIGKILL"), program.ended)
  )

/** Two signals nearer to each other are one. */
const apart = Effect.sleep("300 millis")

describe("the main program", () => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    it.live(`stops at a ${signal}, goes on to its own end, and exits with what it ends with`, () =>
      Effect.gen(function* () {
        const program = yield* start("stops")
        assert.strictEqual(yield* program.line, "ready")
        yield* program.signal(signal)
        assert.strictEqual(yield* program.line, "stopping")
        assert.strictEqual(yield* program.line, "stopped")
        assert.strictEqual(yield* program.ended, 0)
      })
    )
  }

  it.live("takes two signals at once, as npm and the terminal send them, for one", () =>
    Effect.gen(function* () {
      const program = yield* start("stops")
      assert.strictEqual(yield* program.line, "ready")
      yield* program.signal("SIGINT")
      assert.strictEqual(yield* program.line, "stopping")
      yield* program.signal("SIGINT")
      assert.strictEqual(yield* program.line, "stopped")
      assert.strictEqual(yield* program.ended, 0)
    })
  )

  it.live("is interrupted at a second signal, and exits with 130 when its finalizers have run", () =>
    Effect.gen(function* () {
      const program = yield* start("waits")
      assert.strictEqual(yield* program.line, "ready")
      yield* program.signal("SIGTERM")
      assert.strictEqual(yield* program.line, "stopping")
      yield* apart
      yield* program.signal("SIGINT")
      assert.strictEqual(yield* program.line, "interrupted")
      assert.strictEqual(yield* program.ended, 130)
    })
  )

  it.live("is ended by a third signal when it ignores the others", () =>
    Effect.gen(function* () {
      const program = yield* start("ignores")
      assert.strictEqual(yield* program.line, "ready")
      yield* program.signal("SIGINT")
      assert.strictEqual(yield* program.line, "stopping")
      yield* apart
      yield* program.signal("SIGINT")
      yield* apart
      yield* program.signal("SIGINT")
      assert.strictEqual(yield* program.ended, "SIGINT")
    })
  )

  it.live("logs an error and exits with 1", () =>
    Effect.gen(function* () {
      const program = yield* start("fails")
      assert.include(yield* program.line, "it went wrong")
      assert.strictEqual(yield* program.ended, 1)
    })
  )

  it.live("leaves what else the process does alone when it succeeds without a signal", () =>
    Effect.gen(function* () {
      const program = yield* start("succeeds")
      assert.strictEqual(yield* program.line, "later")
      assert.strictEqual(yield* program.ended, 0)
    })
  )
})
