/**
 * The lines of a log: a header whose form never changes, then records. Each begins with the checksum of the rest of its
 * line at a fixed place, so that a line is judged before anything in it is believed.
 */
import type { Json } from "../../Storage.ts"
import { crc32 } from "./checksum.ts"

/** The newest form of records this version reads, and the one it writes. */
export const formatVersion = 1

export const isVersion = (version: number): boolean => Number.isSafeInteger(version) && version >= 1

const opening = `{"crc":"`
const sumEnd = opening.length + 8
const restStart = sumEnd + 2

/** The sum is taken piece by piece: a line is put together once, when it is written. */
const seal = (head: string, body: string): string => {
  const sum = crc32("}", 0, crc32(body, 0, crc32(head, 0)))
  return `${opening}${sum.toString(16).padStart(8, "0")}",${head}${body}}`
}

/** The first line of a log. */
export const encodeHeader = (log: string): string => seal(`"shiftboss":${formatVersion},"log":`, JSON.stringify(log))

/** Where a record stands. `first` and `last` are those of its flush: all its records count, or none. */
export interface Position {
  readonly epoch: number
  readonly seq: number
  readonly first: number
  readonly last: number
}

/** One record; `entry` is JSON. */
export const encodeRecord = ({ epoch, seq, first, last }: Position, entry: string): string =>
  seal(`"epoch":${epoch},"seq":${seq},"first":${first},"last":${last},"entry":`, entry)

/** A record of a line that is whole. Its entry is the text from `entryStart` to the last brace, not parsed yet. */
export interface Record extends Position {
  readonly entryStart: number
}

/** What a line's header says. */
export interface Header {
  readonly version: number
  readonly log: string
}

const hexDigit = (nibble: number): number => (nibble < 10 ? 48 : 87) + nibble

/** Whether the line is exactly what was sealed. Upper-case digits are no sum of ours: they are a flipped bit. */
const isWhole = (line: string): boolean => {
  if (!line.startsWith(opening) || line.length <= restStart) return false
  if (line.charCodeAt(sumEnd) !== 34 || line.charCodeAt(sumEnd + 1) !== 44) return false
  const sum = crc32(line, restStart)
  for (let digit = 0; digit < 8; digit++) {
    if (line.charCodeAt(opening.length + digit) !== hexDigit((sum >>> (28 - 4 * digit)) & 15)) return false
  }
  return true
}

/** Reads the fields in the one order they are written in: `JSON.parse` of a whole line would cost more than the sum. */
const fields = [`"epoch":`, `,"seq":`, `,"first":`, `,"last":`] as const
const entryField = `,"entry":`

const readRecord = (line: string): Record | undefined => {
  let at = restStart
  const numbers = [0, 0, 0, 0]
  for (let field = 0; field < fields.length; field++) {
    const name = fields[field]!
    if (!line.startsWith(name, at)) return undefined
    at += name.length
    let number = 0
    for (let code = line.charCodeAt(at); code >= 48 && code <= 57; code = line.charCodeAt(++at)) {
      number = number * 10 + code - 48
    }
    numbers[field] = number
  }
  if (!line.startsWith(entryField, at)) return undefined
  const [epoch = 0, seq = 0, first = 0, last = 0] = numbers
  return { epoch, seq, first, last, entryStart: at + entryField.length }
}

/** The record in the line, or what is wrong with it. */
export const decodeRecord = (line: string): Record | string => {
  if (!isWhole(line)) return "its checksum does not match"
  return readRecord(line) ?? "it is whole, but is no record"
}

/** The entry of a record; throws when the text is not JSON. */
export const decodeEntry = (line: string, record: Record): Json => JSON.parse(line.slice(record.entryStart, -1))

/** The header in the line, or what is wrong with it. */
export const decodeHeader = (line: string): Header | string => {
  if (line === "") return "it is empty"
  if (!isWhole(line)) return "the checksum of its header does not match"
  const parsed: Json = JSON.parse(line)
  if (typeof parsed !== "object" || parsed === null || !("shiftboss" in parsed) || !("log" in parsed)) {
    return "it does not begin with a header"
  }
  const { shiftboss, log } = parsed
  return typeof shiftboss === "number" && isVersion(shiftboss) && typeof log === "string"
    ? { version: shiftboss, log }
    : "it does not begin with a header"
}

/**
 * Whether a crash can leave a line like this: cut off (see `Encoded.lines`), or with pages that never reached the disk,
 * which read as NULs. A lone NUL inside a line is a flipped bit instead, and so is a whole record with one character
 * where its line ends: a crash cuts, it does not add.
 */
export const isTorn = (line: string): boolean => {
  if (!line.endsWith("\0")) return line.includes("\0\0")
  return !isWhole(line.slice(0, -2))
}
