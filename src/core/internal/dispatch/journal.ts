/**
 * The one writer of a dispatcher's log: events are durable, then they count, in the order of the log.
 */
import { Cause, Deferred, Effect, Exit } from "effect"
import type { Entry } from "../../Dispatcher.ts"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Log } from "../../Storage.ts"
import { type LogFenced, StorageError } from "../../StorageError.ts"
import * as Inbox from "./inbox.ts"
import { evolve, type State } from "./state.ts"

export type WriteError = StorageError | LogFenced

/** Events that go in whole or not at all. */
interface Commit {
  readonly events: ReadonlyArray<DispatcherEvent>
  /** Runs in the same instant as the events begin to count, so that nobody sees the one without the other. */
  readonly onCounted: (() => void) | undefined
  /** They count, or the run is broken. */
  readonly onAnswered: (result: Exit.Exit<void, WriteError>) => void
}

export interface Journal {
  /** Cannot be interrupted: when it ends, the events count, or the run is broken. */
  readonly commit: (events: ReadonlyArray<DispatcherEvent>, onCounted?: () => void) => Effect.Effect<void, WriteError>
  /** The same, without waiting for it. */
  readonly post: (commit: Commit) => void
  /** Why nothing is written any more. */
  readonly failure: () => WriteError | undefined
  /** The storage has not yet answered a commit. */
  readonly writing: () => boolean
  /** Succeeds when nothing is being written. */
  readonly idle: Effect.Effect<void>
  /** Writes what is committed, until it is interrupted. */
  readonly writer: Effect.Effect<never>
}

export interface Options {
  /** Called when an event counts. */
  readonly counted: (event: DispatcherEvent) => void
  /** Tells others of events that count, before those who wrote them go on. */
  readonly publish: (entries: ReadonlyArray<Entry>) => Effect.Effect<unknown>
  readonly broken: (error: WriteError) => void
}

export const make = (log: Log<DispatcherEvent>, state: State, options: Options): Journal => {
  let failed: WriteError | undefined
  let unanswered = 0

  // Who waits goes on inside `onAnswered`: everything has to be in order before it.
  const answer = (commits: ReadonlyArray<Commit>, result: Exit.Exit<void, WriteError>) => {
    for (const commit of commits) {
      unanswered--
      commit.onAnswered(result)
    }
  }

  const refuse = (commits: ReadonlyArray<Commit>, cause: Cause.Cause<WriteError>) => {
    failed = errorOf(log.name, cause)
    options.broken(failed)
    answer(commits, Exit.fail(failed))
  }

  const write = (commits: ReadonlyArray<Commit>): Effect.Effect<void> => {
    const failure = failed
    if (failure !== undefined) return Effect.sync(() => answer(commits, Exit.fail(failure)))
    const appended = log.append(commits.length === 1 ? commits[0]!.events : commits.flatMap(({ events }) => events))
    const counted = Effect.flatMap(appended, () =>
      options.publish(commits.flatMap((commit) => count(state, options, commit)))
    )
    return Effect.matchCause(counted, {
      onFailure: (cause) => refuse(commits, cause),
      onSuccess: () => answer(commits, Exit.void)
    })
  }

  // All that came while one flush was under way goes into the next one: the cost of a flush is shared.
  const inbox = Inbox.make(write)

  const post = (commit: Commit): void => {
    if (failed !== undefined) return commit.onAnswered(Exit.fail(failed))
    unanswered++
    inbox.hand(commit)
  }

  return {
    failure: () => failed,
    writing: () => unanswered > 0,
    idle: inbox.idle,
    writer: inbox.worker,
    post,
    commit: (events, onCounted) =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          let result: Exit.Exit<void, WriteError> | undefined
          const answered = Deferred.makeUnsafe<void, WriteError>()
          const onAnswered = (exit: Exit.Exit<void, WriteError>) => {
            result = exit
            Deferred.doneUnsafe(answered, exit)
          }
          post({ events, onCounted, onAnswered })
          return result ?? Deferred.await(answered)
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
