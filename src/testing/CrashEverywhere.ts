/**
 * Runs a program again and again, and ends its process at another point each time: before and after every operation on the
 * store and everything marked `FaultyStorage.outside`, and in the middle of every append. Then it is started again on what
 * survived, and a check says whether all is well.
 */
import { Cause, Effect, type Exit, Layer, References, Schema } from "effect"
import type { Storage } from "shiftboss"
import * as FaultyStorage from "./FaultyStorage.ts"
import * as WallClock from "./WallClock.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What is run once for each point: made anew for each, together with the world it works on. */
export interface Trial<A, E, R = never, RCheck = never> {
  /** One process's life. Has to do the same in the same situation, or a point may not be met again. */
  readonly program: Effect.Effect<A, E, R>
  /** Called once a life has ended by itself; fails or dies when something was lost or done twice. */
  readonly check: (ended: Ended<A, E>) => Effect.Effect<void, unknown, RCheck>
}

/** How it ended. */
export interface Ended<A, E> {
  /** How the program ended in its last life. */
  readonly exit: Exit.Exit<A, E>
  /** The store as it is then. */
  readonly storage: Storage.Storage["Service"]
  /** How many processes it took, the first included. */
  readonly lives: number
}

/** Where the process ended: at which operation, counted from 1 in that life. */
export const Point = Schema.Struct({
  at: Schema.Number,
  wrong: Schema.Literals(["crash", "crash-after", "tear"])
})
export type Point = typeof Point.Type

export interface Options {
  /**
   * How many crashes there may be before a life that ends by itself: with 2, the restart crashes at each of its own points
   * too. Each one more multiplies the time it takes. Default: 1.
   */
  readonly inARow?: number | undefined
  /** Only these crashes, one a life: what a failure names. The program's logs are then shown. Default: all there are. */
  readonly only?: ReadonlyArray<Point> | undefined
}

/** What was tried. */
export interface Report {
  /** Points of the first life at which the process was ended. */
  readonly points: number
  /** How often a program was run to its end, with a crash at one point or more. */
  readonly trials: number
}

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

/** The check did not hold after these crashes, or after none. */
export class NotSurvived extends Schema.TaggedError<NotSurvived>()("NotSurvived", {
  crashes: Schema.Array(Point),
  /** What the last of them hit, such as "append"; nothing when there was no crash. */
  operation: Schema.NullOr(Schema.String),
  cause: Schema.Defect()
}) {
  override get message(): string {
    // An assertion that comes back from a schema is a plain object, and some have no prototype to make a string of.
    const { cause } = this
    const found = cause instanceof Error ? cause.message : typeof cause === "string" ? cause : JSON.stringify(cause)
    if (this.operation === null) return `the check does not hold even without a crash: ${found}`
    const places = this.crashes.map(described).join(", and its successor ")
    return (
      `the check does not hold when the process ends ${places} (there: ${this.operation}): ${found}\n` +
      `To run only this, give crashEverywhere the options { only: ${JSON.stringify(this.crashes)} }.`
    )
  }
}

/** A point was not met again: the program does not do the same in the same situation, or `only` names none. */
export class PointNotMet extends Schema.TaggedError<PointNotMet>()("PointNotMet", {
  crashes: Schema.Array(Point)
}) {
  override get message(): string {
    return (
      `no process ended ${this.crashes.map(described).join(", and its successor ")}: that operation was not reached. ` +
      `A program under crashEverywhere has to do the same each time: take time from Clock, chance from Random, ` +
      `and make the world it works on anew in each trial.`
    )
  }
}

/** There was no point at which to crash, so nothing was tried. */
export class NothingTried extends Schema.TaggedError<NothingTried>()("NothingTried", {}) {
  override get message(): string {
    return "the program does nothing with its Storage and nothing outside, so that it crashed nowhere: let it use the Storage it is given."
  }
}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * Crashes everywhere, on logs in memory and in virtual time that passes by itself (see `WallClock.passWhile`).
 *
 * ```ts
 * const trial = Effect.sync(() => {
 *   const edits = new Set<string>() // the world outside the store: it survives the process
 *   return {
 *     program: Effect.provide(Dispatcher.run(workload(edits)), Dispatcher.layer),
 *     check: ({ exit }) => Effect.sync(() => assert.deepStrictEqual([...edits], ["001"]))
 *   }
 * })
 * const { points } = yield* CrashEverywhere.crashEverywhere(trial)
 * ```
 *
 * After the end of a process nothing its fibers still do reaches the store, nor does anything marked as outside happen.
 */
export const crashEverywhere = Effect.fn("crashEverywhere")(function* <A, E, R, RCheck, ETrial, RTrial>(
  trial: Effect.Effect<Trial<A, E, R, RCheck>, ETrial, RTrial>,
  options: Options = {}
) {
  const inARow = options.inARow ?? 1
  const { only } = options
  if (only !== undefined) {
    yield* survive(trial, only, true)
    return { points: Math.min(only.length, 1), trials: 1 } satisfies Report
  }
  const whole = yield* survive(trial, [])
  const points = whole.flatMap(pointsOf)
  if (points.length === 0) return yield* new NothingTried()
  let paths: ReadonlyArray<ReadonlyArray<Point>> = points.map((point) => [point])
  let trials = 0
  for (let crashes = 1; crashes <= inARow; crashes++) {
    const longer: Array<ReadonlyArray<Point>> = []
    for (const path of paths) {
      const restarted = yield* survive(trial, path)
      trials++
      if (crashes < inARow) longer.push(...restarted.flatMap(pointsOf).map((point) => [...path, point]))
    }
    paths = longer
  }
  return { points: points.length, trials } satisfies Report
})

// -----------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------

const described = ({ at, wrong }: Point): string => {
  const place = { crash: "before", "crash-after": "after", tear: "in the middle of" }[wrong]
  return `${place} operation ${at}`
}

/** Reading changes nothing: after it is as before the next. */
const changesNothing: ReadonlySet<FaultyStorage.Operation> = new Set(["read", "list"])

const pointsOf = (operation: FaultyStorage.Operation, index: number): ReadonlyArray<Point> => {
  const at = index + 1
  const before: Point = { at, wrong: "crash" }
  if (changesNothing.has(operation)) return [before]
  const after: Point = { at, wrong: "crash-after" }
  return operation === "append" ? [before, { at, wrong: "tear" }, after] : [before, after]
}

/** One trial with these crashes, one a life, and what the last life did. */
const survive = Effect.fnUntraced(function* <A, E, R, RCheck, ETrial, RTrial>(
  trial: Effect.Effect<Trial<A, E, R, RCheck>, ETrial, RTrial>,
  crashes: ReadonlyArray<Point>,
  showLogs = false
) {
  const { program, check } = yield* trial
  const clock = yield* WallClock.make()
  // A process has no layers yet when it begins.
  const begun = Effect.suspend(() => Effect.provideService(program, Layer.CurrentMemoMap, Layer.makeMemoMapUnsafe()))
  const life = showLogs ? begun : Effect.provideService(begun, References.MinimumLogLevel, "None")
  // One process at a time: nobody else asks this one to stop, or takes its logs over.
  let process = FaultyStorage.make(crashes.slice(0, 1), undefined, { shared: false })
  let hit: FaultyStorage.Operation | undefined
  for (const [index] of crashes.entries()) {
    if ((yield* clock.passWhile(process.run(life))) !== undefined) {
      return yield* new PointNotMet({ crashes: crashes.slice(0, index + 1) })
    }
    hit = (yield* process.history)[crashes[index]!.at - 1]
    process = process.restart(crashes.slice(index + 1, index + 2))
  }
  const exit = yield* clock.passWhile(process.run(life))
  if (exit === undefined) return yield* Effect.die("a process crashed for which no fault was left")
  const history = yield* process.history
  yield* Effect.catchCause(check({ exit, storage: process.restart().storage, lives: crashes.length + 1 }), (cause) =>
    Effect.fail(new NotSurvived({ crashes, operation: hit ?? null, cause: Cause.squash(cause) }))
  )
  return history
})
