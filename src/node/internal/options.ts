/**
 * Options of launchers, checked once.
 */
import { Duration } from "effect"

/** A line becomes a string, and Node has none that is much longer. */
const mostBytes = 256 * 1024 * 1024

interface Checked {
  readonly grace?: Duration.Input | undefined
  readonly linger?: Duration.Input | undefined
  readonly maxLineBytes?: number | undefined
  readonly timeZone?: string | undefined
}

/** Throws a RangeError. */
export const checkOptions = ({ grace, linger, maxLineBytes, timeZone }: Checked): void => {
  for (const [name, input] of Object.entries({ grace, linger })) {
    if (input !== undefined) checkDuration(name, input)
  }
  if (maxLineBytes !== undefined) checkBytes("maxLineBytes", maxLineBytes)
  if (timeZone !== undefined && !isZone(timeZone)) {
    throw new RangeError(`timeZone must be a zone such as Europe/Rome or +02:00, not ${timeZone}`)
  }
}

/** Throws a RangeError. */
export const checkBytes = (name: string, value: number): void => {
  if (Number.isInteger(value) && value >= 1 && value <= mostBytes) return
  throw new RangeError(`${name} must be a whole number of bytes from 1 to ${mostBytes}, not ${value}`)
}

/** The zone that is asked for, or of the child, or of this process: a `TZ` may be of a form that names no zone here. */
export const zoneOf = (asked: string | undefined, child: string | undefined): string =>
  [asked, child, Intl.DateTimeFormat().resolvedOptions().timeZone].find((zone) => zone !== undefined && isZone(zone)) ??
  "UTC"

const checkDuration = (name: string, input: Duration.Input): void => {
  const duration = Duration.fromInput(input)
  const millis = duration._tag === "None" || Number.isNaN(input) ? Number.NaN : Duration.toMillis(duration.value)
  if (Number.isFinite(millis) && millis >= 0) return
  throw new RangeError(`${name} must be a duration that ends, not ${String(input)}`)
}

const isZone = (zone: string): boolean => {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone !== ""
  } catch {
    return false
  }
}
