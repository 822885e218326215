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
  /** Open when the host ends: nothing is put off any more. */
  readonly closing: Latch.Latch
}

/** Keeps the pages until the scope closes, which waits until those of the last run are written. */
export const follow: (
  dispatcher: Dispatcher.Dispatcher["Service"],
  folder: Folder,
  render?: Renderers
) => Effect.Effect<void, never, Scope.Scope> = Effect.fnUntraced(function* (dispatcher, folder, render = renderers) {
  const [folding, closing, pages] = yield* Effect.all([Semaphore.make(1), Latch.make(), make(folder, render)])
  const follower: Follower = { dispatcher, pages, folding, closing, readAt: -Infinity }
  const between = yield* Effect.all([Latch.make(true), Latch.make(true)])
  // Each gets as far as it can at once, in this order: the log is read before anything live is folded, and nothing that is
  // told meanwhile is missed.
  const atOnce = { startImmediately: true }
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(refresh(follower), Effect.sleep(tickMillis))), atOnce)
  const entries = everyRun(follower, between[0], dispatcher.events(), (item) => take(follower, item))
  const snapshots = everyRun(follower, between[1], dispatcher.changes, (snapshot) => see(follower, snapshot))
  yield* Effect.forkScoped(entries, atOnce)
  yield* Effect.forkScoped(snapshots, atOnce)
  yield* Effect.addFinalizer(() => finish(follower, between))
})

// -----------------------------------------------------------------------------
// following
// -----------------------------------------------------------------------------

/** Takes what the stream tells of each run; the latch is open between runs. Nothing that goes wrong ends it. */
const everyRun = <A, E extends { readonly message: string }>(
  { pages }: Follower,
  between: Latch.Latch,
  stream: Stream.Stream<A, E>,
  take: (item: A) => Effect.Effect<unknown>
): Effect.Effect<never> =>
  Stream.runForEach(stream, (item) => Effect.andThen(between.close, take(item))).pipe(
    Effect.catch((error) => Effect.andThen(warn("the run", error.message), Effect.sleep(tickMillis))),
    Effect.catchDefect((defect) => Effect.andThen(warn("the run", String(defect)), Effect.sleep(tickMillis))),
    Effect.andThen(Effect.sync(() => (pages.wholeAt = -Infinity))),
    Effect.andThen(between.open),
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
const see = ({ closing, pages }: Follower, snapshot: Dispatcher.Snapshot): Effect.Effect<void> =>
  Effect.suspend(() => {
    pages.snapshot = snapshot
    pages.isStale = true
    return snapshot.run === "none" ? Effect.void : Effect.raceFirst(Effect.sleep(tickMillis), closing.await)
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
    const { closing, dispatcher, pages } = follower
    for (;;) {
      const since = (yield* Clock.currentTimeMillis) - follower.readAt
      if (since < 0 || since >= wholeMillis || !isRunning(pages) || Latch.isOpen(closing)) break
      yield* Effect.raceFirst(Effect.sleep(tickMillis), closing.await)
    }
    follower.readAt = yield* Clock.currentTimeMillis
    yield* Stream.runForEach(dispatcher.history(pages.state.cursor), (entry) => fold(follower, entry))
    told(pages, "the log")
    return true
  }).pipe(Effect.catch((error) => Effect.as(tell(follower.pages, "the log", error.message), false)))

/** All of the log, before any page says what is in it. Nothing that is told meanwhile is folded in between. */
const read = (follower: Follower): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { dispatcher, folding, pages } = follower
    yield* folding.withPermit(
      Effect.suspend(() => {
        if (pages.isRead) return Effect.void
        pages.state = Fold.initial()
        return Effect.map(catchUp(follower), (isRead) => (pages.isRead = isRead))
      })
    )
    if (!pages.isRead || pages.snapshot !== undefined) return
    const found = yield* dispatcher.snapshot
    // A run may have begun meanwhile, and have told more.
    pages.snapshot ??= found
  }).pipe(Effect.catch((error) => warn("the log", error.message)))

// -----------------------------------------------------------------------------
// writing
// -----------------------------------------------------------------------------

const refresh = (follower: Follower): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { pages } = follower
    if (!pages.isRead) yield* read(follower)
    if (pages.isRead && (pages.isStale || isRunning(pages))) yield* write(pages)
  })

/** The last pages. A run that outlives the host's scope is shown as it is now. */
const finish = (follower: Follower, between: ReadonlyArray<Latch.Latch>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { closing, dispatcher, folding, pages } = follower
    yield* closing.open
    yield* Effect.yieldNow
    if (!between.every(Latch.isOpen)) {
      // Either what follows is behind, or a run is still under way: then this answers at once.
      const found = yield* dispatcher.snapshot
      if (found.run === "none") for (const latch of between) yield* latch.await
      else pages.snapshot = found
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
