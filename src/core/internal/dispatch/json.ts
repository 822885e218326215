/**
 * Values to JSON and back: what the log keeps is what comes back, live as in replay.
 */
import { Effect, Exit, Schema } from "effect"
import type { Json } from "../../Storage.ts"
import { copyOf } from "../json.ts"

/** `R` is what the schema needs. */
export interface JsonCodec<out R = unknown> {
  readonly encode: (value: unknown) => Effect.Effect<Json, Schema.SchemaError, R>
  readonly decode: (json: Json) => Effect.Effect<unknown, Schema.SchemaError, R>
}

type Services<S extends Schema.Constraint> = S["DecodingServices"] | S["EncodingServices"]

const make = <S extends Schema.Constraint>(schema: S): JsonCodec<Services<S>> => {
  const codec = Schema.toCodecJson(schema)
  const encode = Schema.encodeUnknownEffect(codec)
  const decode = Schema.decodeUnknownEffect(codec)
  return {
    // Shared with nobody: a host that changes what it got does not change what is known.
    encode: (value) => Effect.map(encode(value), copyOf),
    decode: (json) => decode(copyOf(json))
  }
}

const codecs = new WeakMap<Schema.Constraint, JsonCodec>()

/** Compiled once for each schema: a step is asked for many times. */
export const codecOf = <S extends Schema.Constraint>(schema: S): JsonCodec<Services<S>> => {
  const known = codecs.get(schema)
  if (known !== undefined) return known as JsonCodec<Services<S>>
  const codec = make(schema)
  codecs.set(schema, codec)
  return codec
}

/** For values that are JSON already. */
export const json: JsonCodec<never> = codecOf(Schema.Json)

const encodeJson = Schema.encodeUnknownExit(Schema.toCodecJson(Schema.Json))

/** The same at once: nothing in JSON itself has to be waited for. */
export const toJson = (value: unknown): Exit.Exit<Json, Schema.SchemaError> => Exit.map(encodeJson(value), copyOf)
