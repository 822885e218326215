/**
 * The simulated machine as one of its processes sees it.
 */
import { Context, type Duration, type Effect, type Exit } from "effect"

/** A process of the simulation. */
export interface Process<out A, out E> {
  /** How it ended; `undefined` when it was killed. */
  readonly exit: Effect.Effect<Exit.Exit<A, E> | undefined>
  /** Ends it as SIGKILL does: from its next operation on nothing of it happens any more, no finalizer either. */
  readonly kill: Effect.Effect<void>
  readonly killUnsafe: () => void
  /** Lets it stand still that long, timers included, while everything else goes on: a laptop's lid, a debugger, a long collection of garbage. */
  readonly pause: (duration: Duration.Input) => Effect.Effect<void>
}

export class Simulator extends Context.Service<
  Simulator,
  {
    readonly seed: number
    /** True with the probability; false where the run is to be plain. Label: letters, digits, points and dashes. */
    readonly chanceUnsafe: (label: string, probability: number) => boolean
    /** A number from 0 to below `below`; 0 where the run is to be plain. */
    readonly pickUnsafe: (label: string, below: number) => number
    /** Says that it came to this. */
    readonly markUnsafe: (name: string) => void
    /** Milliseconds since the start that nobody can set. */
    readonly monotonicMillisUnsafe: () => number
    /** Calls it after so many milliseconds, unless this process is dead by then, and not while it is paused. */
    readonly laterUnsafe: (millis: number, run: () => void) => void
    /** Moves what the wall clock shows, and no timer. */
    readonly shiftClockUnsafe: (byMillis: number) => void
    readonly start: <A, E, R>(
      program: Effect.Effect<A, E, R>
    ) => Effect.Effect<Process<A, E>, never, Exclude<R, Simulator>>
  }
>()("shiftboss/testing/Simulator") {}
