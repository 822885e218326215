/**
 * Turns of a policy until there is an event of every kind: attempts that fail in many ways, waits, holds, a stop, another
 * round, and a crash in the middle.
 */
import { Effect, Fiber, Layer } from "effect"
import { AgentLauncher, Failure, RetryPolicy } from "shiftboss"
import { Advance, ScriptedLauncher } from "shiftboss/testing"
import { passing } from "../../core/dispatch/support.ts"
import { beginning, type Scenario } from "../scenario.ts"

type Act = (play: ScriptedLauncher.Play) => ScriptedLauncher.Scripted

const hour = 3_600_000

const usage = { input: 120, output: 45, cacheRead: 3000, cacheWrite: null, reasoning: 7 }
const spent = { sessionId: "session-a", usage, costUsd: 0.25, turns: 3, model: "model-1" }
const fails = (kind: Failure.FailureKind, resetAt?: number) =>
  AgentLauncher.failed(
    Failure.make(kind, `it met ${kind}`, { raw: `{"error":"${kind}"}`, ...(resetAt === undefined ? {} : { resetAt }) }),
    AgentLauncher.result("half an answer", spent)
  )

/** Sees its session, tells what it has used, uses a tool, and is cut off within another. */
const works =
  (ending: AgentLauncher.Ending): Act =>
  ({ emit }) =>
    Effect.gen(function* () {
      yield* emit({ _tag: "SessionSeen", id: "session-a" })
      yield* emit({ _tag: "UsageSoFar", usage, counter: "session" })
      yield* emit({ _tag: "ToolStarted", id: "tool-1", tool: "Read" })
      yield* emit({ _tag: "ToolEnded", id: "tool-1", tool: "Read" })
      yield* emit({ _tag: "ToolStarted", id: "tool-2", tool: "Bash" })
      yield* Effect.sleep("1 minute")
      return ending
    })
const never: Act = () => Effect.never
const unlaunched: Act = () => new AgentLauncher.LaunchError({ failure: Failure.make("LauncherFailed", "no program") })

const identities: ReadonlyArray<AgentLauncher.Identity> = [
  { _tag: "Process", pid: 4711, startTime: "8134", bootId: "boot-1/pid:[1]" },
  { _tag: "Remote", id: "job-1" },
  { _tag: "Fiber" }
]

const policy = (options: RetryPolicy.Options, ...acts: ReadonlyArray<Act>) => {
  const launcher = ScriptedLauncher.layer(
    (_, play) => acts[Math.min(play.launch, acts.length) - 1]?.(play) ?? AgentLauncher.succeeded("done", spent),
    { identity: (launch) => identities[launch % identities.length] ?? { _tag: "Fiber" } }
  )
  const layer = RetryPolicy.layerWith(options).pipe(Layer.provide(launcher))
  return <A, E, R>(program: Effect.Effect<A, E, R>) => Effect.provide(program, Layer.fresh(layer))
}

const turn = (id: string) => ({ id, prompt: "do it", model: "model-1" })
const well: Act = works(AgentLauncher.succeeded("done", spent))

/** Runs the turn, and takes its process away or stops it when it has been at work for a while. */
const cutOff = (id: string, by: "crash" | "stop") =>
  Effect.gen(function* () {
    const running = yield* Effect.forkChild(Effect.exit(RetryPolicy.run(turn(id))))
    yield* Advance.advance("30 seconds", "10 seconds")
    yield* by === "crash" ? Fiber.interrupt(running) : RetryPolicy.stop(id)
    yield* Fiber.await(running)
  })

export const turns: Scenario = {
  name: "turns",
  logs: { turns: "turns" },
  play: Effect.gen(function* () {
    const options: RetryPolicy.Options = { account: "account-1", networkProbe: Effect.succeed(true) }
    const limit = fails("RateLimited", beginning + hour)
    const on = (...acts: ReadonlyArray<Act>) => policy(options, ...acts)
    yield* passing(on(works(fails("Capacity")), works(fails("StreamCut")), well)(RetryPolicy.run(turn("is retried"))))
    yield* passing(on(works(fails("Network")), well)(RetryPolicy.run(turn("waits for the network"))))
    yield* passing(on(works(limit), well)(RetryPolicy.run(turn("is held"))))
    yield* passing(on(works(fails("Refused")))(RetryPolicy.run(turn("fails, and is run again"))))
    yield* passing(on(well)(RetryPolicy.run(turn("fails, and is run again"))))
    yield* passing(on(unlaunched)(RetryPolicy.run(turn("is not launched"))))
    yield* on(never)(cutOff("is stopped, and goes on", "stop"))
    yield* passing(on(well)(RetryPolicy.run(turn("is stopped, and goes on"))))
    yield* on(works(AgentLauncher.succeeded("late", spent)))(cutOff("is under way", "crash"))
  })
}

export const keptTurns: Scenario = {
  name: "kept-turns",
  logs: { "kept/turns": "turns" },
  play: Effect.gen(function* () {
    const cut = works(fails("StreamCut"))
    const on = policy({ log: "kept/turns", keepTurns: 2 }, well, well, cut, cut, well)
    const ids = ["is dropped", "is dropped too", "is kept", "is kept too", "comes after"]
    yield* passing(on(Effect.forEach(ids, (id) => RetryPolicy.run(turn(id)))))
  })
}
