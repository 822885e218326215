/**
 * What entries look like, as JSON Schema: which kinds of data there are in a format, and whether they have changed.
 */
import type { Schema } from "effect"

/** The entries of a format in a version of the package. */
export interface Shape {
  /** That of the entries: see `Storage.EntryVersions`. */
  readonly version: number
  readonly kinds: ReadonlyArray<Schema.Json>
  readonly definitions: Schema.Json
}

export type Shapes = { readonly [format: string]: Shape }

const isObject = (json: Schema.Json | undefined): json is { readonly [key: string]: Schema.Json } =>
  typeof json === "object" && json !== null && !Array.isArray(json)

const asArray = (json: Schema.Json | undefined): ReadonlyArray<Schema.Json> => (Array.isArray(json) ? json : [])

const definitionOf = (reference: string, definitions: Schema.Json): Schema.Json | undefined => {
  const name = decodeURIComponent(reference.slice(reference.lastIndexOf("/") + 1)).replaceAll("~1", "/")
  return isObject(definitions) ? definitions[name] : undefined
}

/** The tags that a schema allows at each place, such as `:RunEnded.end:Stopped`. */
const tagsOfSchema = (
  schema: Schema.Json | undefined,
  place: string,
  definitions: Schema.Json
): ReadonlyArray<string> => {
  if (!isObject(schema)) return []
  const { $ref, anyOf, items, properties } = schema
  if (typeof $ref === "string") return tagsOfSchema(definitionOf($ref, definitions), place, definitions)
  const alternatives = asArray(anyOf).flatMap((one) => tagsOfSchema(one, place, definitions))
  const elements = tagsOfSchema(items, `${place}[]`, definitions)
  if (!isObject(properties)) return [...alternatives, ...elements]
  const tag = isObject(properties["_tag"]) ? asArray(properties["_tag"]["enum"])[0] : undefined
  const here = typeof tag === "string" ? `${place}:${tag}` : place
  const fields = Object.entries(properties).flatMap(([key, field]) =>
    tagsOfSchema(field, `${here}.${key}`, definitions)
  )
  return typeof tag === "string" ? [here, ...fields] : fields
}

/** The tags that stand in a value, by the same places. */
const tagsOfValue = (value: Schema.Json, place: string): ReadonlyArray<string> => {
  if (Array.isArray(value)) return value.flatMap((element) => tagsOfValue(element, `${place}[]`))
  if (!isObject(value)) return []
  const tag = value["_tag"]
  const here = typeof tag === "string" ? `${place}:${tag}` : place
  const fields = Object.entries(value).flatMap(([key, field]) => tagsOfValue(field, `${here}.${key}`))
  return typeof tag === "string" ? [here, ...fields] : fields
}

/** The kinds of data of a format that stand in none of these entries, each as the place and the tag it has there. */
export const missingKinds = (
  { kinds, definitions }: Shape,
  entries: ReadonlyArray<Schema.Json>
): ReadonlyArray<string> => {
  const seen = new Set(entries.flatMap((entry) => tagsOfValue(entry, "")))
  return [...new Set(kinds.flatMap((kind) => tagsOfSchema(kind, "", definitions)))].filter((kind) => !seen.has(kind))
}

const sameData = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)

/**
 * Formats that write something else now, under the version they had: an older build would read that as if it understood
 * it.
 */
export const unannounced = (before: Shapes, now: Shapes): ReadonlyArray<string> =>
  Object.entries(before).flatMap(([name, shape]) => {
    const present = now[name]
    if (present === undefined) return [`${name} is gone: what was written in it can no longer be read`]
    if (present.version < shape.version) return [`${name} went back from version ${shape.version}`]
    if (present.version > shape.version || sameData(shape, present)) return []
    return [`${name} has changed and still has version ${present.version}: raise it, and see to \`upgrade\``]
  })
