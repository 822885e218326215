import { execFileSync } from "node:child_process"
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, References, Schedule, Stream, Tracer } from "effect"
import { RetryPolicy, RetryRules, Storage } from "shiftboss"
import { FileStorage, GitWorkspace, PlainText } from "shiftboss/node"
import { folder } from "./support/folders.ts"

const git = (directory: string, ...words: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", directory, "-c", "user.name=a", "-c", "user.email=a@b", ...words], { encoding: "utf8" })

/** A repository with one commit, and a policy over files whose agent is the shell script. */
const prepared = Effect.fnUntraced(function* (script: string, options: Partial<PlainText.Options> = {}) {
  const path = yield* folder
  const directory = join(path, "repository")
  mkdirSync(directory)
  git(directory, "init", "-q")
  git(directory, "commit", "-q", "--allow-empty", "-m", "start")
  writeFileSync(join(path, "agent.sh"), script)
  const agent = PlainText.layer({ command: "sh", arguments: [join(path, "agent.sh")], grace: "200 millis", ...options })
  const storage = FileStorage.layer(join(path, "logs"))
  const layer = RetryPolicy.layer.pipe(Layer.provide([agent, GitWorkspace.layer]), Layer.provideMerge(storage))
  return {
    path,
    directory,
    layer,
    turn: { id: "t", prompt: "fix it", directory, rules: { grace: "200 millis" } } as const
  }
})

describe("a turn of a real program", () => {
  it.live("that is killed between its commit and its result does not make the commit twice", () =>
    Effect.gen(function* () {
      const { directory, layer, turn } = yield* prepared(`
        prompt=$(cat)
        case "$prompt" in *"fix the bug"*) echo "it was done already"; exit 0;; esac
        git -c user.name=a -c user.email=a@b commit -q --allow-empty -m "fix the bug"
        kill -9 $$
      `)
      const outcome = yield* Effect.provide(RetryPolicy.run(turn), layer)
      assert.include(outcome.text, "it was done already")
      assert.deepStrictEqual(
        outcome.attempts.map(({ rule }) => rule),
        ["first-attempt", "interrupted-fresh"]
      )
      assert.strictEqual(git(directory, "rev-list", "--count", "HEAD").trim(), "2")
    })
  )

  it.live("whose work tree is gone is not launched again, and the turn says why", () =>
    Effect.gen(function* () {
      const { directory, layer, turn } = yield* prepared(`cat >/dev/null; rm -rf "$PWD"; kill -9 $$`)
      const outcome = yield* Effect.provide(RetryPolicy.run(turn), layer)
      assert.strictEqual(outcome.rule, "workspace-unreadable")
      assert.include(outcome.detail, directory)
      assert.strictEqual(outcome.attempts.length, 1)
    })
  )

  it.live("that ignores a polite stop is gone when the stop has succeeded", () =>
    Effect.gen(function* () {
      const { layer, turn } = yield* prepared(`trap '' TERM; while true; do sleep 0.05; done`)
      yield* Effect.gen(function* () {
        const running = yield* Effect.forkChild(RetryPolicy.run(turn))
        const storage = yield* Storage.Storage
        yield* Stream.runCollect(storage.read("turns")).pipe(
          Effect.map((entries) => JSON.stringify(entries)),
          Effect.filterOrFail((text) => text.includes("AgentIdentified")),
          Effect.retry(Schedule.spaced("20 millis"))
        )
        yield* RetryPolicy.stop("t")
        const outcome = yield* Fiber.join(running)
        assert.strictEqual(outcome.status, "stopped")
        const entries = JSON.stringify(yield* Stream.runCollect(storage.read("turns")))
        const pid = Number(/"pid":(\d+)/.exec(entries)?.[1])
        assert.throws(() => process.kill(pid, 0), "ESRCH")
      }).pipe(Effect.provide(layer))
    })
  )

  it.live("keeps its model when the fallback has no place in the command", () =>
    Effect.gen(function* () {
      const { layer, turn } = yield* prepared(`cat >/dev/null; exit 75`, { exitCodes: { 75: "Capacity" } })
      const rules = { remedies: { Capacity: RetryRules.retry(0, 0) }, fallbackModels: ["small"] }
      const outcome = yield* Effect.provide(RetryPolicy.run({ ...turn, rules }), layer)
      assert.deepStrictEqual(
        outcome.attempts.map(({ rule, model }) => [rule, model]),
        [
          ["first-attempt", null],
          ["capacity-retry-1", null],
          ["capacity-retry-2", "small"],
          ["fallback-model-unavailable", null]
        ]
      )
      assert.strictEqual(outcome.rule, "capacity-retry-used")
    })
  )

  it.live("is told the fallback where the command has a place for it", () =>
    Effect.gen(function* () {
      const script = `cat >/dev/null; test -n "$MODEL_OF_TEST" && echo "with $MODEL_OF_TEST" && exit 0; exit 75`
      const model = (name: string) => ["-c", 'shift; exec env MODEL_OF_TEST="$0" sh "$@"', name, "--"]
      const { layer, turn } = yield* prepared(script, { exitCodes: { 75: "Capacity" }, model })
      const rules = { remedies: { Capacity: RetryRules.retry(0) }, fallbackModels: ["small"], fallbackFrom: 2 }
      const outcome = yield* Effect.provide(RetryPolicy.run({ ...turn, rules }), layer)
      assert.strictEqual(outcome.text.trim(), "with small")
    })
  )
})

/** Whatever a log, a file or an outcome may hold of it. */
const secret = "sk-live-9f8e7d6c5b4a39281706f5e4"

describe("a key of a real program", () => {
  const everywhere = (path: string) =>
    globSync("logs/**/*", { cwd: path })
      .filter((file) => statSync(join(path, file)).isFile())
      .map((file) => readFileSync(join(path, file), "utf8"))

  const leaks = {
    "in its answer": `cat >/dev/null; echo "the key is $TEAM_PASS"`,
    "in an error, as a password of a URL": `cat >/dev/null; echo "fatal: https://bot:$TEAM_PASS@example.com/r.git" >&2; exit 3`,
    "cut in the middle of a line": `cat >/dev/null; printf 'key=%s' "$TEAM_PASS"; kill -9 $$`
  }
  for (const [where, script] of Object.entries(leaks)) {
    it.live(`that is ${where} is in no log, outcome, message or span`, () =>
      Effect.gen(function* () {
        const { path, layer, turn } = yield* prepared(script)
        const said: Array<string> = []
        const logger = Logger.make((entry) => void said.push(inspect(entry, { depth: 8 })))
        const tracer = Tracer.make({
          span: (options) => {
            const span = new Tracer.NativeSpan(options)
            spans.push(span)
            return span
          }
        })
        const spans: Array<Tracer.Span> = []
        const asked = {
          ...turn,
          env: { TEAM_PASS: secret },
          rules: { remedies: { Interrupted: RetryRules.stop("Look.") } }
        }
        const outcome = yield* RetryPolicy.run(asked).pipe(
          Effect.provide([layer, Logger.layer([logger])]),
          Effect.provideService(References.MinimumLogLevel, "All"),
          Effect.withTracer(tracer)
        )
        const logs = everywhere(path)
        assert.include(logs.join(), "AttemptEnded")
        assert.isAbove(spans.length, 0)
        const told = spans.map((span) => inspect([span.name, span.attributes, span.status], { depth: 8 }))
        // It was there to be found, and has been taken out.
        assert.match(JSON.stringify(outcome), /TEAM_PASS|redacted/)
        for (const text of [...logs, ...said, ...told, JSON.stringify(outcome)]) assert.notInclude(text, secret)
      })
    )
  }
})
