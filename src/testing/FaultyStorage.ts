/**
 * A storage that goes wrong where a test says so: it fails, delays, hangs, tears or crashes at the n-th operation.
 */
import { Context, Deferred, type Duration, Effect, type Exit, Fiber, Schema, Stream } from "effect"
import { Storage } from "shiftboss"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/**
 * What is counted. Appends that wait for each other are one flush, and count once; `read` is a reading of any kind, by a
 * replay too. `outside` is what the program marked as such. Renewals of a lease are not counted.
 */
export type Operation = "open" | "append" | "replace" | "read" | "list" | "remove" | "release" | "outside"

/** What goes wrong. */
export type Wrong =
  /** It does nothing and fails. */
  | "fail"
  /** It is done, and fails nevertheless: a reply that was lost. */
  | "fail-after"
  /** It does nothing and never answers. */
  | "hang"
  /** It is done, and never answers. */
  | "hang-after"
  /** The process ends before it. */
  | "crash"
  /** The process ends after it, before it is acknowledged. */
  | "crash-after"
  /** The process ends in the middle of an append, of which half reaches the store, cut inside a line. */
  | "tear"
  /** It is done, that much later. */
  | { readonly delay: Duration.Input }

export interface Fault {
  /** Default: operations of all kinds are counted together. */
  readonly on?: Operation | undefined
  /** At which of them, counted from 1. */
  readonly at: number
  readonly wrong: Wrong
}

/** What a fault makes an operation fail with; the `cause` of the StorageError the program sees. */
export class Injected extends Schema.TaggedError<Injected>()("Injected", {
  operation: Schema.String,
  at: Schema.Number
}) {
  override get message(): string {
    return `the test let the ${this.operation} fail, operation ${this.at}`
  }
}

/** One process's life over a store. */
export interface FaultyStorage {
  readonly storage: Storage.Storage["Service"]
  /** How many operations there have been so far. */
  readonly operations: Effect.Effect<number>
  /** Those operations, in order. */
  readonly history: Effect.Effect<ReadonlyArray<Operation>>
  /**
   * Runs the program with this storage until it ends, or until a fault ends the process: then the answer is `undefined`, and
   * nothing the program did afterwards, its finalizers included, has reached the store or come `outside`.
   */
  readonly run: <A, E, R>(
    program: Effect.Effect<A, E, R>
  ) => Effect.Effect<Exit.Exit<A, E> | undefined, never, Exclude<R, Storage.Storage>>
  /** The next process's life over the same store, in which all holders before it are proven dead. */
  readonly restart: (faults?: ReadonlyArray<Fault>) => FaultyStorage
}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * A storage over the store, or over one in memory, with these faults. The options are those of `Storage.fromEncoded`.
 *
 * ```ts
 * const first = FaultyStorage.make([{ on: "append", at: 3, wrong: "crash-after" }])
 * const ended = yield* first.run(program) // undefined: it crashed at its third append
 * yield* first.restart().run(program)
 * ```
 */
export const make = (
  faults: ReadonlyArray<Fault> = [],
  store: Storage.Encoded = Storage.makeMemory(),
  options: Storage.EncodedOptions = {}
): FaultyStorage => {
  const life = new Life(faults)
  const alive = () => Effect.succeed(false)
  const storage = Storage.fromEncoded(faulty(life, store), { alive, ...options })
  return {
    storage,
    operations: Effect.sync(() => life.history.length),
    history: Effect.sync(() => [...life.history]),
    run: (program) =>
      life.run(program.pipe(Effect.provideService(Storage.Storage, storage), Effect.provideService(CurrentLife, life))),
    restart: (faults) => make(faults, store, options)
  }
}

/**
 * Marks what a program does to the world outside the store, such as a commit or a call to an agent: an operation like those
 * on the store, at which a fault can be. A process that has crashed does it no more, and one under way is interrupted.
 * Without a `FaultyStorage` that runs the program it is just the effect.
 */
export const outside = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Injected, R> =>
  Effect.flatMap(CurrentLife, (life) => (life === undefined ? effect : life.guard("outside", life.whileAlive(effect))))

// -----------------------------------------------------------------------------
// internal
// -----------------------------------------------------------------------------

class Life {
  readonly history: Array<Operation> = []
  isDead = false
  private readonly faults: ReadonlyArray<Fault>
  private readonly counts = new Map<Operation, number>()
  private readonly crashed = Deferred.makeUnsafe<void>()
  /** Done once the program is being interrupted: what hangs in a dead process must not keep its finalizers. */
  private readonly buried = Deferred.makeUnsafe<never>()

  constructor(faults: ReadonlyArray<Fault>) {
    this.faults = faults
  }

  /** What goes wrong with the operation that begins now. */
  next(operation: Operation): Wrong | undefined {
    const count = (this.counts.get(operation) ?? 0) + 1
    this.counts.set(operation, count)
    this.history.push(operation)
    const isDue = ({ on, at }: Fault) =>
      at === (on === undefined ? this.history.length : count) && (on === undefined || on === operation)
    return this.faults.find(isDue)?.wrong
  }

  /** Does it, unless this process is dead. */
  unlessDead<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => (this.isDead ? Deferred.await(this.buried) : effect))
  }

  /** Does it as far as this process lives: one that is cut off in the middle is interrupted. */
  whileAlive<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.raceFirst(effect, Deferred.await(this.buried))
  }

  /** Does it, or what goes wrong with it. */
  guard<A, E, R>(operation: Operation, effect: Effect.Effect<A, E, R>, torn = Effect.asVoid(effect)) {
    const attempt = Effect.suspend((): Effect.Effect<A, E | Injected, R> => {
      const wrong = this.next(operation)
      if (wrong === undefined) return effect
      const failure = Effect.fail(new Injected({ operation, at: this.history.length }))
      if (typeof wrong === "object") return Effect.delay(effect, wrong.delay)
      switch (wrong) {
        case "fail":
          return failure
        case "fail-after":
          return Effect.andThen(effect, failure)
        case "hang":
          return Deferred.await(this.buried)
        case "hang-after":
          return Effect.andThen(effect, Deferred.await(this.buried))
        case "crash":
          return this.crash
        case "crash-after":
          return Effect.andThen(effect, this.crash)
        case "tear":
          return Effect.andThen(torn, this.crash)
      }
    })
    return this.unlessDead(attempt)
  }

  private readonly crash = Effect.suspend(() => {
    this.isDead = true
    return Effect.andThen(Deferred.succeed(this.crashed, undefined), Deferred.await(this.buried))
  })

  run<A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<Exit.Exit<A, E> | undefined, never, R> {
    return Effect.gen({ self: this }, function* () {
      const fiber = yield* Effect.forkChild(program)
      const exit = yield* Effect.raceFirst(Fiber.await(fiber), Effect.as(Deferred.await(this.crashed), undefined))
      if (exit !== undefined) return exit
      fiber.interruptUnsafe()
      yield* Deferred.die(this.buried, "this process has crashed")
      yield* Fiber.await(fiber)
      return undefined
    })
  }
}

/** The process that a program lives in. */
const CurrentLife = Context.Reference<Life | undefined>("shiftboss/testing/CurrentLife", {
  defaultValue: () => undefined
})

/** Half of the lines, and half of the one after them with what a store says of a line that was cut off. */
const half = (lines: ReadonlyArray<string>): ReadonlyArray<string> => {
  const whole = lines.length >> 1
  const cut = lines[whole] ?? ""
  return [...lines.slice(0, whole), `${cut.slice(0, cut.length >> 1)}\0`]
}

const faulty = (life: Life, store: Storage.Encoded): Storage.Encoded => ({
  acquire: (log, holder, options) => life.guard("open", store.acquire(log, holder, options)),
  renew: (log, epoch, now) => life.unlessDead(store.renew(log, epoch, now)),
  // One who is dead has nothing to say about it: a failed release would be logged.
  release: (log, epoch) =>
    Effect.suspend(() => (life.isDead ? Effect.void : life.guard("release", store.release(log, epoch)))),
  append: (log, epoch, standing, lines) =>
    // A new log appears with its header and first entries or not at all: there is nothing yet to tear.
    life.guard(
      "append",
      store.append(log, epoch, standing, lines),
      standing === 0 ? Effect.void : Effect.asVoid(store.append(log, epoch, standing, half(lines)))
    ),
  replace: (log, epoch, lines) => life.guard("replace", store.replace(log, epoch, lines), Effect.void),
  lines: (log) =>
    Stream.unwrap(
      life.guard(
        "read",
        Effect.sync(() => store.lines(log))
      )
    ),
  names: Stream.unwrap(
    life.guard(
      "list",
      Effect.sync(() => store.names)
    )
  ),
  remove: (log, epoch) => life.guard("remove", store.remove(log, epoch), Effect.void)
})
