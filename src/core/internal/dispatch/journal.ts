/**
 * The one writer of a dispatcher's log: events are durable, then they count, in the order of the log.
 */
import { Cause, Deferred, Effect, Exit } from "effect"
import type { Entry } from "../../Dispatcher.ts"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Log } from "../../Storage.ts"
import { type LogFenced, StorageError } from "../../StorageError.ts"
import { evolve, type State } from "./state.ts"

export type WriteError = StorageError | LogFenced

interface Commit {
  readonly events: ReadonlyArray<DispatcherEvent>
  /** Runs in the same instant as the events begin to count, so that nobody sees the one without the other. */
  readonly onCounted: (() => void) | undefined
  readonly done: Deferred.Deferred<void, WriteError>
}

export interface Journal {
  /** Cannot be interrupted: when it ends, the events count, or the run is broken. Those of one call go in whole or not at all. */
  readonly commit: (events: ReadonlyArray<DispatcherEvent>, onCounted?: () => void) => Effect.Effect<void, WriteError>
  /** The storage has not yet answered a commit. */
  readonly writing: () => boolean
  /** Succeeds when nothing is being written. */
  readonly idle: Effect.Effect<void>
}

export interface Options {
  /** Called when an event counts. */
  readonly counted: (event: DispatcherEvent) => void
  /** Tells others of events that count, before those who wrote them go on. */
  readonly publish: (entries: ReadonlyArray<Entry>) => Effect.Effect<unknown>
  readonly broken: (error: WriteError) => void
}

export const make = (log: Log<DispatcherEvent>, state: State, options: Options): Journal => {
  let queue: Array<Commit> = []
  let failed: WriteError | undefined
  let writer: Deferred.Deferred<void> | undefined
  let unanswered = 0

  // A waiter goes on inside `doneUnsafe`: everything has to be in order before it.
  const answer = (commit: Commit, result: Effect.Effect<void, WriteError>) => {
    unanswered--
    Deferred.doneUnsafe(commit.done, result)
  }

  const refuse = (commits: ReadonlyArray<Commit>, cause: Cause.Cause<WriteError>) => {
    failed = errorOf(log.name, cause)
    const refused = [...commits, ...queue]
    queue = []
    options.broken(failed)
    for (const commit of refused) answer(commit, Effect.fail(failed))
  }

  // All that came while one flush was under way goes into the next one: the cost of a flush is shared.
  const write = Effect.fnUntraced(function* (done: Deferred.Deferred<void>) {
    while (queue.length > 0) {
      const commits = queue
      queue = []
      const exit = yield* Effect.exit(
        Effect.andThen(
          log.append(commits.flatMap((commit) => commit.events)),
          Effect.suspend(() => options.publish(commits.flatMap((commit) => count(state, options, commit))))
        )
      )
      if (Exit.isFailure(exit)) refuse(commits, exit.cause)
      else for (const commit of commits) answer(commit, Effect.void)
    }
    writer = undefined
    Deferred.doneUnsafe(done, Effect.void)
  })

  return {
    writing: () => unanswered > 0,
    idle: Effect.suspend(() => (writer === undefined ? Effect.void : Deferred.await(writer))),
    commit: (events, onCounted) =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          if (failed !== undefined) return Effect.fail(failed)
          const done = Deferred.makeUnsafe<void, WriteError>()
          queue.push({ events, onCounted, done })
          unanswered++
          if (writer !== undefined) return Deferred.await(done)
          writer = Deferred.makeUnsafe<void>()
          return Effect.andThen(Effect.forkDetach(write(writer), { startImmediately: true }), Deferred.await(done))
        })
      )
  }
}

/** Folds the events in, with whatever has to happen in the same instant. */
const count = (state: State, options: Options, commit: Commit): ReadonlyArray<Entry> => {
  const before = state.cursor
  for (const event of commit.events) evolve(state, event)
  commit.onCounted?.()
  for (const event of commit.events) options.counted(event)
  return commit.events.map((event, index) => ({ _tag: "Entry", cursor: before + index + 1, event }))
}

/** A defect ends the run as an error does, or the writer would be waited for for ever. */
const errorOf = (log: string, cause: Cause.Cause<WriteError>): WriteError => {
  const fail = cause.reasons.find(Cause.isFailReason)
  return (
    fail?.error ??
    new StorageError({
      operation: "append",
      log,
      remedy: "This is a fault of the storage's adapter or of shiftboss: report it, and start again.",
      cause: Cause.squash(cause)
    })
  )
}
