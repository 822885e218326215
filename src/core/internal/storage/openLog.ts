/**
 * Opens a log: holds it, finds where it stands, and makes the `Log` of it.
 */
import { Effect, type Scope, Stream } from "effect"
import type { Json, Log, OpenError } from "../../Storage.ts"
import type { LogCorrupt, LogHeld, LogTooNew, StorageError } from "../../StorageError.ts"
import { entries, type ReadingError, survey } from "./entries.ts"
import { hold, keep, raise } from "./holder.ts"
import { Ledger } from "./ledger.ts"
import { decodeRecord } from "./record.ts"
import { fail, guarded, type Store } from "./store.ts"
import { Writer } from "./writer.ts"

/** Where the log ends, told from its last lines; nothing when they alone do not say it beyond doubt. */
const ledgerOfEnding = (log: string, lines: ReadonlyArray<string>): Ledger | undefined => {
  for (const [index, line] of lines.entries()) {
    const record = decodeRecord(line)
    if (typeof record === "string" || record.seq !== record.first) continue
    const ledger = Ledger.from(log, record)
    for (const rest of lines.slice(index)) {
      if (ledger.read(rest, undefined) !== undefined) return undefined
    }
    return ledger.isWhole ? ledger : undefined
  }
  return undefined
}

const locate = Effect.fnUntraced(function* (
  store: Store,
  log: string,
  writer: Writer
): Effect.fn.Return<Ledger, StorageError | LogCorrupt | LogTooNew> {
  if (store.encoded.ending !== undefined) {
    const { first, last } = yield* guarded(store, "open", log)(store.encoded.ending(log))
    const problem = first === undefined ? undefined : new Ledger(log).read(first, undefined)
    if (problem !== undefined) return yield* problem
    const ledger = ledgerOfEnding(log, last)
    if (ledger !== undefined) {
      writer.begin(ledger)
      return ledger
    }
  }
  const ledger = yield* survey(store, "open", log)
  writer.begin(ledger)
  writer.know(ledger)
  return ledger
})

/** The entries acknowledged when the reading begins. */
const replay = (store: Store, log: string, writer: Writer): Stream.Stream<Json, ReadingError> =>
  Stream.suspend(() => {
    const { generation, next: until } = writer
    if (until === 1) return Stream.empty
    return entries(store, log, {
      operation: "replay",
      until,
      isCurrent: () => generation === writer.generation,
      onEnd: (ledger) => writer.know(ledger)
    }).pipe(Stream.catchTag("Outdated", () => replay(store, log, writer)))
  })

export const readLog = (store: Store, log: string): Stream.Stream<Json, ReadingError> =>
  entries(store, log, { operation: "read" }).pipe(Stream.catchTag("Outdated", Stream.die))

export const removeLog = (store: Store, log: string): Effect.Effect<void, StorageError | LogHeld> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { epoch } = yield* hold(store, "remove", log, Effect.void)
      const removed = yield* guarded(store, "remove", log)(store.encoded.remove(log, epoch))
      if (!removed) return yield* fail(store, "remove", log, new Error("another holder took it in the meantime"))
    })
  )

export const listLogs = (store: Store, prefix: string): Stream.Stream<string, StorageError> =>
  store.encoded.names.pipe(
    Stream.mapError((cause) => fail(store, "list", `${prefix}*`, cause)),
    Stream.filter((name) => name.startsWith(prefix))
  )

export const openLog = Effect.fnUntraced(function* (
  store: Store,
  log: string
): Effect.fn.Return<Log<Json>, OpenError, Scope.Scope> {
  const writer = new Writer(store, log)
  const held = yield* hold(store, "open", log, writer.close)
  const ledger = yield* locate(store, log, writer)
  // Not to be interrupted between two holds, of which nobody would give the second one back.
  if (ledger.epoch >= held.epoch) yield* Effect.uninterruptible(raise(store, log, held, ledger.epoch))
  writer.epoch = held.epoch
  if (store.shared) yield* Effect.forkScoped(keep(store, log, held, writer.lose))
  return {
    name: log,
    replay: replay(store, log, writer),
    append: (entries) => writer.write("append", entries),
    replace: (entries) => writer.write("replace", entries)
  }
})
