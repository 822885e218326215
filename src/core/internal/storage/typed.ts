/**
 * Entries of a schema over entries of JSON.
 */
import { Effect, Result, Schema, Stream } from "effect"
import type { EntryVersions, Json, Log } from "../../Storage.ts"
import { LogCorrupt, LogTooNew } from "../../StorageError.ts"
import { isVersion } from "./record.ts"

/** The header is line 1. */
const firstEntryLine = 2

export const typedLog = <A, I>(log: Log<Json>, versions: EntryVersions<A, I>): Log<A> => {
  const { version } = versions
  const encodeValue = Schema.encodeSync(Schema.toCodecJson(versions.entry))
  const encode = (value: A): Json => ({ version, value: encodeValue(value) })
  return {
    name: log.name,
    replay: typedEntries(log.name, log.replay, versions),
    append: (entries) => Effect.suspend(() => log.append(entries.map(encode))),
    replace: (entries) => Effect.suspend(() => log.replace(entries.map(encode)))
  }
}

export const typedEntries = <A, I, E>(
  log: string,
  stored: Stream.Stream<Json, E>,
  versions: EntryVersions<A, I>
): Stream.Stream<A, E | LogCorrupt | LogTooNew> => {
  const decode = decoder(log, versions)
  return Stream.mapAccumArrayEffect(
    stored,
    () => firstEntryLine,
    (line, entries) =>
      Effect.fromResult(
        Result.map(
          Result.all(entries.map((entry, index) => decode(entry, line + index))),
          (values) => [line + entries.length, values] as const
        )
      )
  )
}

const decoder = <A, I>(log: string, { entry, version, upgrade }: EntryVersions<A, I>) => {
  const decodeValue = Schema.decodeUnknownResult(Schema.toCodecJson(entry))
  return (stored: Json, line: number): Result.Result<A, LogCorrupt | LogTooNew> => {
    const corrupt = (found: string) => Result.fail(new LogCorrupt({ log, line, found }))
    if (!isVersioned(stored)) return corrupt("its entry has no version")
    if (stored.version > version) {
      return Result.fail(new LogTooNew({ log, version: stored.version, supported: version }))
    }
    const value =
      upgrade !== undefined && stored.version < version ? upgrade(stored.value, stored.version) : stored.value
    return Result.orElse(decodeValue(value), (error) => corrupt(`its entry does not decode: ${error.message}`))
  }
}

/** What is no whole number from 1 on is no version that was ever written, and must not pass for an old one. */
const isVersioned = (stored: Json): stored is { readonly version: number; readonly value: Json } =>
  typeof stored === "object" &&
  stored !== null &&
  "version" in stored &&
  "value" in stored &&
  typeof stored.version === "number" &&
  isVersion(stored.version)
