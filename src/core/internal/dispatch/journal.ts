/**
 * The one writer of a dispatcher's log: events are durable, then they count, in the order of the log.
 */
import { Cause, Deferred, Effect } from "effect"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import { type Log, type LogFenced, StorageError } from "../../Storage.ts"
import { evolve, type State } from "./state.ts"

export type WriteError = StorageError | LogFenced

interface Commit {
  readonly events: ReadonlyArray<DispatcherEvent>
  /** Runs in the same instant as the events begin to count, so that nobody sees the one without the other. */
  readonly then: (() => void) | undefined
  readonly done: Deferred.Deferred<void, WriteError>
}

export interface Journal {
  /** Cannot be interrupted: when it ends, the events count, or the run is broken. Those of one call go in whole or not at all. */
  readonly commit: (
    events: ReadonlyArray<DispatcherEvent>,
    then?: () => void
  ) => Effect.Effect<void, WriteError>
  /** The storage has not yet answered a commit. */
  readonly writing: () => boolean
  /** Succeeds when nothing is being written. */
  readonly idle: Effect.Effect<void>
}

export const make = (
  log: Log<DispatcherEvent>,
  state: State,
  options: {
    /** Called when an event counts. */
    readonly counted: (event: DispatcherEvent, cursor: number) => void
    readonly broken: (error: WriteError) => void
  }
): Journal => {
  let queue: Array<Commit> = []
  let failed: WriteError | undefined
  let writer: Deferred.Deferred<void> | undefined

  const count = (commit: Commit) => {
    let { cursor } = state
    for (const event of commit.events) evolve(state, event)
    commit.then?.()
    for (const event of commit.events) options.counted(event, ++cursor)
    Deferred.doneUnsafe(commit.done, Effect.void)
  }

  const refuse = (commits: ReadonlyArray<Commit>, error: WriteError) => {
    for (const commit of commits) Deferred.doneUnsafe(commit.done, Effect.fail(error))
  }

  // All that came while one flush was under way goes into the next one: the cost of a flush is shared.
  const write = Effect.fnUntraced(function*(done: Deferred.Deferred<void>) {
    while (queue.length > 0) {
      const commits = queue
      queue = []
      yield* Effect.matchCause(log.append(commits.flatMap((commit) => commit.events)), {
        onSuccess: () => commits.forEach(count),
        onFailure: (cause) => {
          failed = errorOf(log.name, cause)
          options.broken(failed)
          refuse([...commits, ...queue], failed)
          queue = []
        }
      })
    }
    writer = undefined
    Deferred.doneUnsafe(done, Effect.void)
  })

  const commit = (events: ReadonlyArray<DispatcherEvent>, then?: () => void) =>
    Effect.uninterruptible(Effect.suspend(() => {
      if (failed !== undefined) return Effect.fail(failed)
      const done = Deferred.makeUnsafe<void, WriteError>()
      queue.push({ events, then, done })
      if (writer !== undefined) return Deferred.await(done)
      writer = Deferred.makeUnsafe<void>()
      return Effect.andThen(Effect.forkDetach(write(writer), { startImmediately: true }), Deferred.await(done))
    }))

  return {
    commit,
    writing: () => writer !== undefined,
    idle: Effect.suspend(() => writer === undefined ? Effect.void : Deferred.await(writer))
  }
}

/** A defect of an adapter ends the run as its errors do, or the writer would be waited for for ever. */
const errorOf = (log: string, cause: Cause.Cause<WriteError>): WriteError => {
  const fail = cause.reasons.find(Cause.isFailReason)
  return fail?.error ?? new StorageError({
    operation: "append",
    log,
    remedy: "This is a fault of the storage's adapter: report it there, and start again.",
    cause: Cause.squash(cause)
  })
}
