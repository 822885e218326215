/**
 * Logs in this process's memory that keep their entries as values: nobody loses power, tears a line or comes from
 * elsewhere here. So neither text nor checksums nor leases are needed, and an append is done in the instant it is made.
 */
import { Clock, Effect, Option, Stream } from "effect"
import type { Json, Log, Storage } from "../../Storage.ts"
import { LogHeld } from "../../StorageError.ts"
import { copyOf } from "../json.ts"
import { fail, notJson, type Operation, scopeEnded } from "./store.ts"

interface Memory {
  /** Each log's entries: appended to in place, and another array after a replacement. */
  readonly logs: Map<string, Array<Json>>
  /** The logs that are held, and since when in epoch milliseconds. */
  readonly held: Map<string, number>
}

/** So many entries a reading copies at a time. */
const chunk = 4096

const noAdvice = { remedy: () => undefined }

const kept = (entry: Json): Json => {
  const copy: Json | undefined = copyOf(entry)
  if (copy === undefined) throw notJson()
  return copy
}

/** The entries there are when the reading begins. */
const read = ({ logs }: Memory, log: string): Stream.Stream<Json> =>
  Stream.suspend(() => {
    const entries = logs.get(log) ?? []
    const until = entries.length
    return Stream.paginate(0, (from) => {
      const next = Math.min(from + chunk, until)
      return Effect.succeed([
        entries.slice(from, next).map(copyOf),
        next < until ? Option.some(next) : Option.none()
      ] as const)
    })
  })

/** Fails when somebody has the log. */
const free = ({ held }: Memory, log: string): Effect.Effect<void, LogHeld> =>
  Effect.suspend(() => {
    const since = held.get(log)
    if (since === undefined) return Effect.void
    const remedy = "It is at work: stop it, or wait for it to end."
    return Effect.fail(new LogHeld({ log, host: "this host", process: "this process", since, remedy }))
  })

const append = ({ logs }: Memory, log: string, added: ReadonlyArray<Json>): void => {
  const entries = logs.get(log)
  if (entries !== undefined) for (const entry of added) entries.push(entry)
  else if (added.length > 0) logs.set(log, [...added])
}

/** The log of a holder, until `close`. */
const held = (memory: Memory, name: string) => {
  let isOpen = true
  const write = (operation: Operation, entries: ReadonlyArray<Json>, put: (entries: Array<Json>) => void) =>
    Effect.suspend(() => {
      if (!isOpen) return Effect.fail(fail(noAdvice, operation, name, scopeEnded()))
      return Effect.succeed(put(entries.map(kept)))
    })
  const log: Log<Json> = {
    name,
    replay: read(memory, name),
    append: (entries) => write("append", entries, (added) => append(memory, name, added)),
    replace: (entries) => write("replace", entries, (all) => void memory.logs.set(name, all))
  }
  const close = Effect.sync(() => {
    isOpen = false
    memory.held.delete(name)
  })
  return { log, close }
}

const open = Effect.fnUntraced(function* (memory: Memory, name: string) {
  const hold = Effect.gen(function* () {
    yield* free(memory, name)
    memory.held.set(name, yield* Clock.currentTimeMillis)
    return held(memory, name)
  })
  const { log } = yield* Effect.acquireRelease(hold, ({ close }) => close)
  return log
})

export const memoryOfValues = (): Storage["Service"] => {
  const memory: Memory = { logs: new Map(), held: new Map() }
  return {
    shared: false,
    open: (log) => open(memory, log),
    read: (log) => read(memory, log),
    list: (prefix = "") =>
      Stream.suspend(() => Stream.fromArray([...memory.logs.keys()].filter((log) => log.startsWith(prefix)))),
    remove: (log) =>
      Effect.andThen(
        free(memory, log),
        Effect.sync(() => void memory.logs.delete(log))
      )
  }
}
