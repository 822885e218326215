/**
 * A log and what is folded from it, always in agreement. An append that failed or was interrupted may or may not be in
 * the log, so the log is opened and read again before anything else is decided: memory never guesses.
 */
import { Clock, Effect, Exit, Scope, Semaphore, Stream } from "effect"
import { type Log, LogCorrupt, type LogFenced, type OpenError, type StorageError } from "../../Storage.ts"
import { SchedulesUnavailable } from "./errors.ts"

/** How many appends may be under way at a time: the storage writes them as one group. */
const appends = 256
/** A log shorter than this is not worth rewriting. */
const shortestCompaction = 1000
/** How many entries may stand for one that compaction would leave. */
const entriesPerKept = 4

/** How entries become a state. The state is mutable, so that a schedule among many costs what it costs alone. */
export interface Fold<State, Entry> {
  readonly open: Effect.Effect<Log<Entry>, OpenError, Scope.Scope>
  readonly empty: () => State
  readonly apply: (state: State, entry: Entry) => void
  /** What is wrong with what was read, if anything. */
  readonly problem: (state: State) => string | undefined
  /** How many entries make the state, at most. */
  readonly size: (state: State) => number
  /** The entries that make the state. */
  readonly snapshot: (state: State, now: number) => ReadonlyArray<Entry>
}

export interface FoldedLog<State, Entry> {
  /** The state at present, not to be changed. */
  readonly state: () => State
  /** Reads the log again when it may hold more than the state knows. Costs nothing else. */
  readonly refresh: Effect.Effect<void, SchedulesUnavailable>
  /** Decides on the state, appends and applies: all of it or nothing. */
  readonly append: (
    decide: (state: State) => ReadonlyArray<Entry>
  ) => Effect.Effect<ReadonlyArray<Entry>, SchedulesUnavailable>
}

/** Opens and folds the log, and holds it until the scope closes. */
export const make = Effect.fnUntraced(function* <State, Entry>(fold: Fold<State, Entry>) {
  const gate = yield* Semaphore.make(appends)
  let opened: { readonly log: Log<Entry>; readonly scope: Scope.Closeable } | undefined
  let state = fold.empty()
  let entries = 0
  let isStale = true
  let isLost = false

  const unavailable = (cause: OpenError | LogFenced | StorageError) => {
    isLost ||= cause._tag === "LogFenced"
    return new SchedulesUnavailable({ reason: isLost ? "JournalLost" : "JournalFailed", cause })
  }
  const nowStale = Effect.sync(() => {
    isStale = true
  })

  const close = Effect.suspend(() => {
    const scope = opened?.scope
    opened = undefined
    return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
  })
  yield* Effect.addFinalizer(() => close)

  const read = Effect.fnUntraced(function* (scope: Scope.Scope) {
    const log = yield* Scope.provide(fold.open, scope)
    const fresh = fold.empty()
    let count = 0
    yield* Stream.runForEach(log.replay, (entry) =>
      Effect.sync(() => {
        fold.apply(fresh, entry)
        count++
      })
    )
    const found = fold.problem(fresh)
    if (found !== undefined) return yield* new LogCorrupt({ log: log.name, line: count, found })
    return { log, fresh, count }
  })

  const open = Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      yield* close
      const scope = yield* Scope.make()
      const { log, fresh, count } = yield* restore(read(scope)).pipe(
        Effect.onError(() => Scope.close(scope, Exit.void))
      )
      opened = { log, scope }
      state = fresh
      entries = count
      isStale = false
    })
  )

  const isLong = () => entries >= Math.max(shortestCompaction, entriesPerKept * fold.size(state))
  const compact = Effect.gen(function* () {
    if (opened === undefined || isStale || !isLong()) return
    const snapshot = fold.snapshot(state, yield* Clock.currentTimeMillis)
    yield* opened.log.replace(snapshot).pipe(Effect.onError(() => nowStale))
    entries = snapshot.length
  })

  const reopen = Effect.suspend(() => {
    if (isLost) return Effect.fail(new SchedulesUnavailable({ reason: "JournalLost" }))
    return isStale ? Effect.mapError(open, unavailable) : Effect.void
  })

  const appendNow = (decide: (state: State) => ReadonlyArray<Entry>) =>
    Effect.uninterruptibleMask(
      Effect.fnUntraced(function* (restore) {
        if (opened === undefined || isStale) return yield* new SchedulesUnavailable({ reason: "JournalFailed" })
        const decided = decide(state)
        if (decided.length === 0) return decided
        yield* restore(opened.log.append(decided)).pipe(
          Effect.mapError(unavailable),
          Effect.onError(() => nowStale)
        )
        for (const entry of decided) fold.apply(state, entry)
        entries += decided.length
        return decided
      })
    )

  yield* open
  yield* Effect.ignore(compact)
  const whole = Semaphore.withPermits(gate, appends)
  // Alone, so that nobody appends to a log that is being closed.
  const refresh = Effect.suspend(() => (isStale ? whole(reopen) : Effect.void))
  return {
    state: () => state,
    refresh,
    append: Effect.fnUntraced(function* (decide) {
      yield* refresh
      const decided = yield* Semaphore.withPermits(gate, 1)(appendNow(decide))
      // A failure here leaves the log as it was or makes it stale: what was decided stands either way.
      if (isLong()) yield* Effect.ignore(whole(compact))
      return decided
    })
  } satisfies FoldedLog<State, Entry> as FoldedLog<State, Entry>
})
