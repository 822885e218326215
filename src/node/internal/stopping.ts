/**
 * Taking down all processes of an attempt, and proof that they are gone.
 */
import { Data, Duration, Effect, Schedule } from "effect"
import { monotonicMillis } from "./clock.ts"
import { type Entry, entryOf, membersOf, type Root } from "./processTable.ts"

/** What is known of an attempt's processes. Grows whenever one looks, so that none is lost when its parent dies. */
export interface Family {
  readonly root: Root
  readonly known: Map<number, string>
  /** The root is a child of this process and has not been gone for long. */
  watched: boolean
}

export const familyOf = (root: Root, watched: boolean): Family => ({ root, known: new Map(), watched })

/** Those alive now. */
export const look = (family: Family): ReadonlyArray<Entry> => {
  const alive = membersOf(family.root, family.known, family.watched)
  family.known.clear()
  for (const { pid, startTime } of alive) family.known.set(pid, startTime)
  return alive
}

/** A host with too many files open cannot look for a while. When it still cannot in the end, that is a defect. */
export const patiently = <A>(see: () => A): Effect.Effect<A> =>
  Effect.try({ try: see, catch: (error) => new Unseen({ error }) }).pipe(
    Effect.retry({ schedule: Schedule.spaced("100 millis"), times: 50 }),
    Effect.orDie
  )

const seen = (family: Family): Effect.Effect<ReadonlyArray<Entry>> => patiently(() => look(family))

class Unseen extends Data.TaggedError("Unseen")<{ readonly error: unknown }> {
  override get message(): string {
    return `Whether the agent's processes are alive could not be found out: ${String(this.error)}`
  }
}

/** Processes of another user, or in an uninterruptible wait, cannot be killed: somebody has to be told. */
const stubbornMillis = 5000

/** Without their root the others get this long at most: nobody is left to end them in order. */
const orphansMillis = 500

/**
 * Asks the group of the root politely, waits for at most `grace`, and kills what is left until nothing is. Answers whether
 * there was anything.
 */
export const stopFamily = Effect.fnUntraced(function* (
  family: Family,
  signal: NodeJS.Signals,
  grace: Duration.Duration
) {
  let alive = yield* seen(family)
  if (alive.length === 0) return false
  const graceMillis = Duration.toMillis(grace)
  if (graceMillis > 0) {
    signalGroup(family.root, alive, signal)
    const start = yield* monotonicMillis
    let until = start + graceMillis
    let pause = 10
    for (let now = start; alive.length > 0 && now < until; now = yield* monotonicMillis) {
      yield* Effect.sleep(Math.min(pause, until - now))
      pause = Math.min(pause * 2, 200)
      alive = yield* seen(family)
      const orphaned = !alive.some(({ pid }) => pid === family.root.pid)
      if (orphaned) until = Math.min(until, (yield* monotonicMillis) + orphansMillis)
    }
  }
  // One that forks while it is looked for may be missed by one look, never by a look after everything seen is dead.
  const killing = yield* monotonicMillis
  for (let unseen = 0, pause = 5, warned = false; unseen < 2; alive = yield* seen(family)) {
    if (!warned && (yield* monotonicMillis) - killing > stubbornMillis) {
      warned = true
      yield* Effect.logWarning(
        `Processes that cannot be killed: ${alive.map(({ pid }) => pid).join(", ")}. End them by hand.`
      )
    }
    unseen = alive.length === 0 ? unseen + 1 : 0
    for (const entry of alive) kill(entry, "SIGKILL")
    if (unseen < 2) yield* Effect.sleep(pause)
    pause = alive.length === 0 ? 5 : Math.min(pause * 2, 200)
  }
  return true
})

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const signalGroup = (root: Root, alive: ReadonlyArray<Entry>, signal: NodeJS.Signals): void => {
  for (const entry of alive) {
    if (entry.group !== root.pid) continue
    kill(entry, signal)
    // A stopped process gets its signals only when it goes on.
    kill(entry, "SIGCONT")
  }
}

const kill = (entry: Entry, signal: NodeJS.Signals): void => {
  try {
    // Looked at again right before: meanwhile its pid may have become a stranger's.
    if (entryOf(entry.pid)?.startTime === entry.startTime) process.kill(entry.pid, signal)
  } catch {
    // It has just ended, or is not ours to signal, or could not be looked at; the next look tells.
  }
}
