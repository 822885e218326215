/**
 * A journal for callers that start before the one that runs.
 */
import { Effect, type Scope, Stream } from "effect"
import { SchedulesUnavailable } from "./errors.ts"
import type { ScheduleJournalShape } from "./shape.ts"

/** A journal that others may hold before there is one. */
export interface Connection {
  /** Fails with SchedulesUnavailable (`NotConnected`) before a journal is connected and after it is gone. */
  readonly journal: ScheduleJournalShape
  /** Passes requests on to this journal until the scope closes. A later one replaces it. */
  readonly connect: (journal: ScheduleJournalShape) => Effect.Effect<void, never, Scope.Scope>
}

export const connection = Effect.sync((): Connection => {
  let connected: ScheduleJournalShape | undefined
  // A journal may be connected twice: the number tells which scope the present connection belongs to.
  let connections = 0
  const notConnected = Effect.suspend(() => Effect.fail(new SchedulesUnavailable({ reason: "NotConnected" })))
  const pass = <A, E>(
    call: (journal: ScheduleJournalShape) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | SchedulesUnavailable> =>
    Effect.suspend((): Effect.Effect<A, E | SchedulesUnavailable> =>
      connected === undefined ? notConnected : call(connected)
    )
  return {
    journal: {
      run: pass((journal) => journal.run),
      tick: pass((journal) => journal.tick),
      drain: Effect.suspend(() => connected?.drain ?? Effect.void),
      list: pass((journal) => journal.list),
      pause: (workflowId, note) => pass((journal) => journal.pause(workflowId, note)),
      resume: (workflowId, note) => pass((journal) => journal.resume(workflowId, note)),
      runNow: (workflowId) => pass((journal) => journal.runNow(workflowId)),
      preview: (workflowId, count) => pass((journal) => journal.preview(workflowId, count)),
      explain: (workflowId, slot) => pass((journal) => journal.explain(workflowId, slot)),
      events: Stream.suspend(() => connected?.events ?? Stream.fromEffect(notConnected))
    },
    connect: (journal) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          connected = journal
          return ++connections
        }),
        (number) =>
          Effect.sync(() => {
            if (connections === number) connected = undefined
          })
      )
  }
})
