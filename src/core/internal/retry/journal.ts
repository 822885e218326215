/**
 * The log of all turns of a policy, and the states it folds to.
 */
import { type Cause, Effect, Exit, Fiber, Scope, Semaphore } from "effect"
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
  readonly append: (
    ...events: readonly [Event, ...ReadonlyArray<Event>]
  ) => Effect.Effect<State, StorageError | LogFenced>
}

interface Session {
  readonly log: Log<Event>
  readonly scope: Scope.Closeable
  readonly states: Map<string, State>
  /** Appends take one permit each, a compaction all of them. */
  readonly permits: Semaphore.Semaphore
  /** Of the first write that failed: what is in the log is unknown until it is opened again. */
  failure: Cause.Cause<StorageError | LogFenced> | undefined
}

const allPermits = 1_000_000

/**
 * Opens the named log, or answers the journal that is open already. A failure is no failure for good: the next call tries
 * again. At least `keepTurns` ended turns are kept; `onOpen` is told what was found, each time.
 */
export const journalOpener = Effect.fnUntraced(function* (
  name: string,
  keepTurns: number,
  onOpen: (states: Iterable<State>) => void
) {
  const own = yield* Effect.scope
  const opening = yield* Semaphore.make(1)
  const openSession = yield* sessionOpener(name, own)
  let current: { readonly session: Session; readonly journal: Journal } | undefined

  return Effect.gen(function* () {
    if (current !== undefined && current.session.failure === undefined) return current.journal
    if (current !== undefined) yield* Scope.close(current.session.scope, Exit.void)
    current = undefined
    const session = yield* openSession
    onOpen(session.states.values())
    current = { session, journal: journalOf(session, keepTurns, own) }
    return current.journal
  }).pipe(opening.withPermit)
})

const journalOf = (session: Session, keepTurns: number, own: Scope.Scope): Journal => {
  const inOrder = makeOrder()
  return {
    state: (turnId) =>
      inOrder(
        turnId,
        Effect.sync(() => session.states.get(turnId))
      ),
    append: (...events) => {
      const { turnId } = events[0]
      const adding = inOrder(turnId, add(session, keepTurns, turnId, events))
      // In a fiber of its own: an append that is cut off would leave the turn in a state that nobody knows.
      return Effect.flatMap(Effect.forkIn(adding, own), Fiber.join)
    }
  }
}

const sessionOpener = Effect.fnUntraced(function* (name: string, own: Scope.Scope) {
  const storage = yield* Storage
  return Effect.gen(function* () {
    const scope = yield* Scope.fork(own)
    const opened = Effect.gen(function* () {
      const log = eventLog(yield* storage.open(name))
      const permits = yield* Semaphore.make(allPermits)
      const session: Session = { log, scope, states: yield* readStates(log), permits, failure: undefined }
      return session
    })
    return yield* opened.pipe(
      Scope.provide(scope),
      Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void))
    )
  })
})

const write = (session: Session, entries: Effect.Effect<void, StorageError | LogFenced>) =>
  Effect.suspend(() => (session.failure === undefined ? entries : Effect.failCause(session.failure))).pipe(
    Effect.onExit((exit) => {
      if (Exit.isFailure(exit)) session.failure ??= exit.cause
      return Effect.void
    })
  )

const add = Effect.fnUntraced(function* (
  session: Session,
  keepTurns: number,
  turnId: string,
  events: ReadonlyArray<Event>
) {
  const { log, permits, states } = session
  yield* permits.withPermit(
    Effect.onExit(write(session, log.append(events)), (exit) => {
      const state = Exit.isSuccess(exit) ? events.reduce(evolve, states.get(turnId)) : undefined
      if (state !== undefined) states.set(turnId, state)
      return Effect.void
    })
  )
  const state = states.get(turnId)
  if (state === undefined) return yield* Effect.die(new Error(`the turn "${turnId}" has not started`))
  if (state.end !== null) {
    // The turn is safely ended either way; a failure shows with the next append, and after it the log is opened again.
    yield* Effect.ignore(permits.withPermits(allPermits)(compact(session, keepTurns)))
  }
  return state
})

/** Drops the oldest ended turns once there are twice as many as are to be kept. */
const compact = Effect.fnUntraced(function* (session: Session, keepTurns: number) {
  const { log, states } = session
  const ended = [...states.values()].filter((state) => state.end !== null)
  if (ended.length < 2 * keepTurns || session.failure !== undefined) return
  const byAge = ended.toSorted((one, other) => (one.end?.at ?? 0) - (other.end?.at ?? 0))
  const dropped = new Set(byAge.slice(0, ended.length - keepTurns))
  const kept = [...states.values()].filter((state) => !dropped.has(state))
  yield* write(session, log.replace(kept.map((state) => ({ _tag: "TurnKept", turnId: state.turnId, state }))))
  for (const state of dropped) states.delete(state.turnId)
})
