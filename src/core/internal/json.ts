/**
 * Copies of JSON values.
 */
import type { Json } from "../Storage.ts"

/**
 * What would come back if the value were written as JSON and read again, shared with nobody: whoever changes what was
 * given, or what is answered, changes nothing else. `undefined` for what has no JSON, as of `JSON.stringify`.
 *
 * Plain values are copied without their text, which takes a third of the time.
 */
export const copyOf = (value: Json): Json => copied(value) as Json

const copied = (value: unknown): unknown => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value + 0 : null // -0 is 0 in JSON
    case "object":
      if (value === null) return null
      if (Array.isArray(value)) return isPlainArray(value) ? Array.from(value, inArray) : throughText(value)
      return isPlainObject(value) ? copiedObject(value) : throughText(value)
    default:
      return throughText(value)
  }
}

const inArray = (value: unknown): unknown => copied(value) ?? null

const copiedObject = (value: object): object => {
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const innerCopy = copied((value as Record<string, unknown>)[key])
    if (innerCopy !== undefined) copy[key] = innerCopy
  }
  return copy
}

/** What has a `toJSON` is for `JSON.stringify` to judge. */
const isPlainArray = (value: ReadonlyArray<unknown>): boolean =>
  !("toJSON" in value) && Object.getPrototypeOf(value) === Array.prototype

/** An own `__proto__` cannot be set by assignment. */
const isPlainObject = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return (
    (prototype === Object.prototype || prototype === null) && !("toJSON" in value) && !Object.hasOwn(value, "__proto__")
  )
}

const throughText = (value: unknown): unknown => {
  const text: string | undefined = JSON.stringify(value)
  return text === undefined ? undefined : JSON.parse(text)
}
