import { assert, describe, it } from "@effect/vitest"
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Fiber, Stream } from "effect"
import type { AgentLauncher } from "shiftboss"
import { Protocol } from "shiftboss/node"
import { protocol } from "./support/echo.ts"
import { heard, isAlive, launch, launchWith, saidBy, say } from "./support/launching.ts"

const succeeded = (ending: AgentLauncher.Ending): string => {
  assert.strictEqual(ending._tag, "Succeeded", JSON.stringify(ending))
  return ending.result?.text ?? ""
}

const failureOf = (ending: AgentLauncher.Ending): { readonly kind: string; readonly detail: string } => {
  assert.strictEqual(ending._tag, "Failed", JSON.stringify(ending))
  return ending._tag === "Failed" ? ending.failure : { kind: "", detail: "" }
}

const refusal = (launched: Effect.Effect<unknown, AgentLauncher.LaunchError, never>) =>
  Effect.map(Effect.flip(launched), (error) => error.failure)

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "launcher-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const result = `echo '{"type":"result","text":"done"}'`

describe("ProcessLauncher", () => {
  describe("reads a run", () => {
    it.live("to its result, with its session and its activity", () =>
      Effect.gen(function* () {
        const run = yield* launch(`echo '{"type":"session","id":"'$1'"}'; ${say("hello")}; ${result}`)
        const ending = yield* run.ended
        assert.strictEqual(succeeded(ending), "done")
        assert.strictEqual(ending.result?.sessionId, "s-1")
        const seen = yield* Stream.runCollect(run.activity)
        assert.deepStrictEqual(seen, [
          { _tag: "SessionSeen", id: "s-1" },
          { _tag: "Text", text: "hello" }
        ])
      })
    )

    it.live("keeps a result once seen, whatever the process does afterwards", () =>
      Effect.gen(function* () {
        assert.strictEqual(succeeded(yield* (yield* launch(`${result}; exit 7`)).ended), "done")
        assert.strictEqual(succeeded(yield* (yield* launch(`${result}; kill -9 $$`)).ended), "done")
        const stopped = yield* launch(`${result}; ${say("lingering")}; trap '' TERM; sleep 1000`)
        yield* heard(stopped)
        yield* stopped.stop("10 millis")
        assert.strictEqual(succeeded(yield* stopped.ended), "done")
      })
    )

    it.live("and ends a process that lives on after its result", () =>
      Effect.gen(function* () {
        const run = yield* launch(`${say("$$")}; ${result}; sleep 1000`, { options: { linger: "50 millis" } })
        const pid = yield* heard(run)
        assert.strictEqual(succeeded(yield* run.ended), "done")
        assert.isFalse(isAlive(pid))
      })
    )

    it.live("that dies before its first byte", () =>
      Effect.gen(function* () {
        assert.deepInclude(failureOf(yield* (yield* launch("exit 3")).ended), {
          kind: "Interrupted",
          detail: "The script exited with code 3"
        })
        assert.deepInclude(failureOf(yield* (yield* launch("kill -9 $$")).ended), {
          detail: "The script was ended by SIGKILL"
        })
      })
    )

    it.live("that reads a stdin nobody writes to: it is empty", () =>
      Effect.gen(function* () {
        assert.strictEqual(succeeded(yield* (yield* launch(`cat; ${result}`)).ended), "done")
      })
    )

    it.live("although one of its lines makes the protocol throw", () =>
      Effect.gen(function* () {
        const run = yield* launch(`echo '{"type":"bug"}'; ${result}`)
        assert.strictEqual(succeeded(yield* run.ended), "done")
        assert.deepStrictEqual(yield* Stream.runCollect(run.activity), [{ _tag: "Drift", raw: '{"type":"bug"}' }])
      })
    )

    it.live("whose waiting may be given up without stopping it", () =>
      Effect.gen(function* () {
        const file = join(yield* folder, "go")
        const run = yield* launch(`${say("$$")}; while [ ! -e ${file} ]; do sleep 0.02; done; ${result}`)
        const pid = yield* heard(run)
        yield* Fiber.interrupt(yield* Effect.forkChild(run.ended))
        assert.isTrue(isAlive(pid))
        writeFileSync(file, "")
        assert.strictEqual(succeeded(yield* run.ended), "done")
      })
    )
  })

  describe("gives the prompt", () => {
    const cat = (command: Partial<Protocol.Command>): typeof protocol => ({
      ...protocol,
      command: () => ({ program: "/bin/sh", arguments: [], ...command })
    })
    const long = "long ".repeat(1_000_000)
    const counting = `n=$(wc -c); echo '{"type":"result","text":"'$n'"}'`

    it.live("on stdin, however long", () =>
      Effect.gen(function* () {
        const run = yield* launchWith(cat({ arguments: ["-c", counting], stdin: long }), long)
        assert.strictEqual(succeeded(yield* run.ended), "5000000")
      })
    )

    it.live("on stdin to one that does not read it", () =>
      Effect.gen(function* () {
        const run = yield* launchWith(cat({ arguments: ["-c", result], stdin: long }), long)
        assert.strictEqual(succeeded(yield* run.ended), "done")
      })
    )

    it.live("in a private file that is gone afterwards", () =>
      Effect.gen(function* () {
        const files = yield* folder
        const script = `n=$(wc -c <"$1"); m=$(stat -c %a "$1"); echo '{"type":"result","text":"'"$n $m"'"}'`
        const command = { arguments: ["-c", script, "agent", Protocol.PromptFile] }
        const launched = launchWith(cat(command), long, { options: { filesDirectory: join(files, "own") } })
        const ending = yield* Effect.scoped(Effect.flatMap(launched, (run) => run.ended))
        assert.strictEqual(succeeded(ending), "5000000 600")
        assert.deepStrictEqual(readdirSync(join(files, "own")), [])
      })
    )
  })

  describe("refuses to launch", () => {
    const running = (program: string, ...more: ReadonlyArray<string>): typeof protocol => ({
      ...protocol,
      command: () => ({ program, arguments: more })
    })

    it.live("a program that does not exist, and says where it looked", () =>
      Effect.gen(function* () {
        const missing = yield* refusal(Effect.scoped(launchWith(running("no-such-agent"), "")))
        assert.strictEqual(missing.kind, "LauncherFailed")
        assert.match(missing.detail, /no program no-such-agent in PATH \(.*bin.*\)/)
        const path = yield* refusal(Effect.scoped(launchWith(running("/no/such/agent"), "")))
        assert.strictEqual(path.detail, "/no/such/agent does not exist")
      })
    )

    it.live("a program that is not executable, and a directory that does not exist", () =>
      Effect.gen(function* () {
        const file = join(yield* folder, "agent")
        writeFileSync(file, "#!/bin/sh\n")
        chmodSync(file, 0o644)
        const failure = yield* refusal(Effect.scoped(launchWith(running(file), "")))
        assert.strictEqual(failure.detail, `${file} is not executable`)
        const nowhere = yield* refusal(Effect.scoped(launch(result, { attempt: { directory: "/no/such/place" } })))
        assert.strictEqual(nowhere.detail, "The directory /no/such/place does not exist")
      })
    )

    it.live("an argument that is too long for the system", () =>
      Effect.gen(function* () {
        const failure = yield* refusal(Effect.scoped(launchWith(running("/bin/sh", "x".repeat(4_000_000)), "")))
        assert.match(failure.detail, /too long \(4000001 bytes\): give the prompt by stdin/)
      })
    )

    it.live("and ends as such when only the system can tell", () =>
      Effect.gen(function* () {
        const file = join(yield* folder, "agent")
        writeFileSync(file, "#!/no/such/interpreter\n")
        chmodSync(file, 0o755)
        const ending = yield* (yield* launchWith(running(file), "")).ended
        assert.strictEqual(failureOf(ending).kind, "LauncherFailed")
        assert.include(failureOf(ending).detail, file)
      })
    )
  })

  describe("waits behind the barrier", () => {
    it.live("so that nothing has happened when the identity is journaled", () =>
      Effect.gen(function* () {
        const file = join(yield* folder, "ran")
        let identity: AgentLauncher.Identity | undefined
        const run = yield* launch(`touch ${file}; ${result}`, {
          onIdentity: (known) =>
            Effect.sync(() => {
              identity = known
              assert.isTrue(known._tag === "Process" && isAlive(known.pid))
              assert.isFalse(existsSync(file))
            })
        })
        assert.deepStrictEqual(run.identity, identity)
        yield* run.ended
        assert.isTrue(existsSync(file))
      })
    )

    it.live("for ever when the journal entry is given up: the program never runs", () =>
      Effect.gen(function* () {
        const file = join(yield* folder, "ran")
        const exit = yield* Effect.exit(
          Effect.scoped(launch(`touch ${file}`, { onIdentity: () => Effect.die("the disk is full") }))
        )
        assert.isTrue(Exit.isFailure(exit))
        assert.isFalse(existsSync(file))
      })
    )
  })

  describe("ends as Hung", () => {
    it.live("an agent that says nothing, also when it has closed its stdout", () =>
      Effect.gen(function* () {
        const silent = yield* launch("sleep 1000", { silence: "50 millis" })
        assert.deepInclude(failureOf(yield* silent.ended), { kind: "Hung" })
        const closed = yield* launch("exec >&-; sleep 1000", { silence: "50 millis" })
        assert.deepInclude(failureOf(yield* closed.ended), { kind: "Hung" })
      })
    )

    it.live("later while a tool runs", () =>
      Effect.gen(function* () {
        const run = yield* launch(`echo '{"type":"tool","id":"t"}'; sleep 1000`, { silence: "500 millis" })
        const from = performance.now()
        const { kind, detail } = failureOf(yield* run.ended)
        assert.strictEqual(kind, "Hung")
        assert.match(detail, /with a tool running/)
        assert.isAbove(performance.now() - from, 1_400) // three times as long, less what it took to begin
      })
    )

    it.live("one that only tries again by itself, however often it says so", () =>
      Effect.gen(function* () {
        const run = yield* launch(`while :; do echo '{"type":"retry","text":"refused"}'; sleep 0.02; done`, {
          silence: "1 second"
        })
        assert.match(failureOf(yield* run.ended).detail, /trying again by itself/)
      })
    )

    it.live("one that is busy beyond its time", () =>
      Effect.gen(function* () {
        const run = yield* launch(`while :; do ${say("x")}; sleep 0.02; done`, { wallClock: "100 millis" })
        assert.deepInclude(failureOf(yield* run.ended), { kind: "Hung", detail: "It was not done after 100ms" })
      })
    )

    it.live("not when it has printed its result", () =>
      Effect.gen(function* () {
        const run = yield* launch(`${result}; sleep 1000`, { silence: "1 second" })
        assert.strictEqual(succeeded(yield* run.ended), "done")
      })
    )
  })

  describe("shows the child", () => {
    it.live("only what is listed of the host's environment", () =>
      Effect.gen(function* () {
        process.env["CLAUDECODE"] = "1"
        process.env["HOST_ONLY"] = "x"
        process.env["ASKED_FOR"] = "y"
        const script = `env | sort | while read -r v; do ${say("$v")}; done; ${result}`
        const run = yield* launch(script, {
          attempt: { env: { OF_ATTEMPT: "a", OVER: "attempt" } },
          options: { env: { OF_HOST: "h", OVER: "options" }, inherit: ["ASKED_FOR"] }
        })
        yield* run.ended
        const seen = yield* Stream.runCollect(saidBy(run))
        for (const there of ["OF_ATTEMPT=a", "OF_HOST=h", "OVER=attempt", "ASKED_FOR=y"]) assert.include(seen, there)
        const names = seen.map((variable) => variable.split("=", 1)[0])
        assert.include(names, "PATH")
        for (const name of ["CLAUDECODE", "HOST_ONLY"]) assert.notInclude(names, name)
        for (const name of ["CLAUDECODE", "HOST_ONLY", "ASKED_FOR"]) delete process.env[name]
      })
    )

    it.live("a secret that comes back in nothing it prints", () =>
      Effect.gen(function* () {
        const key = "correct-horse-battery"
        const script = `echo '{"type":"session","id":"s"}'; ${say("my key is $AGENT_KEY")}
          echo '{"type":"retry","text":"https://user:hunter2secret@api.example/?key='$AGENT_KEY'"}'
          echo '{"type":"error","text":"401 for '$AGENT_KEY' Bearer abcdefghijkl"}'; echo $AGENT_KEY >&2`
        const run = yield* launch(script, { attempt: { env: { AGENT_KEY: key } } })
        const ending = yield* run.ended
        const printed = JSON.stringify([ending, yield* Stream.runCollect(run.activity)])
        for (const secret of [key, "hunter2secret", "abcdefghijkl"]) assert.notInclude(printed, secret)
        assert.include(printed, "401 for [redacted]")
      })
    )
  })

  it.live("leaves nothing of a secret where a long text is cut", () =>
    Effect.gen(function* () {
      const key = "correct-horse-battery-staple"
      const padded = (length: number) => `$(printf '%${length}s' x | tr ' ' x)`
      const script = [400, 4096, 8192]
        .map((cut) => `${say(`${padded(cut - 10)}$AGENT_KEY`)}; p="${padded(cut - 10)}$AGENT_KEY"`)
        .concat(`echo '{"type":"error","text":"'$p'"}'`)
        .join("; ")
      const run = yield* launch(script, { attempt: { env: { AGENT_KEY: key } } })
      const ending = yield* run.ended
      const { result: _, ...told } = ending
      assert.notInclude(JSON.stringify([told, yield* Stream.runCollect(run.activity)]), key.slice(0, 6))
    })
  )

  it.live("tells what an agent used that was cut short, where that is known", () =>
    Effect.gen(function* () {
      const usage = { input: 1, output: 2, cacheRead: null, cacheWrite: null, reasoning: null }
      const counters = { usage: "session", cost: "attempt" } as const
      const knowing: typeof protocol = {
        ...protocol,
        ending: (state, exit) => ({ ...protocol.ending(state, exit), known: Protocol.known({ usage, counters }) })
      }
      const run = yield* launchWith(knowing, "kill -9 $$")
      assert.strictEqual(failureOf(yield* run.ended).kind, "Interrupted")
      assert.deepStrictEqual(yield* Stream.runCollect(run.activity), [
        { _tag: "UsageSoFar", usage, counter: "session" }
      ])
    })
  )

  it.live("keeps reading a talkative run that nobody watches, in bounded memory", () =>
    Effect.gen(function* () {
      const script = `const line = JSON.stringify({ type: "say", text: "x".repeat(1000) }) + "\\n"
        const block = line.repeat(1000)
        let n = 0
        const write = () => { while (n++ < 60) if (!process.stdout.write(block)) return process.stdout.once("drain", write)
          process.stdout.write('{"type":"result","text":"done"}\\n') }
        write()`
      const before = process.memoryUsage.rss()
      const run = yield* launchWith(
        { ...protocol, command: () => ({ program: process.execPath, arguments: ["-e", script] }) },
        ""
      )
      assert.strictEqual(succeeded(yield* run.ended), "done")
      assert.isBelow(process.memoryUsage.rss() - before, 150 * 1024 * 1024)
      assert.isAtMost((yield* Stream.runCollect(run.activity)).length, 100)
    })
  )
})
