/**
 * What can go wrong with a log.
 */
import { Schema } from "effect"

/** The store did not do what was asked. Worth retrying once what `cause` names is mended: nothing is half-written. */
export class StorageError extends Schema.TaggedError<StorageError>()("StorageError", {
  operation: Schema.Literals(["open", "append", "replace", "replay", "read", "list", "remove", "release"]),
  log: Schema.String,
  /** What to do about it, as a sentence. */
  remedy: Schema.String,
  cause: Schema.Defect()
}) {
  override get message(): string {
    return `could not ${this.operation} the log "${this.log}": ${describe(this.cause)}. ${this.remedy}`
  }
}

const describe = (cause: unknown): string =>
  cause instanceof Error ? cause.message : typeof cause === "string" ? cause : JSON.stringify(cause)

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

/** Somebody else became the holder in the meantime. Never worth retrying on this `Log`. */
export class LogFenced extends Schema.TaggedError<LogFenced>()("LogFenced", {
  log: Schema.String
}) {
  override get message(): string {
    return (
      `the log "${this.log}" was taken over by another holder; nothing more is written from here, and whether ` +
      `what was being written is in it is known once it is opened again. ` +
      `Before opening it again, make sure that only one process is meant to work on it.`
    )
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
    return (
      `the log "${this.log}" is damaged in line ${this.line}: ${this.found}. It was left as it is: ` +
      `restore it from a copy, or move it away to begin anew.`
    )
  }
}

/** A newer version of the library wrote the log. It was not touched. */
export class LogTooNew extends Schema.TaggedError<LogTooNew>()("LogTooNew", {
  log: Schema.String,
  version: Schema.Number,
  supported: Schema.Number
}) {
  override get message(): string {
    return (
      `the log "${this.log}" has format ${this.version}; this version of shiftboss reads up to ${this.supported}. ` +
      `Upgrade shiftboss, or give it another place for its logs.`
    )
  }
}
