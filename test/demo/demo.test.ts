import { readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { folder } from "../node/support/folders.ts"
import {
  agents,
  changedApplies,
  commits,
  events,
  has,
  kill,
  results,
  rulesFile,
  standingGit,
  start,
  until
} from "./support/demo.ts"

const small = ["--cases", "16", "--pace", "0"]

describe("the demo", () => {
  it.live(
    "ends with the same rules and results when it is killed at any moment and started again",
    () =>
      Effect.gen(function* () {
        const path = yield* folder
        const undisturbed = join(path, "undisturbed")
        const whole = yield* start(undisturbed, small)
        assert.strictEqual(yield* whole.ended, 0, whole.output())
        assert.match(whole.output(), /16 cases: 15 completed, 1 difficult, \d+ applies/)
        assert.match(whole.output(), /dutch-1 +broken by apply 002; repaired: it passed again after apply 003/)

        const page = readFileSync(join(undisturbed, "applies", "002.md"), "utf8")
        assert.include(page, "`dutch-1`: regressed, repair asked for by `dutch-1@recheck-002`")

        const state = join(path, "killed")
        const killedWhen = Effect.fnUntraced(function* (is: () => boolean, env: NodeJS.ProcessEnv = {}) {
          const demo = yield* start(state, small, env)
          yield* until(() => is() || demo.process.exitCode !== null)
          yield* kill(demo)
          assert.strictEqual(yield* demo.ended, "SIGKILL", demo.output())
        })

        yield* killedWhen(() => has(state, "RunStarted"))
        yield* killedWhen(() => has(state, "StepEnded"))
        const beforeCommit = yield* standingGit(path, "before", "001")
        yield* killedWhen(beforeCommit.stands, beforeCommit.env)
        assert.deepStrictEqual(yield* commits(state), ["No rules yet"])
        const afterCommit = yield* standingGit(path, "after", "002")
        yield* killedWhen(afterCommit.stands, afterCommit.env)
        assert.isTrue(has(state, "ApplyStarted", 2) && !has(state, "ApplyEnded", 2))
        assert.strictEqual((yield* commits(state)).length, 3)
        // As a git that was killed too leaves it.
        yield* Effect.promise(() => writeFile(join(state, "rules", ".git", "index.lock"), ""))
        yield* killedWhen(() => has(state, "CaseCompleted", 6))

        const last = yield* start(state, small)
        assert.strictEqual(yield* last.ended, 0, last.output())
        assert.strictEqual(rulesFile(state), rulesFile(undisturbed))
        assert.deepStrictEqual(results(state), results(undisturbed))
        const steps = events(state).filter((event) => event._tag === "StepEnded")
        const named = steps.map((event) => `${event.case} ${String(event["step"])}`)
        assert.strictEqual(new Set(named).size, named.length, "a step that had ended was run again")
        const made = (yield* commits(state)).slice(1).map((subject) => subject.split(":")[0])
        assert.deepStrictEqual(made, changedApplies(state))
        yield* until(async () => (await agents(state)).length === 0)

        const again = yield* start(state, small)
        assert.strictEqual(yield* again.ended, 0)
        assert.include(again.output(), "There is nothing left to do")
        assert.strictEqual(events(state).filter((event) => event._tag === "StepEnded").length, steps.length)
      }),
    180_000
  )

  it.live("lets the steps end at a Ctrl-C, also one that has lost its agent to it, and goes on from there", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const some = ["--cases", "4"]
      const demo = yield* start(state, [...some, "--pace", "1000"])
      yield* until(async () => (await agents(state)).length === 4)
      // As it happens to one that is only just being started when the terminal sends its signal.
      const [first = 0] = yield* Effect.promise(() => agents(state))
      process.kill(first, "SIGINT")
      yield* kill(demo, "SIGINT")
      assert.strictEqual(yield* demo.ended, 130)
      assert.include(demo.output(), "Stopped. The same command goes on from here.")
      assert.strictEqual(events(state).filter((event) => event._tag === "StepEnded").length, 4)
      assert.isEmpty(yield* Effect.promise(() => agents(state)))

      const next = yield* start(state, [...some, "--pace", "0"])
      assert.strictEqual(yield* next.ended, 0, next.output())
      assert.include(next.output(), "4 cases: 4 completed, 0 difficult")
    })
  )

  it.live("ends at once at a second Ctrl-C, and leaves no agent behind", () =>
    Effect.gen(function* () {
      const state = yield* folder
      const demo = yield* start(state, ["--pace", "600000"])
      yield* until(async () => (await agents(state)).length === 4)
      yield* kill(demo, "SIGINT")
      yield* Effect.sleep("300 millis")
      assert.isNull(demo.process.exitCode)
      yield* kill(demo, "SIGINT")
      assert.strictEqual(yield* demo.ended, 130)
      assert.isEmpty(yield* Effect.promise(() => agents(state)))
      assert.isFalse(has(state, "StepEnded"))
    })
  )
})
