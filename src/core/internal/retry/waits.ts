/**
 * The waits of all turns, with one timer for all of them: a timer and its fiber for each, and a race with what may end the
 * wait early, would take more memory than all else that is kept of a turn.
 */
import { Clock, Deferred, Effect } from "effect"
import { type Due, makeDues } from "./dues.ts"

/** Why a wait came back: its time is over, or something has happened that is to be looked at. */
export type Woken = "over" | "early"

export interface Waits {
  /**
   * Comes back when the wall clock has reached `due`, or so many milliseconds have passed by a clock that is never set,
   * whichever is first: a wall clock that steps back does not stretch a wait, and time asleep counts.
   */
  readonly until: (turnId: string, due: number, millis: number) => Effect.Effect<Woken>
  /** Ends the wait of this turn, if it has one. */
  readonly wake: (turnId: string) => void
  readonly wakeAll: () => void
}

interface Waiting extends Due {
  readonly resume: (woken: Effect.Effect<Woken>) => void
}

/** Timers stand still while a machine is suspended, and the wall clock does not. */
const longestSleep = 30_000

const monotonicMillis = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1_000_000)

/** The timer runs as long as the scope is open, and while anything waits. */
export const makeWaits = Effect.gen(function* () {
  const waiting = makeDues<Waiting>()
  /** When the timer goes off, by the clock that is never set. */
  let alarm = Infinity
  /** The alarm was set anew. */
  let reset = Deferred.makeUnsafe<void>()

  const setAlarm = (at: number) => {
    alarm = at
    Deferred.doneUnsafe(reset, Effect.void)
  }

  const forget = (one: Waiting) => {
    waiting.remove(one)
    if (waiting.size() === 0 && alarm !== Infinity) setAlarm(Infinity)
  }

  const end = (one: Waiting, woken: Woken) => {
    if (!waiting.has(one)) return
    forget(one)
    one.resume(Effect.succeed(woken))
  }

  const look = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const running = yield* monotonicMillis
    const { over, left } = waiting.take(now, running)
    alarm = left === Infinity ? Infinity : running + Math.min(left, longestSleep)
    // Each may wake others, or wait again.
    for (const one of over) end(one, "over")
  })

  const keepTime = Effect.gen(function* () {
    reset = Deferred.makeUnsafe()
    const set = Deferred.await(reset)
    if (alarm === Infinity) return yield* set
    const sleep = Effect.sleep(Math.max(0, alarm - (yield* monotonicMillis)))
    yield* Effect.raceFirst(Effect.andThen(sleep, look), set)
  })
  yield* Effect.forkScoped(Effect.forever(keepTime))

  const waits: Waits = {
    until: (turnId, due, millis) =>
      Effect.flatMap(Effect.all([Clock.currentTimeMillis, monotonicMillis]), ([now, running]) =>
        Effect.callback<Woken>((resume) => {
          const one = { turnId, due, latest: running + millis, resume }
          waiting.add(one)
          const look = running + Math.min(millis, due - now, longestSleep)
          if (look < alarm) setAlarm(look)
          return Effect.sync(() => forget(one))
        })
      ),
    wake: (turnId) => {
      const one = waiting.of(turnId)
      if (one !== undefined) end(one, "early")
    },
    wakeAll: () => {
      for (const one of waiting.all()) end(one, "early")
    }
  }
  return waits
})
