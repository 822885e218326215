/**
 * The port for records that outlive the process: named, exclusive, fenced, append-only logs of JSON entries.
 */
import { Context, type Duration, Effect, Layer, type Schema, type Scope, type Stream } from "effect"
import { memoryEncoded } from "./internal/storage/memory.ts"
import { listLogs, openLog, readLog, removeLog } from "./internal/storage/openLog.ts"
import { makeStore } from "./internal/storage/store.ts"
import { typedEntries, typedLog } from "./internal/storage/typed.ts"
import { memoryOfValues } from "./internal/storage/values.ts"
import type { LogCorrupt, LogFenced, LogHeld, LogTooNew, StorageError } from "./StorageError.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What an entry may be: what JSON keeps. */
export type Json = Schema.Json

/** An open log. `A` is an entry: JSON, or what a schema makes of it (see `typed`). */
export interface Log<out A, in B = A> {
  readonly name: string
  /** All acknowledged entries, oldest first. */
  readonly replay: Stream.Stream<A, StorageError | LogCorrupt | LogTooNew>
  /**
   * Adds the entries: all or none of them survive a crash, and when it succeeds they survive a power loss.
   *
   * *Gotcha*: one that failed or was interrupted has an unknown outcome until the log is opened again.
   */
  readonly append: (entries: ReadonlyArray<B>) => Effect.Effect<void, StorageError | LogFenced>
  /** Makes these entries the whole content, atomically: compaction. */
  readonly replace: (entries: ReadonlyArray<B>) => Effect.Effect<void, StorageError | LogFenced>
}

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

export { LogCorrupt, LogFenced, LogHeld, LogTooNew, StorageError } from "./StorageError.ts"

/** What `open` can fail with. */
export type OpenError = StorageError | LogHeld | LogCorrupt | LogTooNew

// -----------------------------------------------------------------------------
// service
// -----------------------------------------------------------------------------

/** Named logs of JSON entries. Any string is a name; two names never share a log. */
export class Storage extends Context.Service<
  Storage,
  {
    /** Becomes the one holder of the log until the scope closes. A log that does not exist is empty. */
    readonly open: (log: string) => Effect.Effect<Log<Json>, OpenError, Scope.Scope>
    /** A consistent prefix of the log, also while a writer is at work. */
    readonly read: (log: string) => Stream.Stream<Json, StorageError | LogCorrupt | LogTooNew>
    /** The names of the logs that exist and begin with the prefix, in no particular order. */
    readonly list: (prefix?: string) => Stream.Stream<string, StorageError>
    /** Removes a log that nobody holds. Succeeds when there is none. */
    readonly remove: (log: string) => Effect.Effect<void, StorageError | LogHeld>
    /** Whether other processes may work on these logs. */
    readonly shared: boolean
  }
>()("shiftboss/core/Storage") {}

// -----------------------------------------------------------------------------
// the seam adapters implement
// -----------------------------------------------------------------------------

/** Who asks for a log, as far as the store's environment can tell. */
export interface Identity {
  /** Drawn anew for each store, from a source that never repeats. */
  readonly id: string
  readonly host: string
  readonly process: string
  /** What `alive` needs to tell this process from all others, such as its start time. */
  readonly proof?: Json | undefined
}

/** The lock on a log. */
export interface Lock {
  readonly epoch: number
  /** The holder as it was given to `acquire`; any other text when it cannot be read. */
  readonly holder: string
  /** When it was acquired or last renewed, in epoch milliseconds. */
  readonly renewedAt: number
  /** What a person removes to free the log, such as the path of a lock file. */
  readonly where?: string | undefined
}

/** What came of an acquisition: the epoch it holds the log under, or the lock in its way. */
export type Acquired =
  | { readonly _tag: "Acquired"; readonly epoch: number }
  | { readonly _tag: "Held"; readonly lock: Lock }

export interface AcquireOptions {
  /** In epoch milliseconds. */
  readonly now: number
  /**
   * A lock that may be taken over, but only while the current one has the same epoch, holder and time. Without proof of
   * death its holder may come back: what it then writes must not reach the log.
   */
  readonly dead?: { readonly lock: Lock; readonly proven: boolean } | undefined
}

/**
 * What a store has to do, all in strings: everything else about logs is made above it, see `fromEncoded`. A call may
 * fail with anything; what it fails with becomes the `cause` of a StorageError. `docs/ports.md` shows a whole adapter.
 */
export interface Encoded {
  /**
   * Takes the log when it is free, or when its lock is exactly `options.dead`; otherwise answers the lock that is. Of
   * two that try at once one succeeds. Each success has a higher epoch than any before it, also after a release.
   */
  readonly acquire: (log: string, holder: string, options: AcquireOptions) => Effect.Effect<Acquired, unknown>
  /** Sets the lock's time. False when the epoch no longer holds the log. */
  readonly renew: (log: string, epoch: number, now: number) => Effect.Effect<boolean, unknown>
  /** Frees the log, unless the epoch no longer holds it. */
  readonly release: (log: string, epoch: number) => Effect.Effect<void, unknown>
  /**
   * Makes the lines follow the first `standing` ones, and drops what else the store holds beyond those: it was never
   * acknowledged. All or none of them survive a crash, and when it succeeds they survive a power loss. False when the
   * epoch does not hold the log, as judged after the lines were written: then they may be there, but never after lines of a
   * later epoch.
   */
  readonly append: (
    log: string,
    epoch: number,
    standing: number,
    lines: ReadonlyArray<string>
  ) => Effect.Effect<boolean, unknown>
  /** Makes the lines the whole content, atomically and durably. False when the epoch does not hold the log. */
  readonly replace: (log: string, epoch: number, lines: ReadonlyArray<string>) => Effect.Effect<boolean, unknown>
  /**
   * The lines as they are at one moment, in bounded chunks; nothing when there is no such log. A store that can tear a line
   * gives what is left of it with a NUL at its end, which tells it from a line that was damaged later.
   */
  readonly lines: (log: string) => Stream.Stream<string, unknown>
  /**
   * The first line and some of the last, so that opening a long log need not read it twice: the rest is then read when it
   * is replayed, or before the first write. Optional.
   */
  readonly ending?: (log: string) => Effect.Effect<Ending, unknown>
  /** The names of the logs that have lines. */
  readonly names: Stream.Stream<string, unknown>
  /** Removes all lines, but not the epoch. False when the epoch does not hold the log. */
  readonly remove: (log: string, epoch: number) => Effect.Effect<boolean, unknown>
}

/** See `Encoded.ending`. */
export interface Ending {
  readonly first: string | undefined
  readonly last: ReadonlyArray<string>
}

export interface EncodedOptions {
  /** Whether other processes may work on the logs. If not, no lease is renewed: nobody watches it. Default: true. */
  readonly shared?: boolean | undefined
  /** After how long without renewal a holder of which nothing else is known counts as gone. Default 30 seconds. */
  readonly lease?: Duration.Input | undefined
  /** How long closing a log waits for a store that does not answer. Default 5 seconds. */
  readonly closeWithin?: Duration.Input | undefined
  /** Who opens the logs. Default: a random id on an unknown host. */
  readonly identity?: Effect.Effect<Identity> | undefined
  /** Whether that holder lives; nothing when that cannot be proven, and then its lease decides. Default: nothing. */
  readonly alive?: ((holder: Identity) => Effect.Effect<boolean | undefined>) | undefined
  /** What a person can do about a cause, as a sentence without its full stop; nothing for the general advice. */
  readonly remedy?: ((operation: StorageError["operation"], cause: unknown) => string | undefined) | undefined
}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * Makes a storage of a store of strings. Holders, epochs, leases, grouping, checksums and the judgement of damage are
 * made here, once for every adapter. Throws when an option makes no sense.
 */
export const fromEncoded = (encoded: Encoded, options: EncodedOptions = {}): Storage["Service"] => {
  const store = makeStore(encoded, options)
  return Storage.of({
    shared: store.shared,
    open: Effect.fn("Storage.open")((log: string) => openLog(store, log)),
    read: (log) => readLog(store, log),
    list: (prefix) => listLogs(store, prefix ?? ""),
    remove: Effect.fn("Storage.remove")((log: string) => removeLog(store, log))
  })
}

/** The seam over this process's memory: what tests put faults into. `layerMemory` is quicker, and has no text to damage. */
export const makeMemory: () => Encoded = () => memoryEncoded()

/** What entries are, in this version of the program and in those before it. */
export interface EntryVersions<A, I> {
  readonly entry: Schema.Codec<A, I>
  /** A whole number that rises whenever the schema comes to write something its predecessor could not read. */
  readonly version: number
  /** Makes an entry as an earlier version stored it into what the schema decodes. Default: it is decoded as it is. */
  readonly upgrade?: ((stored: Json, version: number) => Json) | undefined
}

/**
 * The log with entries of a schema: each is stored with its version. Replaying fails with LogTooNew at an entry of a later
 * version, with LogCorrupt at one that does not decode. An entry that the schema cannot encode is a defect.
 */
export const typed = <A, I>(log: Log<Json>, versions: EntryVersions<A, I>): Log<A> => typedLog(log, versions)

/** Reads a log of such entries, as `Storage.read` does, failing as the replay of the typed log does. */
export const readTyped = <A, I>(
  storage: Storage["Service"],
  log: string,
  versions: EntryVersions<A, I>
): Stream.Stream<A, StorageError | LogCorrupt | LogTooNew> => typedEntries(log, storage.read(log), versions)

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/** Logs in this process's memory, with the same guarantees but one: they end with the layer. */
export const layerMemory: Layer.Layer<Storage> = Layer.sync(Storage, memoryOfValues)
