/**
 * The log of all turns of a policy, and the states it folds to.
 */
import { type Cause, Deferred, Effect, Exit, Fiber, Scope, Semaphore } from "effect"
import { type Log, type LogFenced, type OpenError, Storage, type StorageError } from "../../Storage.ts"
import type { Event, State } from "../../Turn.ts"
import { eventLog, readStates } from "./entries.ts"
import { evolve } from "./evolve.ts"
import { makeOrder } from "./order.ts"

export type JournalError = OpenError | StorageError | LogFenced

/**
 * The turns in a log that is open. Once a write has failed or the log was taken over, all that follow fail likewise: what
 * became of the turns since is only known to whoever opens the log again.
 */
export interface Journal {
  /** What is kept of the turn. */
  readonly state: (turnId: string) => Effect.Effect<State | undefined>
  /**
   * Adds events of one turn, all or none, and answers what they make of it. Appends of one turn take effect in the order
   * they were asked for, also when whoever asked is interrupted meanwhile.
   */
  readonly append: (...events: Events) => Effect.Effect<State, StorageError | LogFenced>
  /** As `append`, of events that depend on the state the turn is in by then. Once it has begun it is done, interrupted or not. */
  readonly appendTo: (
    turnId: string,
    events: (state: State | undefined) => Events
  ) => Effect.Effect<State, StorageError | LogFenced>
  /** Fails as soon as any write has failed. */
  readonly broken: Effect.Effect<never, StorageError | LogFenced>
}

type Events = readonly [Event, ...ReadonlyArray<Event>]

interface Session {
  readonly log: Log<Event>
  readonly scope: Scope.Closeable
  readonly states: Map<string, State>
  /** Appends take one permit each, a compaction all of them. */
  readonly permits: Semaphore.Semaphore
  /** Passed by each append, held by a compaction: it would wait for ever for a moment in which nothing is appended. */
  readonly entrance: Semaphore.Semaphore
  /** How many of the turns have ended. */
  ended: number
  /** Of the first write that failed: what is in the log is unknown until it is opened again. */
  failure: Cause.Cause<StorageError | LogFenced> | undefined
  readonly broken: Deferred.Deferred<never, StorageError | LogFenced>
  readonly onBroken: () => void
}

const allPermits = 1_000_000

export interface JournalOptions {
  readonly name: string
  /** At least so many ended turns are kept. */
  readonly keepTurns: number
  /** One that somebody is taking up again is kept as well: what it goes on from must not be gone when it does. */
  readonly isRunning: (turnId: string) => boolean
  /** Told what was found, each time the log is opened. */
  readonly onOpen: (states: Iterable<State>) => void
  /** Called when a write has failed. */
  readonly onBroken: () => void
}

/**
 * Opens the named log, or answers the journal that is open already. A failure is no failure for good: the next call tries
 * again.
 */
export const journalOpener = Effect.fnUntraced(function* (options: JournalOptions) {
  const { name, onBroken, onOpen } = options
  const own = yield* Effect.scope
  const opening = yield* Semaphore.make(1)
  const openSession = yield* sessionOpener(name, own, onBroken)
  let current: { readonly session: Session; readonly journal: Journal } | undefined

  return Effect.gen(function* () {
    if (current !== undefined && current.session.failure === undefined) return current.journal
    if (current !== undefined) yield* Scope.close(current.session.scope, Exit.void)
    current = undefined
    const session = yield* openSession
    onOpen(session.states.values())
    current = { session, journal: journalOf(session, options, own) }
    return current.journal
  }).pipe(opening.withPermit)
})

const journalOf = (session: Session, options: JournalOptions, own: Scope.Scope): Journal => {
  const inOrder = makeOrder()
  const appendTo: Journal["appendTo"] = (turnId, events) => {
    const adding = inOrder(turnId, add(session, options, turnId, events))
    // In a fiber of its own: an append that is cut off would leave the turn in a state that nobody knows.
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Effect.forkIn(adding, own), (fiber) => restore(Fiber.join(fiber)))
    )
  }
  return {
    state: (turnId) =>
      inOrder(
        turnId,
        // What a compaction is about to drop is not there any more.
        session.entrance.withPermit(Effect.sync(() => session.states.get(turnId)))
      ),
    append: (...events) => appendTo(events[0].turnId, () => events),
    appendTo,
    broken: Deferred.await(session.broken)
  }
}

const sessionOpener = Effect.fnUntraced(function* (name: string, own: Scope.Scope, onBroken: () => void) {
  const storage = yield* Storage
  return Effect.gen(function* () {
    const scope = yield* Scope.fork(own)
    const opened = Effect.gen(function* () {
      const log = eventLog(yield* storage.open(name))
      const states = yield* readStates(log)
      const session: Session = {
        ...{ log, scope, states, ended: endedOf(states).length, failure: undefined },
        ...{ permits: yield* Semaphore.make(allPermits), entrance: yield* Semaphore.make(1) },
        ...{ broken: yield* Deferred.make<never, StorageError | LogFenced>(), onBroken }
      }
      return session
    })
    return yield* opened.pipe(
      Scope.provide(scope),
      Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void))
    )
  })
})

const endedOf = (states: Map<string, State>) => [...states.values()].filter((state) => state.end !== null)

const write = (session: Session, entries: Effect.Effect<void, StorageError | LogFenced>) =>
  Effect.suspend(() => (session.failure === undefined ? entries : Effect.failCause(session.failure))).pipe(
    Effect.onExit((exit) => {
      if (Exit.isSuccess(exit) || session.failure !== undefined) return Effect.void
      session.failure = exit.cause
      session.onBroken()
      return Deferred.failCause(session.broken, exit.cause)
    })
  )

const add = Effect.fnUntraced(function* (
  session: Session,
  options: JournalOptions,
  turnId: string,
  eventsOf: (state: State | undefined) => Events
) {
  const { entrance, log, permits, states } = session
  yield* entrance.withPermit(Effect.void)
  const adding = Effect.suspend(() => {
    const before = states.get(turnId)
    const events = eventsOf(before)
    return Effect.onExit(write(session, log.append(events)), (exit) => {
      const after = Exit.isSuccess(exit) ? events.reduce(evolve, before) : undefined
      if (after === undefined) return Effect.void
      states.set(turnId, after)
      session.ended += Number(after.end !== null) - Number(before !== undefined && before.end !== null)
      return Effect.void
    })
  })
  yield* permits.withPermit(adding)
  const after = states.get(turnId)
  if (after === undefined) return yield* Effect.die(new Error(`the turn "${turnId}" has not started`))
  if (after.end !== null && session.ended >= 2 * options.keepTurns) {
    // The turn is safely ended either way; a failure shows with the next append, and after it the log is opened again.
    const alone = permits.withPermits(allPermits)(compact(session, options))
    yield* Effect.ignore(entrance.withPermit(alone))
  }
  return after
})

/** Drops the oldest ended turns once there are twice as many as are to be kept. */
const compact = Effect.fnUntraced(function* (session: Session, { keepTurns, isRunning }: JournalOptions) {
  const { log, states } = session
  const ended = endedOf(states)
  if (ended.length < 2 * keepTurns || session.failure !== undefined) return
  const byAge = ended
    .filter(({ turnId }) => !isRunning(turnId))
    .toSorted((one, other) => (one.end?.at ?? 0) - (other.end?.at ?? 0))
  const dropped = new Set(byAge.slice(0, ended.length - keepTurns))
  const kept = [...states.values()].filter((state) => !dropped.has(state))
  yield* write(session, log.replace(kept.map((state) => ({ _tag: "TurnKept", turnId: state.turnId, state }))))
  for (const state of dropped) states.delete(state.turnId)
  session.ended -= dropped.size
})
