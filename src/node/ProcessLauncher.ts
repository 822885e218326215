/**
 * Launches agents that are programs: real processes, read through a `Protocol`.
 *
 * Linux and macOS. On macOS, processes that left their group and lost their parent cannot be found.
 */
import { Clock, Deferred, Duration, Effect, Layer } from "effect"
import { AgentLauncher, Failure } from "shiftboss"
import { randomUUID } from "node:crypto"
import { resolve } from "node:path"
import { type Attended, attend, conclude, type Verdict, watch } from "./internal/attendance.ts"
import { type Child, start } from "./internal/child.ts"
import { environmentOf, redactor } from "./internal/environment.ts"
import { defaultFolder, keepFile } from "./internal/files.ts"
import { checkOptions, zoneOf } from "./internal/options.ts"
import { bootId, entryOf } from "./internal/processTable.ts"
import { familyOf, look, patiently, stopFamily } from "./internal/stopping.ts"
import type * as Protocol from "./Protocol.ts"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

export interface Options {
  /** Added to the environment of every child; an attempt's own `env` goes before it. */
  readonly env?: { readonly [name: string]: string } | undefined
  /** Names of variables that children get from the host's environment, besides the usual ones and the protocol's. */
  readonly inherit?: ReadonlyArray<string> | undefined
  /** Values that are never to be printed, besides those of variables whose names say so (key, token, secret, …). */
  readonly secrets?: ReadonlyArray<string> | undefined
  /** Where attempts run that name no directory. Default: the host's own. */
  readonly directory?: string | undefined
  /** How long an agent that is ended gets to end by itself, by the launcher or by its scope. Default 15 s. */
  readonly grace?: Duration.Input | undefined
  /** How long a process may live after it has printed its result, with no tool running. Default 30 s. */
  readonly linger?: Duration.Input | undefined
  /** A line longer than this is skipped. Default 32 MiB, at most 256 MiB. */
  readonly maxLineBytes?: number | undefined
  /**
   * Where prompts and long output are kept in files, each for this user alone. What has been there for a week is removed.
   * Default: a private folder in the system's one for temporary files.
   */
  readonly filesDirectory?: string | undefined
  /** The zone in which children print times. Default: their `TZ`, or the host's. */
  readonly timeZone?: string | undefined
}

// -----------------------------------------------------------------------------
// Layers
// -----------------------------------------------------------------------------

/**
 * Launches the program of a protocol.
 *
 * **Details**
 *
 * The program does not run before `onIdentity` has succeeded: a shell waits in its place, and ends if the host dies. It
 * leads a session of its own, with an environment that holds only what is listed. What the protocol prints, and every
 * failure, has its secrets taken out. When the scope of a run closes nothing of it is left alive. Options out of their
 * range are a `RangeError`, as a defect of the layer.
 */
export const layer = <State>(
  protocol: Protocol.Protocol<State>,
  options: Options = {}
): Layer.Layer<AgentLauncher.AgentLauncher> =>
  Layer.effect(
    AgentLauncher.AgentLauncher,
    Effect.sync(() => {
      checkOptions(options)
      return {
        newSessionId: Effect.sync(() => randomUUID()),
        reap: (identity) => reap(identity, protocol, options),
        launch: Effect.fn("ProcessLauncher.launch", {
          attributes: { agent: protocol.name }
        })((attempt, onIdentity) => launch(protocol, options, attempt, onIdentity))
      }
    })
  )

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const defaultGrace = Duration.seconds(15)

const graceOf = (options: Options): Duration.Duration =>
  options.grace === undefined ? defaultGrace : Duration.fromInputUnsafe(options.grace)

const launch = Effect.fnUntraced(function* <State>(
  protocol: Protocol.Protocol<State>,
  options: Options,
  attempt: AgentLauncher.Attempt,
  onIdentity: (identity: AgentLauncher.Identity) => Effect.Effect<void>
) {
  const command = commandOf(protocol, attempt)
  if (command instanceof Failure.Failure) return yield* new AgentLauncher.LaunchError({ failure: command })
  const env = environmentOf(
    process.env,
    [...(protocol.inherit ?? []), ...(options.inherit ?? [])],
    command.env,
    options.env,
    attempt.env
  )
  const redact = redactor(env, options.secrets)
  const refuse = (detail: string) =>
    new AgentLauncher.LaunchError({ failure: Failure.make("LauncherFailed", redact(detail)) })
  // The program runs somewhere else: a path that is relative would be another one there.
  const folder = resolve(options.filesDirectory ?? defaultFolder())
  const given = yield* argumentsOf(command, attempt.prompt, folder).pipe(Effect.mapError(refuse))
  const agent = yield* attend(protocol, attempt, {
    env,
    redact,
    maxLineBytes: options.maxLineBytes,
    outputFile: `${folder}/${randomUUID()}.out`,
    timeZone: zoneOf(options.timeZone, env["TZ"])
  }).pipe(Effect.catchDefect((defect) => Effect.fail(refuse(`${protocol.name} cannot begin: ${String(defect)}`))))
  const child = yield* Effect.acquireRelease(
    Effect.mapError(
      start({
        program: command.program,
        arguments: given,
        directory: attempt.directory ?? options.directory ?? process.cwd(),
        env,
        stdin: command.stdin,
        onStdout: agent.onStdout,
        onStderr: agent.onStderr
      }),
      refuse
    ),
    // Only what is given up before it may run: after that its supervision stops it.
    (started) => stopFamily(familyOf(started.root, !started.hasExited()), "SIGKILL", Duration.zero)
  )
  return yield* supervise(protocol, options, attempt, agent, child, onIdentity)
})

/** A protocol may be somebody else's code: what it throws ends this attempt. */
const commandOf = <State>(
  protocol: Protocol.Protocol<State>,
  attempt: AgentLauncher.Attempt
): Protocol.Command | Failure.Failure => {
  try {
    return protocol.command(attempt)
  } catch (error) {
    return Failure.make("LauncherFailed", `The protocol ${protocol.name} could not make a command: ${String(error)}`)
  }
}

const supervise = Effect.fnUntraced(function* <State>(
  protocol: Protocol.Protocol<State>,
  options: Options,
  attempt: AgentLauncher.Attempt,
  agent: Attended<State>,
  child: Child,
  onIdentity: (identity: AgentLauncher.Identity) => Effect.Effect<void>
) {
  const identity: AgentLauncher.Identity = { _tag: "Process", ...child.root, bootId: bootId() }
  yield* onIdentity(identity)

  const family = familyOf(child.root, true)
  const ended = yield* Deferred.make<AgentLauncher.Ending>()
  const end = (grace: Duration.Duration) => stopFamily(family, protocol.stopSignal ?? "SIGTERM", grace)
  const endBy = (verdict: Verdict) => {
    // One that has ended by itself was not ended by us.
    if (!child.hasExited()) agent.endBy(verdict)
  }
  const stop = Effect.fn("ProcessLauncher.stop")(function* (grace: Duration.Input) {
    endBy("stop")
    yield* end(Duration.fromInputUnsafe(grace))
    yield* Deferred.await(ended)
  })
  const whenGone = Effect.gen(function* () {
    const gone = yield* Deferred.await(child.gone)
    yield* Effect.ignoreCause(Effect.sync(() => look(family)))
    // From here on its pid may be given to a stranger; what it left is known.
    family.watched = false
    yield* Deferred.succeed(ended, yield* conclude(protocol, agent, gone))
  })
  // Both at once, or an interruption in between leaves a program that nobody hears of. Detached, because whoever waits for
  // the ending gets one even when the scope is closed first.
  yield* Effect.uninterruptible(
    Effect.forkDetach(whenGone).pipe(
      Effect.andThen(Effect.addFinalizer(() => stop(graceOf(options)))),
      Effect.andThen(child.release)
    )
  )
  const linger = Duration.fromInputUnsafe(options.linger ?? "30 seconds")
  const endHung = (hung: string) =>
    Effect.andThen(
      Effect.sync(() => endBy({ hung })),
      end(graceOf(options))
    )
  yield* watch(agent, attempt.limits, linger, endHung).pipe(Effect.raceFirst(Deferred.await(ended)), Effect.forkScoped)
  return { identity, activity: agent.activity, ended: Deferred.await(ended), stop }
})

/** With the prompt in a file where the command wants it so. The file is gone when the scope closes. */
const argumentsOf = Effect.fnUntraced(function* (command: Protocol.Command, prompt: string, folder: string) {
  const given = command.arguments.filter((argument) => typeof argument === "string")
  if (given.length === command.arguments.length) return given
  const path = yield* keepFile(`${folder}/${randomUUID()}.prompt`, prompt, yield* Clock.currentTimeMillis)
  return command.arguments.map((argument) => (typeof argument === "string" ? argument : path))
})

const reap = Effect.fn("ProcessLauncher.reap")(<State>(
  identity: AgentLauncher.Identity,
  protocol: Protocol.Protocol<State>,
  options: Options
) => {
  if (identity._tag === "Fiber") return Effect.succeed("gone" as const)
  if (identity._tag === "Remote") return Effect.succeed("unknown" as const)
  // What cannot be looked at is not proven gone.
  return Effect.catchDefect(reapProcess(identity, protocol.stopSignal ?? "SIGTERM", graceOf(options)), () =>
    Effect.succeed("unknown" as const)
  )
})

const reapProcess = Effect.fnUntraced(function* (
  identity: Extract<AgentLauncher.Identity, { readonly _tag: "Process" }>,
  stopSignal: NodeJS.Signals,
  grace: Duration.Duration
) {
  const [boot, namespace] = (yield* patiently(bootId)).split("/", 2)
  const [thenBoot, thenNamespace] = identity.bootId.split("/", 2)
  if (boot !== thenBoot) return "gone"
  // Its number means nothing here, and it may well be alive over there.
  if (namespace !== thenNamespace) return "unknown"
  const root = { pid: identity.pid, startTime: identity.startTime }
  const watched = yield* patiently(() => entryOf(root.pid)?.startTime === root.startTime)
  return (yield* stopFamily(familyOf(root, watched), stopSignal, grace)) ? "stopped" : "gone"
})
