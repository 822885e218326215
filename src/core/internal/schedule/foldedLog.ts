/**
 * A log and what is folded from it, always in agreement. An append that failed or was interrupted may or may not be in
 * the log, so the log is opened and read again before anything else is decided: memory never guesses.
 */
import { Effect, Exit, Scope, Semaphore, Stream } from "effect"
import { type Log, LogCorrupt, type LogFenced, type OpenError, type StorageError } from "../../Storage.ts"
import { SchedulesUnavailable } from "./errors.ts"
import { now as clockNow } from "./now.ts"

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
  /** What is wrong with an entry that comes next, if anything: no journal that is whole holds it there. */
  readonly misfit: (state: State, entry: Entry) => string | undefined
  /** Told of what was appended. It cannot be interrupted, so whatever is in the log is told once, and must not wait. */
  readonly appended: (entries: ReadonlyArray<Entry>) => Effect.Effect<void>
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

/** A log as it is held: what is opened may be behind what is stored when `isStale`. */
interface Held<State, Entry> {
  readonly fold: Fold<State, Entry>
  opened: { readonly log: Log<Entry>; readonly scope: Scope.Closeable } | undefined
  state: State
  entries: number
  /** A log that could not be rewritten grows to this many entries before the next try. */
  compactAt: number
  isStale: boolean
  /** Another holder has taken the log over: it is not ours to open again. */
  isLost: boolean
  /** Its scope has closed: what is opened now would be held for ever. */
  isClosed: boolean
}

const unavailable =
  <State, Entry>(held: Held<State, Entry>) =>
  (cause: OpenError | LogFenced | StorageError) => {
    held.isLost ||= cause._tag === "LogFenced"
    return new SchedulesUnavailable({ reason: held.isLost ? "JournalLost" : "JournalFailed", cause })
  }

const markStale = <State, Entry>(held: Held<State, Entry>) =>
  Effect.sync(() => {
    held.isStale = true
  })

const close = <State, Entry>(held: Held<State, Entry>) =>
  Effect.suspend(() => {
    const scope = held.opened?.scope
    held.opened = undefined
    return scope === undefined ? Effect.void : Scope.close(scope, Exit.void)
  })

const read = Effect.fnUntraced(function* <State, Entry>(fold: Fold<State, Entry>, scope: Scope.Scope) {
  const log = yield* Scope.provide(fold.open, scope)
  const state = fold.empty()
  let entries = 0
  yield* Stream.runForEach(log.replay, (entry) =>
    Effect.suspend(() => {
      entries++
      const found = fold.misfit(state, entry)
      if (found !== undefined) return Effect.fail(new LogCorrupt({ log: log.name, line: entries, found }))
      fold.apply(state, entry)
      return Effect.void
    })
  )
  const found = fold.problem(state)
  if (found !== undefined) return yield* new LogCorrupt({ log: log.name, line: entries, found })
  return { log, state, entries }
})

/** Closes what is open, opens it again and folds it; readers see the old state until the new one is whole. */
const open = <State, Entry>(held: Held<State, Entry>) =>
  Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      yield* close(held)
      const scope = yield* Scope.make()
      const found = yield* restore(read(held.fold, scope)).pipe(Effect.onError(() => Scope.close(scope, Exit.void)))
      // It may have ended while the log was read.
      if (held.isClosed) return yield* Scope.close(scope, Exit.void)
      held.opened = { log: found.log, scope }
      held.state = found.state
      held.entries = found.entries
      held.isStale = false
    })
  )

const reopen = <State, Entry>(held: Held<State, Entry>) =>
  Effect.suspend(() => {
    if (held.isLost) return Effect.fail(new SchedulesUnavailable({ reason: "JournalLost" }))
    if (held.isClosed) return Effect.fail(new SchedulesUnavailable({ reason: "Ended" }))
    return held.isStale ? Effect.mapError(open(held), unavailable(held)) : Effect.void
  })

const isLong = <State, Entry>({ fold, state, entries, compactAt }: Held<State, Entry>) =>
  entries >= Math.max(compactAt, entriesPerKept * fold.size(state))

const compact = Effect.fnUntraced(function* <State, Entry>(held: Held<State, Entry>) {
  if (held.opened === undefined || held.isStale || !isLong(held)) return
  const snapshot = held.fold.snapshot(held.state, yield* clockNow)
  // Each try that fails has the log read again, which is not to happen at every append.
  held.compactAt = 2 * held.entries
  yield* held.opened.log.replace(snapshot).pipe(
    Effect.mapError(unavailable(held)),
    Effect.onError(() => markStale(held))
  )
  held.compactAt = shortestCompaction
  held.entries = snapshot.length
})

/** `undefined` when the log has to be read again first: another append has failed meanwhile. */
const append = <State, Entry>(held: Held<State, Entry>, decide: (state: State) => ReadonlyArray<Entry>) =>
  Effect.uninterruptibleMask(
    Effect.fnUntraced(function* (restore) {
      const { opened, state, fold } = held
      if (opened === undefined || held.isStale) return undefined
      const decided = decide(state)
      if (decided.length === 0) return decided
      yield* restore(opened.log.append(decided)).pipe(
        Effect.mapError(unavailable(held)),
        Effect.onError(() => markStale(held))
      )
      for (const entry of decided) fold.apply(state, entry)
      held.entries += decided.length
      yield* fold.appended(decided)
      return decided
    })
  )

/** Opens and folds the log, and holds it until the scope closes. */
export const make = Effect.fnUntraced(function* <State, Entry>(fold: Fold<State, Entry>) {
  const held: Held<State, Entry> = {
    fold,
    opened: undefined,
    state: fold.empty(),
    entries: 0,
    compactAt: shortestCompaction,
    isStale: true,
    isLost: false,
    isClosed: false
  }
  const gate = yield* Semaphore.make(appends)
  // Alone, so that nobody appends to a log that is being closed or rewritten.
  const alone = Semaphore.withPermits(gate, appends)
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      held.isClosed = true
      return close(held)
    })
  )
  yield* open(held)

  const refresh = Effect.suspend(() => (held.isStale ? alone(reopen(held)) : Effect.void))
  const folded: FoldedLog<State, Entry> = {
    state: () => held.state,
    refresh,
    append: Effect.fnUntraced(function* (decide) {
      let decided: ReadonlyArray<Entry> | undefined
      while (decided === undefined) {
        yield* refresh
        decided = yield* Semaphore.withPermits(gate, 1)(append(held, decide))
      }
      // A failure here leaves the log as it was or makes it stale: what was decided stands either way.
      if (isLong(held)) yield* Effect.ignore(alone(compact(held)))
      return decided
    })
  }
  return folded
})
