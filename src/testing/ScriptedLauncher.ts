/**
 * A launcher that plays a script: endings, activity and delays by attempt, under `TestClock`.
 */
import { Context, Effect, Layer, Ref } from "effect"
import { AgentLauncher } from "shiftboss"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

/** What a launcher was asked for, in order. */
export class Launches extends Context.Service<
  Launches,
  {
    /** The attempts it was asked to launch, those it refused included. */
    readonly all: Effect.Effect<ReadonlyArray<AgentLauncher.Attempt>>
    /** The identities it was asked to reap. */
    readonly reaped: Effect.Effect<ReadonlyArray<AgentLauncher.Identity>>
  }
>()("shiftboss/testing/Launches") {}

/** What a script gets besides the attempt. */
export interface Play {
  /** Counted from 1 over all launches. */
  readonly launch: number
  readonly emit: (activity: AgentLauncher.Activity) => Effect.Effect<void>
}

/**
 * What happens to an attempt: an ending; an effect that comes to one, and may sleep, tell activity or count; or an error
 * that refuses the launch.
 */
export type Scripted = AgentLauncher.Ending | Effect.Effect<AgentLauncher.Ending> | AgentLauncher.LaunchError

export interface Options {
  /** Who the n-th launch is. Default: a fiber of this host. */
  readonly identity?: ((launch: number) => AgentLauncher.Identity) | undefined
  /** What becomes of an identity that a crashed host left. Default: `gone`. */
  readonly reap?: ((identity: AgentLauncher.Identity) => "gone" | "stopped" | "unknown") | undefined
}

// -----------------------------------------------------------------------------
// Layers
// -----------------------------------------------------------------------------

/**
 * Plays the script. An attempt is stopped by interrupting its effect, and ended when it is silent for too long, as in
 * `AgentLauncher.layer`. New sessions are `session-1`, `session-2`, ….
 */
export const layer = (
  script: (attempt: AgentLauncher.Attempt, play: Play) => Scripted,
  options: Options = {}
): Layer.Layer<AgentLauncher.AgentLauncher | Launches> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const attempts = yield* Ref.make<ReadonlyArray<AgentLauncher.Attempt>>([])
      const reaped = yield* Ref.make<ReadonlyArray<AgentLauncher.Identity>>([])
      const sessions = yield* Ref.make(0)
      const launcher = AgentLauncher.AgentLauncher.of({
        newSessionId: Effect.map(Ref.updateAndGet(sessions, increment), (n) => `session-${n}`),
        reap: (identity) =>
          Effect.as(
            Ref.update(reaped, (all) => [...all, identity]),
            options.reap?.(identity) ?? "gone"
          ),
        launch: Effect.fnUntraced(function* (attempt, onIdentity) {
          const { length } = yield* Ref.updateAndGet(attempts, (all) => [...all, attempt])
          let emit: Play["emit"] = () => Effect.void
          const scripted = script(attempt, { launch: length, emit: (activity) => Effect.suspend(() => emit(activity)) })
          if (scripted instanceof AgentLauncher.LaunchError) return yield* scripted
          const played = yield* AgentLauncher.makeLauncher((_, ofRun) => {
            emit = ofRun
            return Effect.isEffect(scripted) ? scripted : Effect.succeed(scripted)
          })
          const identity = options.identity?.(length) ?? { _tag: "Fiber" as const }
          const run = yield* played.launch(attempt, () => onIdentity(identity))
          return { ...run, identity }
        })
      })
      return Context.make(AgentLauncher.AgentLauncher, launcher).pipe(
        Context.add(Launches, { all: Ref.get(attempts), reaped: Ref.get(reaped) })
      )
    })
  )

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const increment = (n: number): number => n + 1
