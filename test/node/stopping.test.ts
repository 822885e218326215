import { assert, describe, it } from "@effect/vitest"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { AgentLauncher } from "shiftboss"
import { PlainText, ProcessLauncher } from "shiftboss/node"
import { bootId, entryOf, markOf } from "../../src/node/internal/processTable.ts"
import { protocol } from "./support/echo.ts"
import { heard, isAlive, launch, launchWith, saidBy, say } from "./support/launching.ts"

const kindOf = (ending: AgentLauncher.Ending): string => (ending._tag === "Failed" ? ending.failure.kind : "Succeeded")

/** Scripts say the pids of what they start; all of them must be gone. */
const gone = (pids: string): void => {
  assert.isAtLeast(pids.split(" ").length, 1)
  for (const pid of pids.split(" ")) assert.isFalse(isAlive(pid), `${pid} of ${pids} is alive`)
}

const stopped = Effect.fnUntraced(function* (script: string, grace = "50 millis" as const) {
  const run = yield* launch(script)
  const pids = yield* heard(run)
  yield* run.stop(grace)
  gone(pids)
  assert.strictEqual(kindOf(yield* run.ended), "Stopped")
})

describe("stop", () => {
  it.live("ends a child politely, and gives it the time it needs", () =>
    Effect.gen(function* () {
      const file = join(mkdtempSync(join(tmpdir(), "stop-")), "saved")
      const run = yield* launch(
        `trap 'sleep 0.1; touch ${file}; exit 0' TERM; ${say("$$")}; while :; do sleep 0.02; done`
      )
      const pid = yield* heard(run)
      yield* run.stop("10 seconds")
      gone(pid)
      assert.isTrue(existsSync(file))
      rmSync(join(file, ".."), { recursive: true })
    })
  )

  it.live("ends a child that ignores SIGTERM", () =>
    stopped(`trap '' TERM; ${say("$$")}; while :; do sleep 0.02; done`)
  )

  it.live("ends a child that is stopped", () =>
    stopped(`sh -c 'sleep 1000' & ${say("$$ $!")}; kill -STOP $!; kill -STOP $$; sleep 1000`)
  )

  it.live("ends what the child has started, in its group and in sessions of its own", () =>
    stopped(`sleep 1000 & a=$!; setsid sleep 1000 & b=$!; ${say("$$ $a $b")}; wait`)
  )

  it.live("ends what has lost its parent and left its session", () =>
    stopped(`p=$(setsid sh -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $!'); ${say("$$ $p")}; sleep 1000`)
  )

  it.live("ends what forgets where it comes from, as long as its parent lives", () =>
    stopped(`env -i setsid sleep 1000 & sleep 0.1; ${say("$$ $!")}; wait`)
  )

  it.live("ends one that starts others as fast as it can", () =>
    stopped(`trap '' TERM; ${say("$$")}; while :; do setsid sleep 1000 & sleep 0.01; done`)
  )

  it.live("is done at once when everything is gone", () =>
    Effect.gen(function* () {
      const run = yield* launch(`exit 0`)
      yield* run.ended
      yield* run.stop("10 seconds")
      yield* run.stop("10 seconds")
      assert.strictEqual(kindOf(yield* run.ended), "Interrupted")
    })
  )

  it.live("takes nothing from one that has ended by itself a moment before", () =>
    Effect.gen(function* () {
      const run = yield* launchWith(PlainText.protocol({ command: "/bin/sh" }), "sleep 1000 & echo $$; exit 0")
      const pid = yield* heard(run)
      while (isAlive(pid)) yield* Effect.sleep("1 millis")
      yield* Effect.sleep("200 millis") // the system knows of the end before Node does
      yield* run.stop(0)
      assert.strictEqual(kindOf(yield* run.ended), "Succeeded")
    })
  )

  it.live("may be asked for by several at once", () =>
    Effect.gen(function* () {
      const run = yield* launch(`trap '' TERM; ${say("$$")}; sleep 1000`)
      const pid = yield* heard(run)
      yield* Effect.all([run.stop("20 millis"), run.stop("50 millis"), run.stop(0)], { concurrency: "unbounded" })
      gone(pid)
    })
  )
})

describe("a run", () => {
  it.live("ends although others hold its pipes, and takes them down with its scope", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const run = yield* Scope.provide(
        launch(`sleep 1000 & ${say("$!")}; echo '{"type":"result","text":"done"}'`),
        scope
      )
      const pid = yield* heard(run)
      assert.strictEqual(kindOf(yield* run.ended), "Succeeded")
      assert.isTrue(isAlive(pid))
      yield* Scope.close(scope, Exit.void)
      gone(pid)
    })
  )

  it.live("tells its ending also to those who wait for it outside its scope", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const run = yield* Scope.provide(launch(`${say("$$")}; sleep 1000`), scope)
      const waiting = yield* Effect.forkChild(run.ended)
      yield* heard(run)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(kindOf(yield* Fiber.join(waiting)), "Stopped")
    })
  )

  it.live("ends although others keep writing to its pipes", () =>
    Effect.gen(function* () {
      const run = yield* launch(`(while :; do ${say("still here")}; done) & echo '{"type":"result","text":"done"}'`)
      assert.strictEqual(kindOf(yield* run.ended), "Succeeded")
    })
  )

  it.live("is taken down when whoever launched it is interrupted", () =>
    Effect.gen(function* () {
      const pids: Array<string> = []
      const caller = yield* Effect.forkChild(
        Effect.scoped(
          Effect.gen(function* () {
            const run = yield* launch(`setsid sleep 1000 & ${say("$$ $!")}; wait`)
            pids.push(yield* heard(run))
            yield* Effect.forkScoped(Stream.runDrain(saidBy(run)))
            yield* run.ended
          })
        )
      )
      while (pids.length === 0) yield* Effect.sleep("5 millis")
      yield* Fiber.interrupt(caller)
      gone(pids.join(" "))
    })
  )
})

// -----------------------------------------------------------------------------
// after a crash of the host
// -----------------------------------------------------------------------------

interface Host {
  readonly process: ChildProcess
  readonly identity: Extract<AgentLauncher.Identity, { readonly _tag: "Process" }>
  /** What the script said before the host told its identity, or after. */
  readonly said: () => string
}

const host = async (script: string, ...mode: ReadonlyArray<string>): Promise<Host> => {
  const path = new URL("children/host.ts", import.meta.url).pathname
  const child = spawn(process.execPath, [path, script, ...mode], { stdio: ["ignore", "pipe", "inherit"] })
  let printed = ""
  const lines = () => printed.split("\n").filter((line) => line !== "")
  const identityLine = () => lines().find((line) => line.includes('"Process"'))
  const said = () => lines().find((line) => !line.includes('"Process"')) ?? ""
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()))
  while (identityLine() === undefined || (mode.length > 0 && said() === "")) await once(child.stdout, "data")
  return { process: child, identity: JSON.parse(identityLine() ?? ""), said }
}

const kill = async (child: ChildProcess): Promise<void> => {
  const exit = once(child, "exit")
  child.kill("SIGKILL")
  await exit
}

const reap = (identity: AgentLauncher.Identity) =>
  Effect.flatMap(AgentLauncher.AgentLauncher, (launcher) => launcher.reap(identity)).pipe(
    Effect.provide(ProcessLauncher.layer(protocol, { grace: "50 millis" }))
  )

describe("after a crash of the host", () => {
  it.live("the program has never run when its identity was not journaled", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "barrier-"))
      const { process: child, identity } = yield* Effect.promise(() => host(`touch ${folder}/ran; sleep 1000`))
      assert.isTrue(isAlive(identity.pid))
      yield* Effect.promise(() => kill(child))
      while (isAlive(identity.pid)) yield* Effect.sleep("5 millis")
      assert.isFalse(existsSync(`${folder}/ran`))
      assert.strictEqual(yield* reap(identity), "gone")
      rmSync(folder, { recursive: true })
    })
  )

  it.live("what it left is found and stopped, with what that has started", () =>
    Effect.gen(function* () {
      const script = `trap '' TERM; setsid sleep 1000 & echo "$$ $!"; exec >/dev/null; while :; do sleep 0.05; done`
      const { process: child, identity, said } = yield* Effect.promise(() => host(script, "release"))
      yield* Effect.promise(() => kill(child))
      for (const pid of said().split(" ")) assert.isTrue(isAlive(pid))
      assert.strictEqual(yield* reap(identity), "stopped")
      gone(said())
      assert.strictEqual(yield* reap(identity), "gone")
    })
  )

  it.live("what an agent that is gone has left behind is found by its mark", () =>
    Effect.gen(function* () {
      const script = `setsid sleep 1000 >/dev/null & echo "$!"`
      const { process: child, identity, said } = yield* Effect.promise(() => host(script, "release"))
      yield* Effect.promise(() => kill(child))
      while (isAlive(identity.pid)) yield* Effect.sleep("5 millis")
      assert.isTrue(isAlive(said()))
      assert.strictEqual(yield* reap(identity), "stopped")
      gone(said())
    })
  )

  it.live("a stranger that has got its pid is left alone", () =>
    Effect.gen(function* () {
      const stranger = spawn("sh", ["-c", "sleep 1000 & wait"], { stdio: "ignore", detached: true })
      yield* Effect.promise(() => once(stranger, "spawn"))
      const pid = stranger.pid ?? 0
      const identity: AgentLauncher.Identity = { _tag: "Process", pid, startTime: "1", bootId: bootId() }
      assert.strictEqual(yield* reap(identity), "gone")
      assert.isTrue(isAlive(pid))
      yield* Effect.promise(() => {
        const exit = once(stranger, "exit")
        process.kill(-pid, "SIGKILL")
        return exit
      })
    })
  )

  it.live("another boot is proof of death, another pid namespace is none", () =>
    Effect.gen(function* () {
      const own = entryOf(process.pid)
      const identity = { _tag: "Process", pid: process.pid, startTime: own?.startTime ?? "" } as const
      const [boot, namespace] = bootId().split("/", 2)
      assert.strictEqual(yield* reap({ ...identity, bootId: `another/${namespace}` }), "gone")
      assert.strictEqual(yield* reap({ ...identity, bootId: `${boot}/pid:[1]` }), "unknown")
      assert.strictEqual(yield* reap({ _tag: "Remote", id: "r" }), "unknown")
    })
  )

  it("marks an attempt by what its identity holds", () => {
    assert.strictEqual(markOf({ pid: 7, startTime: "Mon Nov 30 1" }), "7-Mon-Nov-30-1")
  })
})
