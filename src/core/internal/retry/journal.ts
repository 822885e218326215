/**
 * The log of all turns of a policy, and the states it folds to.
 */
import { type Cause, Effect, Exit, Fiber, Schema, Scope, Semaphore, Stream } from "effect"
import {
  type Json,
  type Log,
  LogCorrupt,
  type LogFenced,
  type OpenError,
  Storage,
  type StorageError
} from "../../Storage.ts"
import { Event, type State } from "../../Turn.ts"
import { evolve } from "./evolve.ts"

export type JournalError = OpenError | StorageError | LogFenced

export interface Journal {
  /** What is kept of the turn. Opens the log; a failure to open it is no failure for good. */
  readonly state: (turnId: string) => Effect.Effect<State | undefined, JournalError>
  /**
   * Adds events of one turn, all or none, and answers what they make of it. Appends of one turn take effect in the order
   * they were asked for, also when whoever asked is interrupted meanwhile.
   */
  readonly append: (...events: readonly [Event, ...ReadonlyArray<Event>]) => Effect.Effect<State, JournalError>
}

interface Session {
  readonly log: Log<Event>
  readonly scope: Scope.Closeable
  readonly states: Map<string, State>
  /** Set by the first append that failed: its outcome is unknown until the log is opened again. */
  failure: Cause.Cause<StorageError | LogFenced> | undefined
}

/** All of them together exclude a compaction. */
const allAppends = 1_000_000

/**
 * A journal over the named log, of which at least `keepTurns` ended turns are kept. `onOpen` is told what was found,
 * each time.
 */
export const makeJournal = Effect.fnUntraced(function* (
  name: string,
  keepTurns: number,
  onOpen: (states: Iterable<State>) => void
) {
  const storage = yield* Storage
  const own = yield* Effect.scope
  const opening = yield* Semaphore.make(1)
  const appends = yield* Semaphore.make(allAppends)
  const orders = new Map<string, { readonly one: Semaphore.Semaphore; users: number }>()
  let current: Session | undefined

  const open = Effect.gen(function* () {
    if (current !== undefined && current.failure === undefined) return current
    if (current !== undefined) yield* Scope.close(current.scope, Exit.void)
    current = undefined
    const scope = yield* Scope.fork(own)
    const session = yield* storage.open(name).pipe(
      Effect.flatMap((log) => {
        const typed = typedLog(log)
        return Effect.map(readStates(typed), (states): Session => ({ log: typed, scope, states, failure: undefined }))
      }),
      Scope.provide(scope),
      Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void))
    )
    current = session
    onOpen(session.states.values())
    return session
  }).pipe(opening.withPermit)

  /** One after the other for each turn: what a fold makes of two events depends on their order. */
  const inOrder = <A, E>(turnId: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const order = orders.get(turnId) ?? { one: Semaphore.makeUnsafe(1), users: 0 }
      orders.set(turnId, order)
      order.users += 1
      return Effect.ensuring(
        order.one.withPermit(effect),
        Effect.sync(() => {
          order.users -= 1
          if (order.users === 0) orders.delete(turnId)
        })
      )
    })

  const write = (session: Session, entries: Effect.Effect<void, StorageError | LogFenced>) =>
    Effect.suspend(() => (session.failure === undefined ? entries : Effect.failCause(session.failure))).pipe(
      Effect.onExit((exit) => Effect.sync(() => void (Exit.isFailure(exit) && (session.failure ??= exit.cause))))
    )

  const compact = Effect.fnUntraced(function* (session: Session) {
    const ended = [...session.states.values()].filter((state) => state.end !== null)
    if (ended.length < 2 * keepTurns || session.failure !== undefined) return
    const byAge = ended.toSorted((one, other) => (one.end?.at ?? 0) - (other.end?.at ?? 0))
    const dropped = new Set(byAge.slice(0, ended.length - keepTurns))
    const kept = [...session.states.values()].filter((state) => !dropped.has(state))
    yield* write(session, session.log.replace(kept.map((state) => ({ _tag: "TurnKept", turnId: state.turnId, state }))))
    for (const state of dropped) session.states.delete(state.turnId)
  })

  const add = Effect.fnUntraced(function* (session: Session, turnId: string, events: ReadonlyArray<Event>) {
    yield* appends.withPermit(
      Effect.onExit(write(session, session.log.append(events)), (exit) =>
        Effect.sync(() => {
          if (Exit.isFailure(exit)) return
          const state = events.reduce(evolve, session.states.get(turnId))
          if (state !== undefined) session.states.set(turnId, state)
        })
      )
    )
    const state = session.states.get(turnId)
    if (state === undefined) return yield* Effect.die(new Error(`the turn "${turnId}" has not started`))
    if (state.end !== null) {
      // The turn is safely ended either way; a failure shows with the next append, which opens the log again.
      yield* Effect.ignore(appends.withPermits(allAppends)(Effect.suspend(() => compact(session))))
    }
    return state
  })

  return {
    state: (turnId) =>
      Effect.flatMap(open, (session) =>
        inOrder(
          turnId,
          Effect.sync(() => session.states.get(turnId))
        )
      ),
    append: (...events) =>
      Effect.flatMap(open, (session) => {
        const { turnId } = events[0]
        // In a fiber of its own: an append that is cut off would leave the turn in a state that nobody knows.
        return Effect.flatMap(Effect.forkIn(inOrder(turnId, add(session, turnId, events)), own), Fiber.join)
      })
  } satisfies Journal as Journal
})

const readStates = (log: Log<Event>) =>
  Stream.runFold(
    log.replay,
    () => new Map<string, State>(),
    (states, event) => {
      const state = evolve(states.get(event.turnId), event)
      if (state !== undefined) states.set(event.turnId, state)
      return states
    }
  )

// -----------------------------------------------------------------------------
// entries
// -----------------------------------------------------------------------------

const codec = Schema.toCodecJson(Event)

const typedLog = (log: Log<Json>): Log<Event> => {
  const decode = Schema.decodeUnknownEffect(codec)
  const encode = Schema.encodeSync(codec)
  return {
    name: log.name,
    replay: log.replay.pipe(
      Stream.zipWithIndex,
      Stream.mapEffect(([entry, index]) =>
        Effect.mapError(
          decode(entry),
          (error) => new LogCorrupt({ log: log.name, line: index + 1, found: error.message })
        )
      )
    ),
    append: (events) => log.append(events.map((event) => encode(event))),
    replace: (events) => log.replace(events.map((event) => encode(event)))
  }
}
