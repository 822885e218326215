/**
 * One run of a program in a machine of its own.
 */
import { Context, Deferred, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { Endless, LeftRunning, Stuck } from "../../SimulationError.ts"
import type { Tape } from "./decisions.ts"
import { Machine, type Process as MachineProcess } from "./machine.ts"
import { type Process, Simulator } from "./simulator.ts"

/** What keeps a run from coming to an end of its own, or spoils that. */
export type Problem = Stuck | Endless | LeftRunning

export interface Conditions {
  readonly seed: number
  /** With a tape what it does not say is plain; without one everything is drawn. */
  readonly tape: Tape | undefined
  readonly start: number
  readonly mostSteps: number
  readonly promises: boolean
}

export interface Ran<A, E> {
  readonly exit: Exit.Exit<A, E | Problem>
  readonly machine: Machine
  readonly marks: ReadonlyMap<string, number>
}

/** What the processes of one run share. */
interface World {
  readonly machine: Machine
  readonly marks: Map<string, number>
  /** Fibers that outlived their process. */
  readonly left: Array<string>
}

export const simulate = Effect.fnUntraced(function* <A, E, R>(
  program: Effect.Effect<A, E, R>,
  conditions: Conditions
): Effect.fn.Return<Ran<A, E>, never, Exclude<R, Simulator>> {
  const machine = new Machine(conditions.seed, conditions.start, conditions.tape)
  const world: World = { machine, marks: new Map(), left: [] }
  const { fiber } = yield* launch(world, program)
  const isOver = () => fiber.pollUnsafe() !== undefined
  const problem = yield* drive(machine, isOver, conditions)
  const exit = fiber.pollUnsafe()
  if (exit === undefined) return { exit: Exit.fail(problem ?? stuck(machine, conditions)), machine, marks: world.marks }
  const fibers = [...world.left, ...machine.processes.flatMap((process) => process.alive())]
  const spoiled = Exit.isSuccess(exit) && fibers.length > 0
  return { exit: spoiled ? Exit.fail(new LeftRunning({ fibers })) : exit, machine, marks: world.marks }
})

const stuck = (machine: Machine, { promises }: Conditions) => new Stuck({ millis: machine.monotonicMillis, promises })

// -----------------------------------------------------------------------------
// driving
// -----------------------------------------------------------------------------

const drive = Effect.fnUntraced(function* (machine: Machine, isOver: () => boolean, conditions: Conditions) {
  const { mostSteps, promises } = conditions
  const runAll = () => {
    while (machine.steps < mostSteps && machine.step()) continue
  }
  for (;;) {
    runAll()
    if (machine.steps >= mostSteps) return new Endless({ steps: machine.steps, millis: machine.monotonicMillis })
    // What promises do happens here and only here, all of it, and in the order in which they were settled: the runtime below
    // goes on in another turn of the event loop.
    if (promises) yield* Effect.yieldNow
    if (machine.ready.length > 0) continue
    machine.rest()
    if (isOver()) return undefined
    if (!machine.wake()) return stuck(machine, conditions)
  }
})

// -----------------------------------------------------------------------------
// processes
// -----------------------------------------------------------------------------

interface Launched<A, E> {
  readonly process: MachineProcess
  readonly fiber: Fiber.Fiber<A, E>
}

/** The first fiber of a new process: it begins when the machine lets it. */
const launch = Effect.fnUntraced(function* <A, E, R>(
  world: World,
  program: Effect.Effect<A, E, R>
): Effect.fn.Return<Launched<A, E>, never, Exclude<R, Simulator>> {
  const process = world.machine.start()
  const context: Context.Context<Simulator> = world.machine.contextOf(process).pipe(
    Context.add(Simulator, simulatorOf(world, process)),
    // A process has no layers yet when it begins.
    Context.add(Layer.CurrentMemoMap, Layer.makeMemoMapUnsafe())
  )
  const begin = Effect.suspend(() => {
    process.state = "running"
    return program
  })
  // By a fiber of its own, that changes its scheduler for a moment: `runSync` would lose sight of one that it runs itself.
  const forked = Effect.forkDetach(Effect.provideContext(Effect.forkDetach(begin), context), { startImmediately: true })
  return { process, fiber: yield* Effect.flatMap(forked, Fiber.join) }
})

const start = Effect.fnUntraced(function* <A, E, R>(
  world: World,
  parent: MachineProcess,
  program: Effect.Effect<A, E, R>
) {
  const { machine } = world
  const { process, fiber } = yield* launch(world, program)
  const ended = Deferred.makeUnsafe<Exit.Exit<A, E> | undefined>()
  /** In the parent's own time: waking it here would run it in the middle of what its child does. */
  const end = (exit: Exit.Exit<A, E> | undefined) =>
    machine.later(parent, 0, () => void Deferred.doneUnsafe(ended, Effect.succeed(exit)))
  fiber.addObserver((exit) => {
    if (process.state === "dead") return
    end(exit)
    machine.atRest(() => {
      world.left.push(...process.alive())
      process.kill()
    })
  })
  const kill = () => {
    if (process.state === "dead") return
    process.kill()
    end(undefined)
  }
  return {
    exit: Deferred.await(ended),
    kill: Effect.sync(kill),
    killUnsafe: kill,
    pause: (duration) => Effect.sync(() => process.pause(Duration.toMillis(duration), parent))
  } satisfies Process<A, E>
})

const simulatorOf = (world: World, process: MachineProcess): Simulator["Service"] => {
  const { machine, marks } = world
  return Simulator.of({
    seed: machine.decisions.seed,
    // What cannot happen is no decision: a tape must not make it happen.
    chanceUnsafe: (label, probability) =>
      probability > 0 &&
      machine.decisions.decide(label, 2, (chance) => (chance.fraction() < probability ? 1 : 0)) === 1,
    pickUnsafe: (label, below) => machine.decisions.decide(label, below, (chance) => chance.below(below)),
    markUnsafe: (name) => void marks.set(name, (marks.get(name) ?? 0) + 1),
    monotonicMillisUnsafe: () => machine.monotonicMillis,
    laterUnsafe: (millis, run) => void machine.later(process, millis, run),
    shiftClockUnsafe: (byMillis) => void (machine.wallOffset += byMillis),
    start: (program) => start(world, process, program)
  })
}
