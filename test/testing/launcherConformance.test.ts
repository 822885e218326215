import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer } from "effect"
import { AgentLauncher, Failure } from "shiftboss"
import { PlainText, ProcessLauncher } from "shiftboss/node"
import { launcherConformance, ScriptedLauncher } from "shiftboss/testing"
import { membersOf } from "../../src/node/internal/processTable.ts"
import { protocol } from "../node/support/echo.ts"

type Launcher = AgentLauncher.AgentLauncher["Service"]
type Subject = Parameters<typeof launcherConformance>[0]

const of = (layer: Layer.Layer<AgentLauncher.AgentLauncher>): Subject["launcher"] =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, AgentLauncher.AgentLauncher))

const hello: AgentLauncher.Activity = { _tag: "Text", text: "hello" }

const play = Effect.fnUntraced(function* (
  task: string,
  emit: (activity: AgentLauncher.Activity) => Effect.Effect<void>
): Effect.fn.Return<AgentLauncher.AgentResult, Failure.Failure> {
  yield* emit(hello)
  if (task === "fail") return yield* Effect.fail(Failure.make("Capacity", "529"))
  if (task === "work") return yield* Effect.forever(Effect.delay(emit(hello), "20 millis"))
  if (task === "hang") return yield* Effect.never
  return AgentLauncher.result("done")
})

const isAlive = (identity: AgentLauncher.Identity) =>
  Effect.sync(() => identity._tag === "Process" && membersOf(identity, new Map(), false).length > 0)

const scripts = (say: string, done: string) => (task: string) =>
  ({
    succeed: `${say}; ${done}`,
    fail: `${say}; exit 3`,
    work: `trap '' TERM; while :; do ${say}; setsid sleep 1000 & sleep 0.02; done`,
    hang: `${say}; sleep 1000`
  })[task] ?? ""

const subjects: { readonly [name: string]: Subject } = {
  "AgentLauncher.layer": {
    launcher: of(AgentLauncher.layer((attempt, emit) => play(attempt.prompt, emit))),
    prompt: (task) => task
  },
  ScriptedLauncher: {
    launcher: of(
      ScriptedLauncher.layer((attempt, { emit }) =>
        Effect.match(play(attempt.prompt, emit), {
          onFailure: (failure) => AgentLauncher.failed(failure),
          onSuccess: (result) => AgentLauncher.succeeded(result.text)
        })
      )
    ),
    prompt: (task) => task
  },
  ProcessLauncher: {
    launcher: of(ProcessLauncher.layer(protocol, { grace: "50 millis" })),
    prompt: scripts(`echo '{"type":"say","text":"hello"}'`, `echo '{"type":"result","text":"done"}'`),
    isAlive
  },
  "ProcessLauncher with PlainText": {
    launcher: of(PlainText.layer({ command: "/bin/sh", grace: "50 millis" })),
    prompt: scripts("echo hello", "printf done"),
    isAlive
  }
}

describe("launcherConformance", () => {
  for (const [name, subject] of Object.entries(subjects)) {
    describe(`of ${name}`, () => {
      for (const { name: rule, run } of launcherConformance(subject)) it.live(rule, () => run)
    })
  }

  const broken: { readonly [rule: string]: (launcher: Launcher) => Launcher } = {
    "tells its identity once, before it runs": (launcher) => ({
      ...launcher,
      launch: (attempt) => launcher.launch(attempt, () => Effect.void)
    }),
    "is gone when stop is done, and ends as Stopped": (launcher) => ({
      ...launcher,
      launch: (attempt, onIdentity) =>
        Effect.map(launcher.launch(attempt, onIdentity), (run) => ({
          ...run,
          stop: (grace) => Effect.asVoid(Effect.forkDetach(run.stop(grace))),
          ended: Effect.succeed(AgentLauncher.failed(Failure.make("Interrupted", "gone")))
        }))
    }),
    "names each new session differently": (launcher) => ({ ...launcher, newSessionId: Effect.succeed("session") }),
    "knows of an attempt that has ended that it is gone": (launcher) => ({
      ...launcher,
      reap: () => Effect.succeed("unknown")
    })
  }

  for (const [rule, breaking] of Object.entries(broken)) {
    it.live(`finds a launcher that breaks: ${rule}`, () =>
      Effect.gen(function* () {
        const sound = subjects["AgentLauncher.layer"]
        if (sound === undefined) return assert.fail("there is no sound launcher")
        const cases = launcherConformance({ ...sound, launcher: Effect.map(sound.launcher, breaking) })
        const found = cases.find(({ name }) => name === rule)
        assert.isTrue(found !== undefined && Exit.isFailure(yield* Effect.exit(found.run)))
      })
    )
  }
})
