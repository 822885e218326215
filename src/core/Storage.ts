/**
 * The port for records that outlive the process: named, exclusive, fenced, append-only logs of JSON entries.
 */
import { Context, Effect, Layer, Schema, type Scope, Stream } from "effect"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What an entry may be: what JSON keeps. */
export type Json = Schema.Json

/** Who holds a log: enough to tell a person whom to stop, and a machine whether it is still alive. */
export interface Holder {
  /** Drawn anew for each `open`, so that a reused process id is never taken for its predecessor. */
  readonly id: string
  readonly host: string
  readonly process: string
  /** When it became the holder, in epoch milliseconds. */
  readonly since: number
}

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

/** The store did not do what was asked. Worth retrying once what `cause` names is mended: nothing is half-written. */
export class StorageError extends Schema.TaggedError<StorageError>()("StorageError", {
  operation: Schema.Literals(["open", "append", "replace", "replay", "read", "list", "remove", "release"]),
  log: Schema.String,
  /** What to do about it, as a sentence. */
  remedy: Schema.String,
  cause: Schema.Defect()
}) {
  override get message(): string {
    const cause = this.cause instanceof Error ? this.cause.message : String(this.cause)
    return `could not ${this.operation} the log "${this.log}": ${cause}. ${this.remedy}`
  }
}

/** Another holder has the log. Worth retrying when it is gone. */
export class LogHeld extends Schema.TaggedError<LogHeld>()("LogHeld", {
  log: Schema.String,
  host: Schema.String,
  process: Schema.String,
  /** Epoch milliseconds. */
  since: Schema.Number,
  /** How to free it, as a sentence. */
  remedy: Schema.String
}) {
  override get message(): string {
    return `the log "${this.log}" is held by ${this.process} on ${this.host}. ${this.remedy}`
  }
}

/** Somebody else became the holder in the meantime: what was being written is not in the log. Never worth retrying. */
export class LogFenced extends Schema.TaggedError<LogFenced>()("LogFenced", { log: Schema.String }) {
  override get message(): string {
    return `the log "${this.log}" was taken over by another holder; nothing more is written from here. ` +
      `Open it again to go on, after making sure that only one process is meant to work on it.`
  }
}

/** The log is damaged where it was acknowledged. It was left exactly as it was; not worth retrying. */
export class LogCorrupt extends Schema.TaggedError<LogCorrupt>()("LogCorrupt", {
  log: Schema.String,
  /** The line the damage was found in, counted from 1. */
  line: Schema.Number,
  found: Schema.String
}) {
  override get message(): string {
    return `the log "${this.log}" is damaged in line ${this.line}: ${this.found}. It was left as it is: ` +
      `restore it from a copy, or move it away to begin anew.`
  }
}

/** A newer version of the library wrote the log. It was not touched. */
export class LogTooNew extends Schema.TaggedError<LogTooNew>()("LogTooNew", {
  log: Schema.String,
  version: Schema.Number,
  supported: Schema.Number
}) {
  override get message(): string {
    return `the log "${this.log}" has format ${this.version}; this version of shiftboss reads up to ${this.supported}. ` +
      `Upgrade shiftboss, or give it another place for its logs.`
  }
}

/** What `open` can fail with. */
export type OpenError = StorageError | LogHeld | LogCorrupt | LogTooNew

// -----------------------------------------------------------------------------
// service
// -----------------------------------------------------------------------------

/** Named logs of JSON entries. Any string is a name; two names never share a log. */
export class Storage extends Context.Service<Storage, {
  /** Becomes the one holder of the log until the scope closes. A log that does not exist is empty. */
  readonly open: (log: string) => Effect.Effect<Log<Json>, OpenError, Scope.Scope>
  /** A consistent prefix of the log, also while a writer is at work. */
  readonly read: (log: string) => Stream.Stream<Json, StorageError | LogCorrupt | LogTooNew>
  /** The names of the logs that exist and begin with the prefix, in no particular order. */
  readonly list: (prefix?: string) => Stream.Stream<string, StorageError>
  /** Removes a log that nobody holds. Succeeds when there is none. */
  readonly remove: (log: string) => Effect.Effect<void, StorageError | LogHeld>
  /** Other processes may write these logs: false for logs in this process's memory. */
  readonly shared: boolean
}>()("shiftboss/core/Storage") {}

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/** What a typed log keeps. */
export interface Format<S extends Schema.Constraint> {
  readonly entry: S
  readonly version: number
}

export const typed = <S extends Schema.Codec<unknown, Json>>(log: Log<Json>, format: Format<S>): Log<S["Type"]> => {
  const codec = Schema.toCodecJson(format.entry)
  const encode = Schema.encodeEffect(codec)
  const decode = Schema.decodeUnknownEffect(codec)
  const all = (entries: ReadonlyArray<S["Type"]>) => Effect.orDie(Effect.forEach(entries, (entry) => encode(entry)))
  return {
    name: log.name,
    replay: Stream.mapEffect(log.replay, (entry) => Effect.orDie(decode(entry))),
    append: (entries) => Effect.flatMap(all(entries), log.append),
    replace: (entries) => Effect.flatMap(all(entries), log.replace)
  }
}

export const decoded = <S extends Schema.Codec<unknown, Json>, E>(_log: string, entries: Stream.Stream<Json, E>, format: Format<S>): Stream.Stream<S["Type"], E | LogCorrupt | LogTooNew> => {
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(format.entry))
  return Stream.mapEffect(entries, (entry) => Effect.orDie(decode(entry)))
}

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/** Logs in this process's memory, with the same guarantees but one: they end with the process. */
export const layerMemory: Layer.Layer<Storage> = Layer.sync(Storage, () => {
  const logs = new Map<string, Array<Json>>()
  const held = new Set<string>()
  const stored = (log: string) => logs.get(log) ?? []
  return Storage.of({
    shared: false,
    open: (log) =>
      Effect.acquireRelease(
        Effect.suspend(() =>
          held.has(log)
            ? Effect.fail(new LogHeld({ log, host: "this host", process: "this process", since: 0, remedy: "Wait for it to end." }))
            : Effect.sync(() => void held.add(log))
        ),
        () => Effect.sync(() => held.delete(log))
      ).pipe(Effect.as<Log<Json>>({
        name: log,
        replay: Stream.suspend(() => Stream.fromIterable([...stored(log)])),
        append: (entries) => Effect.sync(() => void logs.set(log, [...stored(log), ...entries])),
        replace: (entries) => Effect.sync(() => void logs.set(log, [...entries]))
      })),
    read: (log) => Stream.suspend(() => Stream.fromIterable([...stored(log)])),
    list: (prefix = "") => Stream.suspend(() => Stream.fromIterable([...logs.keys()].filter((name) => name.startsWith(prefix)))),
    remove: (log) => Effect.sync(() => void logs.delete(log))
  })
})
