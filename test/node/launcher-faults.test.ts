import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { Cause, Effect, Exit, Layer, Stream } from "effect"
import type { AgentLauncher } from "shiftboss"
import { PlainText, ProcessLauncher, Protocol } from "shiftboss/node"
import { protocol } from "./support/echo.ts"
import { type Given, isAlive, launch, launchWith } from "./support/launching.ts"

const scratch = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "faults-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const result = `echo '{"type":"result","text":"done"}'`

const running = (command: Partial<Protocol.Command>): typeof protocol => ({
  ...protocol,
  command: () => ({ program: "/bin/sh", arguments: ["-c", result], ...command })
})

/** Why it was refused; a defect, or a launch, is a failed test. */
const refusal = (custom: typeof protocol, given: Given = {}) =>
  Effect.map(Effect.flip(Effect.scoped(launchWith(custom, "", given))), (error) => error.failure.detail)

const textOf = (custom: typeof protocol, given: Given = {}) =>
  Effect.scoped(Effect.flatMap(launchWith(custom, "", given), (run) => run.ended)).pipe(
    Effect.map((ending) => ending.result?.text)
  )

describe("ProcessLauncher refuses", () => {
  const wrong: ReadonlyArray<readonly [ProcessLauncher.Options, RegExp]> = [
    [{ grace: Number.NaN }, /^grace must be a duration that ends, not NaN$/],
    [{ grace: -1 }, /^grace/],
    [{ linger: Number.POSITIVE_INFINITY }, /^linger/],
    ...[Number.NaN, 0, -1, 1.5, 1e12].map(
      (maxLineBytes) => [{ maxLineBytes }, /^maxLineBytes must be a whole/] as const
    ),
    [{ timeZone: "Nowhere/X" }, /^timeZone must be a zone such as/]
  ]
  for (const [options, message] of wrong) {
    it.live(
      `options out of range: ${JSON.stringify(options, (_, value: unknown) => (typeof value === "number" ? String(value) : value))}`,
      () =>
        Effect.gen(function* () {
          const exit = yield* Effect.exit(Effect.scoped(Layer.build(ProcessLauncher.layer(protocol, options))))
          const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
          assert.instanceOf(defect, RangeError)
          assert.match(String(defect instanceof Error && defect.message), message)
        })
    )
  }

  it("a limit of PlainText that is no number of bytes", () => {
    for (const limit of [Number.NaN, -1, 0, Number.POSITIVE_INFINITY, 1.5]) {
      assert.throws(() => PlainText.protocol({ command: "x", limit }), RangeError, "limit must be")
    }
  })

  it.live("a directory that is none, is too long, or is closed to it", () =>
    Effect.gen(function* () {
      const at = (directory: string) => refusal(running({}), { attempt: { directory } })
      assert.strictEqual(yield* at("/etc/passwd"), "/etc/passwd is no directory")
      assert.match(yield* at(`/tmp/${"x".repeat(5000)}`), /cannot be looked at \(ENAMETOOLONG\)$/)
      assert.match(yield* at("/tmp/\0"), /holds a NUL byte/)
      assert.match(yield* at("/etc/passwd/x"), /does not exist$/)
    })
  )

  it.live("a program that is none, and says so without failing over what is in the PATH", () =>
    Effect.gen(function* () {
      const folder = yield* scratch
      symlinkSync(join(folder, "loop"), join(folder, "loop"))
      assert.strictEqual(yield* refusal(running({ program: folder })), `${folder} is no file`)
      assert.match(yield* refusal(running({ program: "/bin/s\0h" })), /NUL byte/)
      const PATH = `${folder}/loop:/etc/passwd::relative`
      assert.match(
        yield* refusal(running({ program: "nowhere", env: { PATH } })),
        /^There is no program nowhere in PATH/
      )
    })
  )

  it.live("variables that no environment can hold, and tells no value", () =>
    Effect.gen(function* () {
      for (const env of [{ "A=B": "hidden" }, { "": "hidden" }, { A_KEY: "hidden\0" }, { "A\0": "hidden" }]) {
        const detail = yield* refusal(running({}), { attempt: { env } })
        assert.match(detail, /cannot be in an environment/)
        assert.notInclude(detail, "hidden")
      }
      const detail = yield* refusal(running({}), { attempt: { env: { LONG: "x".repeat(3_000_000) } } })
      assert.match(detail, /^The environment of \/bin\/sh is too long \(30\d+ bytes\)/)
    })
  )

  it.live("what a protocol cannot make a command or a beginning of", () =>
    Effect.gen(function* () {
      const bug = (): never => {
        throw new Error("a bug")
      }
      assert.match(yield* refusal({ ...protocol, command: bug }), /echo could not make a command: Error: a bug/)
      assert.match(yield* refusal({ ...running({}), initial: bug }), /echo cannot begin: Error: a bug/)
    })
  )
})

describe("ProcessLauncher finds a program", () => {
  it.live("in a PATH that is relative or empty, as its shell does: from the directory of the attempt", () =>
    Effect.gen(function* () {
      const folder = yield* scratch
      mkdirSync(join(folder, "bin"))
      for (const name of ["agent", "bin/other"]) {
        writeFileSync(join(folder, name), `#!/bin/sh\n${result}\n`)
        chmodSync(join(folder, name), 0o755)
      }
      const given = { attempt: { directory: folder } }
      assert.strictEqual(yield* textOf(running({ program: "agent", env: { PATH: ":" } }), given), "done")
      assert.strictEqual(yield* textOf(running({ program: "other", env: { PATH: "bin" } }), given), "done")
    })
  )

  it.live("although the prompt's file is in a relative folder", () =>
    Effect.gen(function* () {
      const folder = yield* scratch
      const script = `cat "$1" >/dev/null && ${result}`
      const custom = running({ arguments: ["-c", script, "agent", Protocol.PromptFile] })
      const filesDirectory = relative(process.cwd(), join(folder, "files"))
      assert.strictEqual(yield* textOf(custom, { options: { filesDirectory }, attempt: { directory: "/" } }), "done")
    })
  )
})

describe("a protocol with a bug", () => {
  const bug = (): never => {
    throw new Error("a bug")
  }
  const endingOf = (custom: Partial<typeof protocol>): Effect.Effect<AgentLauncher.Ending, AgentLauncher.LaunchError> =>
    Effect.scoped(Effect.flatMap(launchWith({ ...running({}), ...custom }, ""), (run) => run.ended))

  it.live("in what it consults loses only what that would have added", () =>
    Effect.gen(function* () {
      for (const consult of [bug, () => Effect.die("a bug")]) {
        assert.strictEqual((yield* endingOf({ consult })).result?.text, "done")
      }
    })
  )

  it.live("in what is terminal still comes to its ending", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* endingOf({ terminal: bug })).result?.text, "done")
    })
  )

  it.live("in its ending, or in what it answers there, ends as LauncherFailed", () =>
    Effect.gen(function* () {
      const unfinished: Protocol.Reading = JSON.parse('{"ending":{"_tag":"Failed","failure":{}},"known":{}}')
      for (const ending of [bug, () => unfinished]) {
        const found = yield* endingOf({ ending })
        assert.strictEqual(found._tag === "Failed" ? found.failure.kind : "", "LauncherFailed")
      }
    })
  )

  it.live("in an activity costs that line", () =>
    Effect.gen(function* () {
      const half: Protocol.Step<never>["activity"] = JSON.parse('[{"_tag":"Text"}]')
      const run = yield* launchWith(
        { ...running({}), read: (state, json, line) => ({ ...protocol.read(state, json, line), activity: half }) },
        ""
      )
      assert.strictEqual((yield* run.ended).result?.text, "done")
      assert.deepStrictEqual(yield* Stream.runCollect(run.activity), [
        { _tag: "Drift", raw: '{"type":"result","text":"done"}' }
      ])
    })
  )
})

describe("what is told of an agent", () => {
  it.live("has nothing in it that a terminal would obey, and no name or id of any length", () =>
    Effect.gen(function* () {
      const script = `printf '{"type":"tool","id":"%s"}\\n' "$(printf '%20000s' x | tr ' ' x)"
        echo '{"type":"session","id":"--resume-me"}'
        echo '{"type":"error","text":"\\u001b]0;owned\\u0007\\u001b[2J\\u001b[31mred\\u0008\\u009b text"}'`
      const run = yield* launch(script)
      const ending = yield* run.ended
      assert.strictEqual(ending._tag === "Failed" ? ending.failure.detail : "", "red text")
      assert.strictEqual(ending.result?.sessionId, null)
      const told = yield* Stream.runCollect(run.activity)
      assert.deepStrictEqual(
        told.map(({ _tag }) => _tag),
        ["ToolStarted", "Drift"]
      )
      assert.isBelow(JSON.stringify(told[0]).length, 1000)
    })
  )
})

describe("a host with too many open files", () => {
  it.live("takes no process for gone that it could not look at", () =>
    Effect.gen(function* () {
      const child = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" })
      const script = fileURLToPath(new URL("support/reap-without-files.ts", import.meta.url))
      const limited = ["-c", 'ulimit -n 64; exec "$@"', "sh", process.execPath, script, String(child.pid)]
      assert.strictEqual(execFileSync("/bin/sh", limited, { encoding: "utf8" }), "stopped\n")
      assert.isFalse(isAlive(child.pid ?? 0))
    })
  )
})

const canMount = process.getuid?.() === 0 && existsSync("/usr/bin/mount")

describe.runIf(canMount)("on a full disk", () => {
  const smallDisk = Effect.acquireRelease(
    Effect.gen(function* () {
      const path = yield* scratch
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=100k", "tmpfs", path])
      return path
    }),
    (path) => Effect.sync(() => execFileSync("umount", [path]))
  )

  it.live("a prompt is refused, and an output is cut, without anything left there", () =>
    Effect.gen(function* () {
      const filesDirectory = yield* smallDisk
      const options = { filesDirectory }
      const asFile = PlainText.protocol({ command: "/bin/cat", arguments: [Protocol.PromptFile], prompt: "file" })
      const refused = yield* Effect.flip(Effect.scoped(launchWith(asFile, "x".repeat(500_000), { options })))
      assert.match(refused.failure.detail, /ENOSPC/)
      assert.deepStrictEqual(readdirSync(filesDirectory), [])
      const long = yield* launchWith(PlainText.protocol({ command: "/bin/sh", limit: 100 }), "yes | head -c 500000", {
        options
      })
      assert.match((yield* long.ended).result?.text ?? "", /of 500000 bytes; the rest could not be kept\]/)
      assert.deepStrictEqual(readdirSync(filesDirectory), [])
    })
  )
})
