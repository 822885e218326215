import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schedule, Stream } from "effect"
import { type AgentLauncher, type Failure, RetryPolicy, Storage, type Turn } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { sleeper, startTime } from "./children/sleeper.ts"
import { folder } from "./support/folders.ts"

/** A host as a process of its own, killed with the scope. */
const host = (path: string, mode: "works" | "waits" | "holds" | "begins") =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const hooks = new URL("./support/from-source.mjs", import.meta.url).href
      const program = new URL("./children/turn-host.ts", import.meta.url).pathname
      const child = spawn(process.execPath, ["--import", hooks, program, path, mode], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()))
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      return {
        agent: Effect.promise(async () => Number((await lines.next()).value)),
        kill: Effect.promise(() => (child.kill("SIGKILL"), exited))
      }
    }),
    ({ kill }) => kill
  )

const events = (path: string) =>
  Effect.flatMap(Storage.Storage, (storage) => Stream.runCollect(storage.read("turns"))).pipe(
    Effect.map((entries) => entries.map((entry) => (entry as unknown as { readonly value: Turn.Event }).value)),
    Effect.provide(FileStorage.layer(path))
  )

/** Waits until the other process has journaled it. */
const journaled = (path: string, tag: Turn.Event["_tag"]) =>
  events(path).pipe(
    Effect.map((all) => all.find((event) => event._tag === tag)),
    Effect.filterOrFail((event) => event !== undefined),
    Effect.retry(Schedule.spaced("20 millis"))
  )

const runHere = (path: string, turn: Partial<Turn.Turn> = {}, fails?: Failure.FailureKind) => {
  const launches: Array<{ readonly attempt: AgentLauncher.Attempt; readonly oldAlive: boolean }> = []
  const old = { pid: 0 }
  const agent = sleeper({
    ...(fails === undefined ? {} : { fails }),
    launched: (_, attempt) => void launches.push({ attempt, oldAlive: startTime(old.pid) !== undefined })
  })
  const layer = RetryPolicy.layer.pipe(Layer.provide([agent, FileStorage.layer(path)]))
  const run = Effect.provide(RetryPolicy.run({ id: "t", prompt: "sleep", ...turn }), layer)
  return { launches, old, run }
}

describe.skipIf(process.platform !== "linux")("a host killed with SIGKILL", () => {
  it.live("while its agent works: the next one stops that agent, and only then resumes its session", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const first = yield* host(path, "works")
      const pid = yield* first.agent
      yield* journaled(path, "SessionSeen")
      const { launches, old, run } = runHere(path)
      old.pid = pid

      assert.strictEqual((yield* Effect.flip(run))._tag, "LogHeld")
      assert.strictEqual(launches.length, 0)
      yield* first.kill
      assert.isDefined(startTime(pid))

      const outcome = yield* run
      assert.strictEqual(outcome.text, "resumed")
      assert.isUndefined(startTime(pid))
      assert.deepStrictEqual(
        launches.map(({ attempt, oldAlive }) => [attempt.number, attempt.session, oldAlive]),
        [[2, { _tag: "Resume", id: "the-session" }, false]]
      )
      assert.strictEqual(outcome.attempts[0]?.failure?.kind, "Interrupted")
    })
  )

  it.live("before the agent exists: the next one makes the attempt again, uncounted", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const first = yield* host(path, "begins")
      yield* journaled(path, "AttemptStarted")
      yield* first.kill
      const { launches, run } = runHere(path, {}, "Auth")
      const { attempts } = yield* run
      assert.deepStrictEqual(
        attempts.map(({ rule }) => rule),
        ["first-attempt", "never-ran"]
      )
      assert.strictEqual(launches.length, 1)
    })
  )

  for (const mode of ["waits", "holds"] as const) {
    it.live(`while it ${mode}: the next one waits for the same time and launches nothing before it`, () =>
      Effect.gen(function* () {
        const path = yield* folder
        const first = yield* host(path, mode)
        yield* first.agent
        const waiting = yield* journaled(path, "WaitStarted")
        yield* first.kill
        const { launches, run } = runHere(path, { rules: { inlineWait: 0 } })
        const held = yield* Effect.flip(run)
        assert(held._tag === "Held" && waiting._tag === "WaitStarted")
        assert.strictEqual(held.until, waiting.wait.due)
        assert.strictEqual(launches.length, 0)
      })
    )
  }
})
