/**
 * Events of turns as entries of a log.
 */
import { Effect, Schema, Stream } from "effect"
import { type Json, type Log, LogCorrupt } from "../../Storage.ts"
import { Event, type State } from "../../Turn.ts"
import { evolve } from "./evolve.ts"

const codec = Schema.toCodecJson(Event)
const decode = Schema.decodeUnknownEffect(codec)
const encode = Schema.encodeSync(codec)

export const eventLog = (log: Log<Json>): Log<Event> => ({
  name: log.name,
  replay: log.replay.pipe(
    Stream.zipWithIndex,
    Stream.mapEffect(([entry, index]) =>
      Effect.mapError(
        decode(entry),
        ({ message }) => new LogCorrupt({ log: log.name, line: index + 1, found: message })
      )
    )
  ),
  append: (events) => log.append(events.map((event) => encode(event))),
  replace: (events) => log.replace(events.map((event) => encode(event)))
})

/** The states of all turns in the log. */
export const readStates = (log: Log<Event>) =>
  Stream.runFold(
    log.replay,
    () => new Map<string, State>(),
    (states, event) => {
      const state = evolve(states.get(event.turnId), event)
      if (state !== undefined) states.set(event.turnId, state)
      return states
    }
  )
