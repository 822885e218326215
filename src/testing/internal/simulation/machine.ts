/**
 * A machine that runs fibers one task at a time, in an order that is decided, on a clock that moves only when nothing else
 * can run. Its processes can be killed and paused between any two operations.
 */
import { Clock, Context, Duration, Effect, type Fiber, Random, References, Scheduler } from "effect"
import { Chance, Decisions, type Tape } from "./decisions.ts"
import { addTimer } from "../timers.ts"

// -----------------------------------------------------------------------------
// order
// -----------------------------------------------------------------------------

/**
 * How a seed lets fibers take turns. One way alone misses what another finds: chance finds races of two steps, priorities
 * that change seldom find those that need one fiber to stand still for long (Burckhardt and others, "A randomized scheduler
 * with probabilistic guarantees of finding bugs", 2010), and some races only show when nothing is pre-empted.
 */
interface Manner {
  readonly order: "arrival" | "chance" | "priority"
  /** Pre-emptions by operation. */
  readonly preemptions: number
}

const mannerOf = (seed: number): Manner => {
  const chance = new Chance(seed, "manner")
  const orders = ["arrival", "chance", "chance", "priority"] as const
  const rates = [0, 1 / 500, 1 / 60, 1 / 10]
  return { order: orders[chance.below(4)] ?? "chance", preemptions: rates[chance.below(4)] ?? 0 }
}

interface Task {
  readonly run: () => void
  readonly priority: number
}

/** Tasks that run in the order of their priority and arrival, as a dispatcher promises. There is one for each fiber. */
class Lane implements Scheduler.SchedulerDispatcher {
  readonly process: Process
  readonly tasks: Array<Task> = []
  weight: number

  constructor(process: Process, weight: number) {
    this.process = process
    this.weight = weight
  }

  scheduleTask(run: () => void, priority: number): void {
    if (this.process.state === "dead") return
    let at = this.tasks.length
    while (at > 0 && this.tasks[at - 1]!.priority > priority) at--
    this.tasks.splice(at, 0, { run, priority })
    if (this.tasks.length === 1) this.process.enqueue(this)
  }

  /** Nothing runs before its turn. */
  flush(): void {}
}

/** Operations a fiber may do in one turn, as in Effect's own scheduler. */
const longestTurn = 2048
/** The first two operations after a resumption are the yield itself and its continuation: pre-empting those goes on for ever. */
const resumption = 2

// -----------------------------------------------------------------------------
// processes
// -----------------------------------------------------------------------------

interface Timer {
  /** In monotonic milliseconds. */
  readonly due: number
  readonly lane: Lane
  readonly run: () => void
}

export class Process implements Scheduler.Scheduler {
  readonly executionMode = "async" as const
  /** `new`: its first fiber is being made by a fiber of another process, which must not be pre-empted as one of this. */
  state: "new" | "running" | "paused" | "dead" = "new"
  readonly clock: Clock.Clock
  private readonly machine: Machine
  private readonly fibers = new Map<AnyFiber, Seen>()
  private pruneAt = 64
  private current: AnyFiber | undefined
  private seen: Seen = { label: "", operations: 0 }
  private frozen: Array<Lane> = []

  constructor(machine: Machine) {
    this.machine = machine
    this.clock = machine.clockOf(this)
  }

  shouldYield(fiber: AnyFiber): boolean {
    if (this.state !== "running") return this.state !== "new"
    if (fiber !== this.current) this.see(fiber)
    return this.machine.preempts(this.seen, fiber.currentOpCount)
  }

  makeDispatcher(): Lane {
    return new Lane(this, this.machine.weight())
  }

  enqueue(lane: Lane): void {
    if (this.state === "paused") this.frozen.push(lane)
    else if (this.state !== "dead") this.machine.ready.push(lane)
  }

  kill(): void {
    this.state = "dead"
    this.frozen = []
    this.fibers.clear()
    this.machine.drop(this, true)
  }

  pause(millis: number, waker: Process): void {
    if (this.state !== "running") return
    this.state = "paused"
    this.frozen = this.machine.drop(this, false)
    this.machine.later(waker, millis, () => {
      if (this.state !== "paused") return
      this.state = "running"
      this.machine.ready.push(...this.frozen)
      this.frozen = []
    })
  }

  /** Fibers that have not ended, by the names of what they run. */
  alive(): ReadonlyArray<string> {
    return [...this.fibers.keys()].filter(isAlive).map((fiber) => fiber.cache.stackFrame?.name ?? "a fiber")
  }

  private see(fiber: AnyFiber): void {
    const seen = this.fibers.get(fiber) ?? { label: this.machine.nextLabel(), operations: 0 }
    this.current = fiber
    this.seen = seen
    this.fibers.set(fiber, seen)
    if (this.fibers.size < this.pruneAt) return
    for (const other of this.fibers.keys()) if (!isAlive(other)) this.fibers.delete(other)
    this.pruneAt = 64 + 2 * this.fibers.size
  }
}

type AnyFiber = Fiber.Fiber<unknown, unknown>

/** A fiber that has run, with how much it did: that it is pre-empted there is told by its own doings, not by those of others. */
interface Seen {
  readonly label: string
  operations: number
}

const isAlive = (fiber: AnyFiber): boolean => fiber.pollUnsafe() === undefined

// -----------------------------------------------------------------------------
// machine
// -----------------------------------------------------------------------------

export class Machine {
  readonly decisions: Decisions
  ready: Array<Lane> = []
  readonly processes: Array<Process> = []
  /** Tasks run so far. */
  steps = 0
  monotonicMillis = 0
  /** What wall time is ahead of monotonic time. */
  wallOffset: number

  private readonly manner: Manner
  private readonly chance: Chance
  private timers: Array<Timer> = []
  private readonly resting: Array<() => void> = []
  private labels = 0
  private untilPreemption: number
  private lowest = 0

  constructor(seed: number, start: number, tape: Tape | undefined) {
    this.decisions = new Decisions(seed, tape)
    this.wallOffset = start
    this.manner = mannerOf(seed)
    this.chance = new Chance(seed, "machine")
    this.untilPreemption = this.nextPreemption()
  }

  start(): Process {
    const process = new Process(this)
    this.processes.push(process)
    return process
  }

  /** What fibers of the process run under, over what they had. */
  contextOf(process: Process): Context.Context<never> {
    const random = new Chance(this.decisions.seed, `random${this.processes.length}`)
    return Context.make(Scheduler.Scheduler, process as Scheduler.Scheduler).pipe(
      Context.add(Clock.Clock, process.clock),
      // What runs the simulation is no part of what a fiber in it is called after.
      Context.add(References.CurrentStackFrame, undefined),
      Context.add(Random.Random, {
        nextDoubleUnsafe: () => random.fraction(),
        nextIntUnsafe: () => Math.floor((random.fraction() - 0.5) * 2 * Number.MAX_SAFE_INTEGER)
      })
    )
  }

  // --- turns ---

  /** Runs one task. False when there is none. */
  step(): boolean {
    const lane = this.take()
    if (lane === undefined) return false
    const task = lane.tasks.shift()
    if (lane.tasks.length > 0) this.ready.push(lane)
    this.steps++
    task?.run()
    return true
  }

  /** Calls it when nothing more can run at this moment. */
  atRest(run: () => void): void {
    this.resting.push(run)
  }

  rest(): void {
    for (const run of this.resting.splice(0)) run()
  }

  /** Moves time to the next timer, and lets all that are due then run. False when nothing sleeps. */
  wake(): boolean {
    const first = this.timers[0]
    if (first === undefined) return false
    this.monotonicMillis = Math.max(this.monotonicMillis, first.due)
    this.decisions.note(this.monotonicMillis)
    let due = 0
    while (due < this.timers.length && this.timers[due]!.due <= this.monotonicMillis) due++
    for (const { lane, run } of this.timers.splice(0, due)) lane.scheduleTask(run, 0)
    return true
  }

  private take(): Lane | undefined {
    const { length } = this.ready
    if (length < 2) return this.ready.pop()
    return this.ready.splice(
      this.decisions.decide("order", length, () => this.drawn()),
      1
    )[0]
  }

  private drawn(): number {
    const { length } = this.ready
    if (this.manner.order === "arrival") return 0
    if (this.manner.order === "chance") return this.chance.below(length)
    let best = 0
    for (let at = 1; at < length; at++) if (this.ready[at]!.weight > this.ready[best]!.weight) best = at
    if (this.chance.below(50) === 0) this.ready[best]!.weight = --this.lowest
    return best
  }

  weight(): number {
    return this.manner.order === "priority" ? this.chance.fraction() : 0
  }

  /** Whether a fiber that has done so many operations in this turn gives way to others. */
  preempts(fiber: Seen, operationsOfTurn: number): boolean {
    if (operationsOfTurn <= resumption) return false
    if (operationsOfTurn >= longestTurn) return true
    const at = ++fiber.operations
    const taped = this.decisions.isTaped(fiber.label, at)
    if (taped === undefined ? --this.untilPreemption > 0 : !taped) return false
    this.untilPreemption = this.nextPreemption()
    this.decisions.found(fiber.label, at)
    return true
  }

  nextLabel(): string {
    return `preempt.${++this.labels}`
  }

  /** Geometric, so that each operation is as likely as the next. */
  private nextPreemption(): number {
    const { preemptions } = this.manner
    if (preemptions === 0) return Infinity
    return 1 + Math.floor(Math.log(1 - this.chance.fraction()) / Math.log(1 - preemptions))
  }

  // --- time ---

  later(process: Process, millis: number, run: () => void): Timer {
    const timer: Timer = { due: this.monotonicMillis + millis, lane: process.makeDispatcher(), run }
    addTimer(this.timers, timer)
    return timer
  }

  private cancel(timer: Timer): void {
    const at = this.timers.indexOf(timer)
    if (at >= 0) this.timers.splice(at, 1)
  }

  /** Takes what a process has ready away, and with `all` its timers too. */
  drop(process: Process, all: boolean): Array<Lane> {
    const dropped = this.ready.filter((lane) => lane.process === process)
    this.ready = this.ready.filter((lane) => lane.process !== process)
    if (all) this.timers = this.timers.filter(({ lane }) => lane.process !== process)
    return dropped
  }

  clockOf(process: Process): Clock.Clock {
    const wall = () => this.monotonicMillis + this.wallOffset
    const sleep = (duration: Duration.Duration): Effect.Effect<void> => {
      const millis = Duration.toMillis(duration)
      if (!(millis > 0)) return Effect.yieldNow
      if (millis === Infinity) return Effect.never
      return Effect.callback<void>((resume) => {
        const timer = this.later(process, millis, () => resume(Effect.void))
        return Effect.sync(() => this.cancel(timer))
      })
    }
    return {
      currentTimeMillisUnsafe: wall,
      currentTimeMillis: Effect.sync(wall),
      currentTimeNanosUnsafe: () => nanosOf(wall()),
      currentTimeNanos: Effect.sync(() => nanosOf(wall())),
      monotonicTimeNanosUnsafe: () => nanosOf(this.monotonicMillis),
      monotonicTimeNanos: Effect.sync(() => nanosOf(this.monotonicMillis)),
      sleep
    }
  }
}

const nanosOf = (millis: number): bigint => BigInt(Math.round(millis * 1_000_000))
