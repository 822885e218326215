/**
 * Launching scripts in tests, and looking at what is alive.
 */
import { Duration, Effect, type Scope, Stream } from "effect"
import { AgentLauncher } from "shiftboss"
import { ProcessLauncher, type Protocol } from "shiftboss/node"
import { table } from "../../../src/node/internal/processTable.ts"
import * as Echo from "./echo.ts"

export interface Given {
  readonly attempt?: Partial<AgentLauncher.Attempt>
  readonly silence?: Duration.Input
  readonly wallClock?: Duration.Input
  readonly options?: ProcessLauncher.Options
  readonly onIdentity?: (identity: AgentLauncher.Identity) => Effect.Effect<void>
}

const limits = (given: Given): AgentLauncher.Attempt["limits"] => ({
  silence: Duration.fromInputUnsafe(given.silence ?? "1 minute"),
  wallClock: Duration.fromInputUnsafe(given.wallClock ?? "1 minute")
})

/** Launches with any protocol. */
export const launchWith = <State>(
  protocol: Protocol.Protocol<State>,
  prompt: string,
  given: Given = {}
): Effect.Effect<AgentLauncher.AgentRun, AgentLauncher.LaunchError, Scope.Scope> =>
  Effect.gen(function* () {
    const launcher = yield* AgentLauncher.AgentLauncher
    const attempt: AgentLauncher.Attempt = {
      turnId: "turn",
      number: 1,
      prompt,
      session: { _tag: "New", id: "s-1" },
      limits: limits(given),
      ...given.attempt
    }
    return yield* launcher.launch(attempt, given.onIdentity ?? (() => Effect.void))
  }).pipe(Effect.provide(ProcessLauncher.layer(protocol, { grace: "100 millis", ...given.options })))

/** Launches a shell script that speaks the protocol of these tests. */
export const launch = (
  script: string,
  given: Given = {}
): Effect.Effect<AgentLauncher.AgentRun, AgentLauncher.LaunchError, Scope.Scope> =>
  launchWith(Echo.protocol, script, given)

/** The texts that a run says, as they come. */
export const saidBy = (run: AgentLauncher.AgentRun): Stream.Stream<string> =>
  Stream.flatMap(run.activity, (activity) => (activity._tag === "Text" ? Stream.make(activity.text) : Stream.empty))

/** Waits until a run has said something, and answers it. */
export const heard = (run: AgentLauncher.AgentRun): Effect.Effect<string> =>
  Stream.runHead(saidBy(run)).pipe(
    Effect.flatMap((said) => (said._tag === "Some" ? Effect.succeed(said.value) : Effect.die("it said nothing")))
  )

/** A script part that says something. */
export const say = (text: string): string => `echo '{"type":"say","text":"'"${text}"'"}'`

export const isAlive = (pid: number | string): boolean => table().some((entry) => entry.pid === Number(pid))
