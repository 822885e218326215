/**
 * Events of turns as entries of a log.
 */
import { Stream } from "effect"
import { type Json, type Log, typed } from "../../Storage.ts"
import { Event, type State } from "../../Turn.ts"
import { evolve } from "./evolve.ts"

/** What a log of turns holds, in this version. */
export const turnLog = { entry: Event, version: 1 }

export const eventLog = (log: Log<Json>): Log<Event> => typed(log, turnLog)

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
