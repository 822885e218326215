/**
 * The formats of logs: what an entry is, and what is made of a log of them.
 */
import { Effect, Layer, type Schema, Stream } from "effect"
import {
  Dispatcher,
  DispatcherEvent,
  Improvements,
  Rechecks,
  RetryPolicy,
  type ScheduleJournal,
  Storage,
  type Turn
} from "shiftboss"
import { stopLog } from "../../src/core/internal/dispatch/control.ts"
import { evolve as evolveDispatcher, initial, type State } from "../../src/core/internal/dispatch/state.ts"
import { turnLog } from "../../src/core/internal/retry/entries.ts"
import { evolve as evolveSchedule } from "../../src/core/internal/schedule/evolve.ts"
import { runLog } from "../../src/core/internal/schedule/inProcess.ts"
import { scheduleLog } from "../../src/core/internal/schedule/journal.ts"

type Stored = Storage.Storage["Service"]

export interface Format {
  /** Absent where entries are of the host: any JSON. */
  readonly entries?: { readonly entry: Schema.Codec<unknown, unknown>; readonly version: number }
  /** All that the log says, as data. Fails as reading it does. */
  readonly view: (storage: Stored, log: string) => Effect.Effect<unknown, unknown>
}

const fold =
  <A, I, B>(versions: Storage.EntryVersions<A, I>, from: () => B, add: (state: B, entry: A) => B) =>
  (storage: Stored, log: string) =>
    Stream.runFold(Storage.readTyped(storage, log, versions), from, add)

const dispatcherLog = { entry: DispatcherEvent.DispatcherEvent, version: DispatcherEvent.version }

/** What is known of each case: what a next run goes by. */
const casesOf = (state: State) =>
  Object.fromEntries(
    Array.from(state.cases, ([id, { rev, round, phase, value, reason, steps, wakes, holds, told }]) => [
      id,
      {
        rev,
        round,
        phase,
        value,
        reason,
        steps: steps && [...steps],
        wakes: wakes && [...wakes],
        holds: holds && [...holds],
        told: told && [...told]
      }
    ])
  )

const dispatcherView = (storage: Stored, log: string) =>
  Effect.gen(function* () {
    const dispatcher = yield* Dispatcher.Dispatcher
    const improvements = yield* Improvements.Improvements
    const state = yield* fold(dispatcherLog, initial, evolveDispatcher)(storage, log)
    return {
      snapshot: yield* dispatcher.snapshot,
      pending: yield* improvements.pending,
      applies: yield* improvements.applies,
      rechecks: yield* (yield* Rechecks.Rechecks).all,
      unstable: yield* (yield* Rechecks.Rechecks).unstable,
      cases: casesOf(state)
    }
  }).pipe(Effect.provide(Dispatcher.layerNamed(log).pipe(Layer.provide(Layer.succeed(Storage.Storage, storage)))))

const turnsView = fold(
  turnLog,
  (): { [turnId: string]: Turn.State } => ({}),
  (states, event) => {
    const state = RetryPolicy.evolve(states[event.turnId], event)
    return state === undefined ? states : { ...states, [event.turnId]: state }
  }
)

const schedulesView = fold(
  scheduleLog,
  (): { [workflowId: string]: ScheduleJournal.ScheduleProgress } => ({}),
  (all, event) => {
    const progress = evolveSchedule(all[event.workflowId], event)
    return progress === undefined ? all : { ...all, [event.workflowId]: progress }
  }
)

/** The entries themselves are all that is said. */
const entriesView = (storage: Stored, log: string) => Stream.runCollect(storage.read(log))

const named = <const Formats extends { readonly [name: string]: Format }>(formats: Formats) => formats

export const formats = named({
  dispatcher: { entries: dispatcherLog, view: dispatcherView },
  turns: { entries: turnLog, view: turnsView },
  schedules: { entries: scheduleLog, view: schedulesView },
  "schedule runs": { entries: runLog, view: entriesView },
  stops: { entries: stopLog, view: entriesView },
  plain: { view: entriesView }
})
export type FormatName = keyof typeof formats
export const isFormatName = (name: string): name is FormatName => Object.hasOwn(formats, name)
