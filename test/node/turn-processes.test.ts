import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schedule, Stream } from "effect"
import { RetryPolicy, Storage } from "shiftboss"
import { FileStorage, GitWorkspace, PlainText } from "shiftboss/node"
import { folder } from "./support/folders.ts"

const git = (directory: string, ...words: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", directory, "-c", "user.name=a", "-c", "user.email=a@b", ...words], { encoding: "utf8" })

/** A repository with one commit, and a policy over files whose agent is the shell script. */
const prepared = Effect.fnUntraced(function* (script: string) {
  const path = yield* folder
  const directory = join(path, "repository")
  mkdirSync(directory)
  git(directory, "init", "-q")
  git(directory, "commit", "-q", "--allow-empty", "-m", "start")
  writeFileSync(join(path, "agent.sh"), script)
  const agent = PlainText.layer({ command: "sh", arguments: [join(path, "agent.sh")], grace: "200 millis" })
  const storage = FileStorage.layer(join(path, "logs"))
  const layer = RetryPolicy.layer.pipe(Layer.provide([agent, GitWorkspace.layer]), Layer.provideMerge(storage))
  return { directory, layer, turn: { id: "t", prompt: "fix it", directory, rules: { grace: "200 millis" } } as const }
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
})
