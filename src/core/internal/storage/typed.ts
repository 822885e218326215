/**
 * Entries of a schema over entries of JSON.
 */
import { Effect, Result, Schema, Stream } from "effect"
import { type EntryVersions, type Json, type Log, LogCorrupt, LogTooNew } from "../../Storage.ts"

/** The header is line 1. */
const firstEntryLine = 2

export const typedLog = <A, I>(log: Log<Json>, { entry, version, upgrade }: EntryVersions<A, I>): Log<A> => {
  const codec = Schema.toCodecJson(entry)
  const encodeValue = Schema.encodeSync(codec)
  const decodeValue = Schema.decodeUnknownResult(codec)

  const encode = (value: A): Json => ({ version, value: encodeValue(value) })
  const decode = (stored: Json, line: number): Result.Result<A, LogCorrupt | LogTooNew> => {
    const corrupt = (found: string) => Result.fail(new LogCorrupt({ log: log.name, line, found }))
    if (!isVersioned(stored)) return corrupt("its entry has no version")
    if (stored.version > version) {
      return Result.fail(new LogTooNew({ log: log.name, version: stored.version, supported: version }))
    }
    const value =
      upgrade !== undefined && stored.version < version ? upgrade(stored.value, stored.version) : stored.value
    return Result.orElse(decodeValue(value), (error) => corrupt(`its entry does not decode: ${error.message}`))
  }
  return {
    name: log.name,
    replay: log.replay.pipe(
      Stream.mapAccumArrayEffect(
        () => firstEntryLine,
        (line, entries) =>
          Effect.fromResult(
            Result.map(
              Result.all(entries.map((stored, index) => decode(stored, line + index))),
              (values) => [line + entries.length, values] as const
            )
          )
      )
    ),
    append: (entries) => Effect.suspend(() => log.append(entries.map(encode))),
    replace: (entries) => Effect.suspend(() => log.replace(entries.map(encode)))
  }
}

const isVersioned = (stored: Json): stored is { readonly version: number; readonly value: Json } =>
  typeof stored === "object" &&
  stored !== null &&
  "version" in stored &&
  "value" in stored &&
  typeof stored.version === "number"
