/**
 * The log of a dispatcher, typed.
 */
import { Effect, Stream } from "effect"
import { DispatcherEvent, version } from "../../DispatcherEvent.ts"
import { readTyped, type Storage, typed } from "../../Storage.ts"
import { evolve, initial, type State } from "./state.ts"

const format = { entry: DispatcherEvent, version }

const open = (storage: Storage["Service"], log: string) =>
  Effect.map(storage.open(log), (opened) => typed(opened, format))

export const read = (storage: Storage["Service"], log: string) => readTyped(storage, log, format)

const fold = <E>(events: Stream.Stream<DispatcherEvent, E>): Effect.Effect<State, E> =>
  Stream.runFold(events, initial, evolve)

/** An open log and what it says. */
export const openWithState = Effect.fnUntraced(function* (storage: Storage["Service"], name: string) {
  const log = yield* open(storage, name)
  return { log, state: yield* fold(log.replay) }
})

/** What a log says, whoever is writing it. */
export const readState = (storage: Storage["Service"], log: string) => fold(read(storage, log))
