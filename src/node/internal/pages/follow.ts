/**
 * Follows a dispatcher and keeps its pages.
 *
 * It reads the log once at its start, and then only what a run tells of itself, run after run; the log is read again
 * where something was missed. It is at no time in the way of a run, which never waits for a subscriber.
 */
import { Clock, Effect, Latch, type Scope, Semaphore, Stream } from "effect"
import type { Dispatcher } from "shiftboss"
import type { Folder } from "../storage/folder.ts"
import * as Fold from "./fold.ts"
import {
  isRunning,
  make,
  type Pages,
  type Renderers,
  renderers,
  tell,
  told,
  warn,
  wholeMillis,
  write,
  writeFinal
} from "./pages.ts"

const tickMillis = 1_000
/** So long the end of the host waits for the last pages, when the disk or the log does not answer. */
const closeMillis = 5_000

/** What follows a dispatcher. */
interface Follower {
  readonly dispatcher: Dispatcher.Dispatcher["Service"]
  readonly pages: Pages
  /** Held by what folds. */
  readonly folding: Semaphore.Semaphore
  /** When the log was last read, in epoch milliseconds. */
  readAt: number
  /** Of what is told by events, and of what is told by snapshots: open between runs. */
  readonly between: { readonly events: Latch.Latch; readonly changes: Latch.Latch }
  /** Of the last event folded when the snapshot was taken. */
  seenAt: number
  /** Opened when there is a reason not to wait any longer. */
  readonly wake: Latch.Latch
  /** The host ends: nothing is put off any more. */
  isClosing: boolean
}

/** Keeps the pages until the scope closes, which waits until those of the last run are written. */
export const follow: (
  dispatcher: Dispatcher.Dispatcher["Service"],
  folder: Folder,
  render?: Renderers
) => Effect.Effect<void, never, Scope.Scope> = Effect.fnUntraced(function* (dispatcher, folder, render = renderers) {
  const follower: Follower = {
    ...{ dispatcher, pages: yield* make(folder, render), folding: yield* Semaphore.make(1), readAt: -Infinity },
    ...{ between: { events: yield* Latch.make(true), changes: yield* Latch.make(true) }, seenAt: -1 },
    ...{ wake: yield* Latch.make(), isClosing: false }
  }
  const { between } = follower
  // Each gets as far as it can at once, in this order: the log is read before anything live is folded, and nothing that is
  // told meanwhile is missed.
  const atOnce = { startImmediately: true }
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(guarded(refresh(follower)), untilNext(follower))), atOnce)
  const entries = everyRun(follower, between.events, dispatcher.events(), (item) => take(follower, item))
  const snapshots = everyRun(follower, between.changes, dispatcher.changes, (snapshot) => see(follower, snapshot))
  yield* Effect.forkScoped(entries, atOnce)
  yield* Effect.forkScoped(snapshots, atOnce)
  yield* Effect.addFinalizer(() => finish(follower))
})

// -----------------------------------------------------------------------------
// following
// -----------------------------------------------------------------------------

/** Nothing that goes wrong, a fault of these pages included, ends what follows. */
const guarded = <A, E extends { readonly message: string }>(effect: Effect.Effect<A, E>): Effect.Effect<unknown> =>
  effect.pipe(
    Effect.catch((error) => Effect.andThen(warn("the run", error.message), Effect.sleep(tickMillis))),
    Effect.catchDefect((defect) => Effect.andThen(warn("the run", String(defect)), Effect.sleep(tickMillis)))
  )

/** Takes what the stream tells of each run; the latch is open between runs. */
const everyRun = <A, E extends { readonly message: string }>(
  { pages, wake }: Follower,
  between: Latch.Latch,
  stream: Stream.Stream<A, E>,
  take: (item: A) => Effect.Effect<unknown>
): Effect.Effect<never> =>
  guarded(Stream.runForEach(stream, (item) => Effect.andThen(between.close, take(item)))).pipe(
    Effect.andThen(Effect.sync(() => (pages.wholeAt = -Infinity))),
    Effect.andThen(between.open),
    Effect.andThen(wake.open),
    Effect.forever
  )

/** What is missing before it is read from the log, whether or not the subscription says that it is missing. */
const take = (follower: Follower, item: Dispatcher.Entry | Dispatcher.Gap): Effect.Effect<void> =>
  follower.folding.withPermit(
    Effect.suspend(() => {
      const next = item._tag === "Gap" ? item.next : item.cursor
      const before = next > follower.pages.state.cursor + 1 ? Effect.asVoid(catchUp(follower)) : Effect.void
      return item._tag === "Gap" ? before : Effect.andThen(before, fold(follower, item))
    })
  )

const fold = ({ pages }: Follower, entry: Dispatcher.Entry): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (entry.cursor !== pages.state.cursor + 1) return Effect.void
    pages.isStale = true
    Fold.evolve(pages.state, entry)
    return writeFinal(pages)
  }).pipe(Effect.catchDefect((defect) => warn(`event ${entry.cursor}`, String(defect))))

/** No more snapshots than are shown. */
const see = (follower: Follower, snapshot: Dispatcher.Snapshot): Effect.Effect<void> =>
  Effect.suspend(() => {
    show(follower, snapshot)
    return isRunning(follower.pages) ? pause(follower) : Effect.void
  })

const show = (follower: Follower, snapshot: Dispatcher.Snapshot): void => {
  const { pages } = follower
  pages.snapshot = snapshot
  pages.isStale = true
  follower.seenAt = pages.state.cursor
}

/** A second, or until a run or the host ends. */
const pause = (follower: Follower): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (follower.isClosing) return Effect.void
    Latch.closeUnsafe(follower.wake)
    return Effect.raceFirst(Effect.sleep(tickMillis), follower.wake.await)
  })

// -----------------------------------------------------------------------------
// reading
// -----------------------------------------------------------------------------

/**
 * Reads on from the log. Its cost grows with the log, so while a run goes on it is read every 15 seconds at most: a run that
 * tells more than can be followed is followed at these distances.
 */
const catchUp = (follower: Follower): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const { dispatcher, pages } = follower
    while (isRunning(pages) && !follower.isClosing) {
      const since = (yield* Clock.currentTimeMillis) - follower.readAt
      if (since < 0 || since >= wholeMillis) break
      yield* pause(follower)
    }
    follower.readAt = yield* Clock.currentTimeMillis
    yield* Stream.runForEach(dispatcher.history(pages.state.cursor), (entry) => fold(follower, entry))
    told(pages, "the log")
    return true
  }).pipe(Effect.catch((error) => Effect.as(tell(follower.pages, "the log", error), false)))

/** All of the log, before any page says what is in it. Nothing that is told meanwhile is folded in between. */
const read = (follower: Follower): Effect.Effect<void> =>
  follower.folding.withPermit(
    Effect.suspend(() => {
      const { pages } = follower
      if (pages.isRead) return Effect.void
      pages.state = Fold.initial()
      return Effect.map(catchUp(follower), (isRead) => void (pages.isRead = isRead))
    })
  )

const isBetween = ({ between }: Follower): boolean => Latch.isOpen(between.events) && Latch.isOpen(between.changes)

/** A snapshot of a log without a run has to be read from it: the first, or when a run came and went unseen. */
const look = Effect.fnUntraced(
  function* (follower: Follower) {
    const { cursor } = follower.pages.state
    if (!isBetween(follower) || follower.seenAt >= cursor) return
    follower.seenAt = cursor // also when it cannot be read: not every second
    const found = yield* follower.dispatcher.snapshot
    // If a run has begun meanwhile, it has told more.
    if (isBetween(follower)) show(follower, found)
  },
  Effect.catch((error) => warn("the log", error.message))
)

// -----------------------------------------------------------------------------
// writing
// -----------------------------------------------------------------------------

const refresh = (follower: Follower): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { pages } = follower
    if (!pages.isRead) yield* read(follower)
    if (!pages.isRead) return
    yield* look(follower)
    if (pages.isStale || isRunning(pages)) yield* write(pages)
  })

/** A log that cannot be read is not read every second. */
const untilNext = ({ pages }: Follower): Effect.Effect<void> =>
  Effect.suspend(() => Effect.sleep(pages.isRead || !pages.failures.has("the log") ? tickMillis : wholeMillis))

/** The last pages. A run that outlives the host's scope is shown as it is now. */
const finish = (follower: Follower): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { between, dispatcher, folding, pages, wake } = follower
    follower.isClosing = true
    yield* wake.open
    yield* Effect.yieldNow
    if (!isBetween(follower)) {
      // Either what follows is behind, or a run is still under way: then this answers at once.
      const found = yield* dispatcher.snapshot
      if (found.run === "none") yield* Effect.andThen(between.events.await, between.changes.await)
      else show(follower, found)
    }
    yield* folding.withPermit(Effect.void)
    pages.wholeAt = -Infinity
    pages.isStale = true
    yield* refresh(follower)
    // Pages that were lost are made from the log again.
    if (!pages.isRead) yield* refresh(follower)
  }).pipe(
    Effect.interruptible,
    Effect.timeoutOption(closeMillis),
    Effect.catch((error) => warn("the log", error.message)),
    Effect.asVoid
  )
