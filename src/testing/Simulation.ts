/**
 * Runs whole programs in a machine of which one seed decides everything: which fiber goes on, where it is pre-empted, when
 * time passes, and what goes wrong. Weeks of a program take milliseconds, a seed that fails fails again, and is shrunk to the
 * few decisions that matter.
 *
 * It is Effect's own runtime over another `Scheduler`, `Clock` and `Random`. A program may use any fibers, layers and
 * streams, but has to take time and chance from Effect, and may not wait for anything outside.
 */
import { Cause, Duration, Effect, Exit, References } from "effect"
import { parseTape, printTape, type Tape } from "./internal/simulation/decisions.ts"
import { shrink } from "./internal/simulation/shrink.ts"
import { type Conditions, type Problem, type Ran, simulate } from "./internal/simulation/simulate.ts"
import { type Process, Simulator } from "./internal/simulation/simulator.ts"
import { Falsified, InvalidReplay, NeverMarked, NotRepeatable } from "./SimulationError.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

export { type Problem, type Process, Simulator }

export interface Settings {
  /** Wall time at the start, in epoch milliseconds. Default: 2024-10-04T00:00Z, so that a clock can be set back. */
  readonly start?: number | undefined
  /** After so many turns of fibers the run is said never to end. Default: 1,000,000. */
  readonly mostSteps?: number | undefined
  /**
   * Whether the program uses promises that settle by themselves, such as those of an `async` function. The simulation then
   * has to be run by what waits for promises (`Effect.runPromise`; not `runSync`). Default: false.
   */
  readonly promises?: boolean | undefined
}

export interface Options extends Settings {
  /** The seeds to run, or how many from 1 on. Default: 100. */
  readonly seeds?: number | Iterable<number> | undefined
  /** What a failure printed: only this is run, and the program's logs are shown. */
  readonly replay?: string | undefined
  /** Marks that one seed or another has to come to, see `mark`. Default: none. */
  readonly sometimes?: ReadonlyArray<string> | undefined
  /** The most runs that are spent on making a failure short. Default: 500. */
  readonly shrinks?: number | undefined
}

/** One run. */
export interface Run<out A, out E> {
  readonly exit: Exit.Exit<A, E | Problem>
  readonly seed: number
  /** Its decisions, as `replay` takes them. */
  readonly replay: string
  /** How many of those there are. */
  readonly decisions: number
  /** Turns of fibers. */
  readonly steps: number
  /** How long it took, in its own time. */
  readonly millis: number
  /** Processes that were started, the program's own included. */
  readonly processes: number
  /** How often it came to each mark. */
  readonly marks: ReadonlyMap<string, number>
  /** Equal for two runs that did the same. */
  readonly trace: number
}

/** All runs of a check together. */
export interface Report {
  readonly seeds: number
  readonly steps: number
  readonly millis: number
  readonly processes: number
  /** How many seeds came to each mark. */
  readonly marks: ReadonlyMap<string, number>
}

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

export { Endless, Falsified, InvalidReplay, LeftRunning, NeverMarked, NotRepeatable, Stuck } from "./SimulationError.ts"

/** What a check can fail with. */
export type CheckError = Falsified | NotRepeatable | InvalidReplay | NeverMarked

// -----------------------------------------------------------------------------
// running
// -----------------------------------------------------------------------------

/** Runs the program once, by a seed or by what `replay` says. Invalid text is an `InvalidReplay`. */
export const run = Effect.fn("Simulation.run")(function* <A, E, R>(
  program: Effect.Effect<A, E, R>,
  replay: number | string,
  settings: Settings = {}
): Effect.fn.Return<Run<A, E>, InvalidReplay, Exclude<R, Simulator>> {
  return runOf(yield* simulate(program, { ...conditionsOf(settings), ...(yield* parsed(String(replay))) }))
})

/**
 * Runs the program by one seed after the other, and fails with the first under which it fails: when it ends with an error, or
 * a defect, or not at all, or with fibers left running. The failure says how to run just that again.
 *
 * ```ts
 * const program = Effect.gen(function* () {
 *   const seats = new Set<string>() // the world: made anew for each seed
 *   yield* Dispatcher.run(workload(seats))
 *   assert.strictEqual(seats.size, 0)
 * }).pipe(Effect.provide(layer))
 *
 * const report = Effect.runSync(Simulation.check(program, { seeds: 1000 }))
 * ```
 */
export const check = Effect.fn("Simulation.check")(function* <A, E, R>(
  program: Effect.Effect<A, E, R>,
  options: Options = {}
): Effect.fn.Return<Report, CheckError, Exclude<R, Simulator>> {
  const conditions = conditionsOf(options)
  const simulated = (seed: number, tape?: Tape) => quiet(simulate(program, { ...conditions, seed, tape }))
  const total = new Total()
  if (options.replay !== undefined) {
    const ran = runOf(yield* simulate(program, { ...conditions, ...(yield* parsed(options.replay)) }))
    if (Exit.isFailure(ran.exit)) return yield* falsified(ran, ran)
    return total.add(ran)
  }
  for (const seed of seedsOf(options.seeds ?? 100)) {
    const ran = runOf(yield* simulated(seed))
    // What depends on anything else than its seed cannot be replayed, and a failure of it would lead nowhere.
    const isFirst = total.seeds === 0
    if (isFirst && runOf(yield* simulated(seed)).trace !== ran.trace) return yield* new NotRepeatable({ seed })
    if (Exit.isFailure(ran.exit)) return yield* shortened(ran, simulated, options.shrinks ?? 500)
    total.add(ran)
  }
  if (total.seeds === 0) return yield* Effect.die(new RangeError("seeds names no seed, so that nothing was checked"))
  const marks = (options.sometimes ?? []).filter((mark) => !total.marks.has(mark))
  if (marks.length > 0) return yield* new NeverMarked({ marks, seeds: total.seeds })
  return total
})

// -----------------------------------------------------------------------------
// inside a simulation
// -----------------------------------------------------------------------------

/**
 * True with the probability, for what a program does to itself, such as a fault. In what a failure is shrunk to, most of them
 * are false. Labels are letters, digits, points and dashes; each has a chance of its own.
 */
export const chance = (label: string, probability: number): Effect.Effect<boolean, never, Simulator> =>
  Effect.map(Simulator, (simulator) => simulator.chanceUnsafe(label, probability))

/** A whole number from 0 to below `below`, each as likely. In what a failure is shrunk to, most of them are 0. */
export const pick = (label: string, below: number): Effect.Effect<number, never, Simulator> =>
  Effect.map(Simulator, (simulator) => simulator.pickUnsafe(label, below))

/** Says that the program came to this, for `Options.sometimes`: a check that never gets anywhere near a fault is worth nothing. */
export const mark = (name: string): Effect.Effect<void, never, Simulator> =>
  Effect.map(Simulator, (simulator) => simulator.markUnsafe(name))

/**
 * Starts a process: a program with layers, fibers and random numbers of its own, that can be killed and paused from outside.
 * What it shares with others is what it was given.
 */
export const start = <A, E, R>(
  program: Effect.Effect<A, E, R>
): Effect.Effect<Process<A, E>, never, Exclude<R, Simulator> | Simulator> =>
  Effect.flatMap(Simulator, (simulator) => simulator.start(program))

/** Moves what the wall clock shows, back with a negative duration. Timers do not notice. */
export const shiftClock = (by: Duration.Input): Effect.Effect<void, never, Simulator> =>
  Effect.map(Simulator, (simulator) => simulator.shiftClockUnsafe(Duration.toMillis(by)))

// -----------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------

const defaultStart = 20_000 * 24 * 3_600_000

const conditionsOf = (settings: Settings): Conditions => {
  const { start = defaultStart, mostSteps = 1_000_000, promises = false } = settings
  if (!Number.isSafeInteger(start))
    throw new RangeError(`start has to be a time in epoch milliseconds, but is ${start}`)
  if (!(mostSteps > 0)) throw new RangeError(`mostSteps has to be above zero, but is ${mostSteps}`)
  return { seed: 0, tape: undefined, start, mostSteps, promises }
}

const seedsOf = (seeds: number | Iterable<number>): Iterable<number> =>
  typeof seeds === "number" ? Array.from({ length: seeds }, (_, index) => index + 1) : seeds

/** A seed alone draws everything; with a tape behind a colon what it does not say is plain. */
const parsed = (replay: string): Effect.Effect<Pick<Conditions, "seed" | "tape">, InvalidReplay> => {
  const match = /^(\d+)(?::(.*))?$/.exec(replay)
  const tape = match?.[2] === undefined ? undefined : parseTape(match[2])
  if (match === null || (match[2] !== undefined && tape === undefined))
    return Effect.fail(new InvalidReplay({ replay }))
  return Effect.succeed({ seed: Number(match[1]), tape })
}

/** A seed that fails would fill the screen with what it logs, again for each run that makes it shorter. */
const quiet = Effect.provideService(References.MinimumLogLevel, "None")

const runOf = <A, E>({ exit, machine, marks }: Ran<A, E>): Run<A, E> & { readonly tape: Tape } => {
  const { made, seed, trace } = machine.decisions
  return {
    exit,
    seed,
    tape: made,
    get replay() {
      return `${seed}: ${printTape(made)}`.trim()
    },
    decisions: made.length,
    steps: machine.steps,
    millis: machine.monotonicMillis,
    processes: machine.processes.length,
    marks,
    trace
  }
}

class Total implements Report {
  seeds = 0
  steps = 0
  millis = 0
  processes = 0
  readonly marks = new Map<string, number>()

  add(run: Run<unknown, unknown>): this {
    this.seeds++
    this.steps += run.steps
    this.millis += run.millis
    this.processes += run.processes
    for (const mark of run.marks.keys()) this.marks.set(mark, (this.marks.get(mark) ?? 0) + 1)
    return this
  }
}

const falsified = (found: Run<unknown, unknown>, shortest: Run<unknown, unknown>) =>
  new Falsified({
    seed: found.seed,
    replay: shortest.replay,
    decisions: { made: found.decisions, left: shortest.decisions },
    cause: Exit.isFailure(shortest.exit) ? Cause.squash(shortest.exit.cause) : undefined
  })

/** Of one kind, or making a race short could end with a program that merely never ends. */
const kindOf = (exit: Exit.Exit<unknown, unknown>): string => {
  const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  if (typeof error !== "object" || error === null) return typeof error
  return "_tag" in error ? String(error._tag) : error.constructor.name
}

const shortened = Effect.fnUntraced(function* <A, E, R>(
  found: ReturnType<typeof runOf<A, E>>,
  simulated: (seed: number, tape: Tape) => Effect.Effect<Ran<A, E>, never, R>,
  runs: number
) {
  let shortest: ReturnType<typeof runOf<A, E>> | undefined
  const fails = (tape: Tape) =>
    Effect.map(simulated(found.seed, tape), (ran) => {
      const run = runOf(ran)
      if (Exit.isSuccess(run.exit) || kindOf(run.exit) !== kindOf(found.exit)) return false
      shortest = run
      return true
    })
  if (!(yield* fails(found.tape))) return yield* new NotRepeatable({ seed: found.seed })
  yield* shrink(found.tape, fails, runs)
  return yield* falsified(found, shortest ?? found)
})
