/**
 * A clock whose wall time and monotonic time move separately, as those of a real machine do: it is suspended, its clock is
 * set, or time just passes. Sleepers wake by monotonic time; what a program reads as the date is wall time.
 *
 * `TestClock` has one time for both, so a timer that oversleeps and a clock that is set back cannot be shown with it.
 */
import { Clock, Context, Duration, Effect, Fiber, Latch, Layer, Scheduler, Semaphore } from "effect"
import { addTimer } from "./internal/timers.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

export interface Options {
  /** Wall time at the start, in epoch milliseconds. Default: 2024-10-04T00:00Z, so that a clock can be set back. */
  readonly start?: number | undefined
  /**
   * So many turns of the scheduler with something left to run after each, and the program is said never to come to rest.
   * Default: 1,000,000, which takes some seconds.
   */
  readonly mostTurns?: number | undefined
}

export interface WallClock extends Clock.Clock {
  /**
   * Time passes, wall and monotonic together. Whatever sleeps until then wakes, in order and at its time, and everything that
   * can run has run when it ends.
   */
  readonly pass: (duration: Duration.Input) => Effect.Effect<void>
  /**
   * The machine sleeps that long: wall time moves on, monotonic time and timers stand still. A timer is late by all of it.
   */
  readonly suspend: (duration: Duration.Input) => Effect.Effect<void>
  /**
   * Sets the wall clock to a time in epoch milliseconds, before or after what it shows, as a person or a time server does.
   * Timers do not notice.
   */
  readonly set: (time: number) => Effect.Effect<void>
  /**
   * Runs the effect under this clock, and lets time pass to the next timer whenever nothing else can run: hours of waiting
   * take no real time, and each timer fires exactly at its time.
   *
   * *Gotcha*: an answer from outside the program, from a disk or a child process, does not hold the time back: a time-out
   * around it fires first. And time is in one hand: `pass` called by the program itself would wait for ever.
   */
  readonly passWhile: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Puts a program under this clock, for tests that move it by hand. */
  readonly layer: Layer.Layer<never>
}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * A clock that stands still until it is told otherwise.
 *
 * ```ts
 * const clock = yield* WallClock.make()
 * const fiber = yield* Effect.forkChild(nightly.pipe(Effect.provide(clock.layer)))
 * yield* clock.pass("2 hours")
 * yield* clock.suspend("8 hours") // the lid is closed
 * yield* clock.set((yield* clock.currentTimeMillis) - 3_600_000) // the end of daylight saving, done wrong
 * ```
 */
export const make = (options: Options = {}): Effect.Effect<WallClock> =>
  Effect.map(Scheduler.Scheduler, (scheduler) =>
    makeUnder(options.start ?? defaultStart, countTasks(scheduler, options.mostTurns ?? 1_000_000))
  )

// -----------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------

const defaultStart = 20_000 * 24 * 3_600_000

interface Timer {
  /** In monotonic milliseconds. */
  readonly due: number
  readonly latch: Latch.Latch
}

const makeUnder = (start: number, tasks: ReturnType<typeof countTasks>): WallClock => {
  let monotonicMillis = 0
  let wallOffset = start
  const timers = new Timers()
  const one = Semaphore.makeUnsafe(1)

  /** Wakes the first timer, once everything that can run has run. */
  const wakeFirst = Effect.suspend(() => {
    const timer = timers.take()
    if (timer === undefined) return Effect.void
    monotonicMillis = Math.max(monotonicMillis, timer.due)
    timer.latch.openUnsafe()
    return tasks.rest
  })

  const pass = Effect.fnUntraced(function* (duration: Duration.Input) {
    yield* tasks.rest
    const end = monotonicMillis + millisOf("pass", duration)
    while (timers.next <= end) yield* wakeFirst
    monotonicMillis = Math.max(monotonicMillis, end)
  }, one.withPermit)

  const sleep = (duration: Duration.Duration): Effect.Effect<void> => {
    const millis = Duration.toMillis(duration)
    if (!(millis > 0)) return Effect.yieldNow
    const begin = Effect.sync(() => timers.add({ due: monotonicMillis + millis, latch: Latch.makeUnsafe() }))
    return Effect.acquireUseRelease(
      begin,
      (timer) => timer.latch.await,
      (timer) => Effect.sync(() => timers.remove(timer))
    )
  }

  const passToNext = Effect.gen(function* () {
    yield* tasks.rest
    // Nothing sleeps: only an answer from outside can bring this program on, or a timer that then begins.
    if (timers.next === Infinity) yield* timers.added
    else yield* wakeFirst
  })

  const passWhile = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
    const fiber = yield* Effect.forkChild(Effect.provide(effect, layer))
    yield* Effect.raceFirst(Fiber.await(fiber), one.withPermit(Effect.forever(passToNext)))
    return yield* Fiber.join(fiber)
  })

  const wallMillis = () => monotonicMillis + wallOffset
  const clock: WallClock = {
    currentTimeMillisUnsafe: wallMillis,
    currentTimeMillis: Effect.sync(wallMillis),
    currentTimeNanosUnsafe: () => nanosOf(wallMillis()),
    currentTimeNanos: Effect.sync(() => nanosOf(wallMillis())),
    monotonicTimeNanosUnsafe: () => nanosOf(monotonicMillis),
    monotonicTimeNanos: Effect.sync(() => nanosOf(monotonicMillis)),
    sleep,
    pass,
    passWhile,
    suspend: (duration) => Effect.sync(() => void (wallOffset += millisOf("suspend", duration))),
    set: (time) => Effect.sync(() => void (wallOffset = time - monotonicMillis)),
    get layer() {
      return layer
    }
  }
  const layer = Layer.succeedContext(
    Context.make(Clock.Clock, clock).pipe(Context.add(Scheduler.Scheduler, tasks.scheduler))
  )
  return clock
}

const nanosOf = (millis: number): bigint => BigInt(Math.round(millis * 1_000_000))

const millisOf = (operation: string, duration: Duration.Input): number => {
  const millis = Duration.toMillis(duration)
  if (Number.isFinite(millis) && millis >= 0) return millis
  throw new RangeError(`${operation} takes a finite duration of at least 0, but was given ${millis} ms`)
}

/** Timers by when they are due; those due at the same time in the order they began. */
class Timers {
  private readonly timers: Array<Timer> = []
  private readonly latch = Latch.makeUnsafe(false)

  get next(): number {
    return this.timers[0]?.due ?? Infinity
  }

  add(timer: Timer): Timer {
    addTimer(this.timers, timer)
    this.latch.openUnsafe()
    return timer
  }

  take(): Timer | undefined {
    return this.timers.shift()
  }

  remove(timer: Timer): void {
    const at = this.timers.indexOf(timer)
    if (at !== -1) this.timers.splice(at, 1)
  }

  /** Succeeds with the next timer that begins. */
  readonly added = Effect.suspend(() => {
    this.latch.closeUnsafe()
    return this.latch.await
  })
}

/** A scheduler that knows how much is still to run on it. */
const countTasks = (outer: Scheduler.Scheduler, mostTurns: number) => {
  let pending = 0
  const scheduler: Scheduler.Scheduler = {
    executionMode: outer.executionMode,
    shouldYield: (fiber) => outer.shouldYield(fiber),
    makeDispatcher: () => {
      const dispatcher = outer.makeDispatcher()
      return {
        scheduleTask: (task, priority) => {
          pending++
          dispatcher.scheduleTask(() => {
            pending--
            task()
          }, priority)
        },
        flush: () => dispatcher.flush()
      }
    }
  }
  /**
   * Succeeds when nothing is left to run. Twice in a row, for a promise that is settled already goes on between two turns,
   * and no scheduler knows of it.
   */
  const rest = Effect.gen(function* () {
    let quiet = 0
    for (let turn = 0; quiet < 2; turn++) {
      if (turn === mostTurns) {
        return yield* Effect.die(new Error("the program never comes to rest: something in it repeats without a pause"))
      }
      yield* Effect.yieldNow
      quiet = pending === 0 ? quiet + 1 : 0
    }
  })
  return { scheduler, rest }
}
