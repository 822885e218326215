/**
 * Everything that can be done to a log by other hands than those of its holder, line by line.
 */
import { crc32 } from "node:zlib"

/** Makes a log's lines into others, at a line; nothing where that cannot be done, or is what a crash may leave. */
export interface Tampering {
  readonly name: string
  readonly at: (lines: ReadonlyArray<string>, line: number) => ReadonlyArray<string | Buffer> | undefined
  readonly error: "LogCorrupt" | "LogTooNew"
  /** Only where entries have a version and a kind. */
  readonly typed?: true
}

const bodyStart = `{"crc":"00000000",`.length

/** The line with the checksum that it should have: only its content is wrong. */
const sealed = (line: string): string => {
  const body = line.slice(bodyStart)
  return `{"crc":"${crc32(body).toString(16).padStart(8, "0")}",${body}`
}

const withLine = (lines: ReadonlyArray<string>, line: number, text: string | Buffer) =>
  text === lines[line] ? undefined : lines.map((other, index) => (index === line ? text : other))

const changed =
  (from: RegExp, to: string, only: (line: number) => boolean): Tampering["at"] =>
  (lines, line) =>
    only(line) ? withLine(lines, line, sealed((lines[line] ?? "").replace(from, to))) : undefined

const header = (line: number) => line === 0
const records = (line: number) => line > 0

const flipped = (line: string): Buffer => {
  const bytes = Buffer.from(line)
  const middle = bytes.length >> 1
  bytes[middle] = (bytes[middle] ?? 0) ^ 1
  return bytes
}

export const tamperings: ReadonlyArray<Tampering> = [
  {
    name: "a bit that flipped in the middle of a line",
    error: "LogCorrupt",
    at: (lines, line) => withLine(lines, line, flipped(lines[line] ?? ""))
  },
  {
    name: "a wrong checksum",
    error: "LogCorrupt",
    at: (lines, line) =>
      withLine(
        lines,
        line,
        (lines[line] ?? "").replace(/"crc":"(.)/, (_, digit) => `"crc":"${digit === "0" ? "1" : "0"}`)
      )
  },
  {
    name: "a line that is missing",
    error: "LogCorrupt",
    // That the last one is missing is what a crash leaves.
    at: (lines, line) =>
      line === lines.length - 1 && line > 0 ? undefined : lines.filter((_, index) => index !== line)
  },
  {
    name: "a line that stands twice",
    error: "LogCorrupt",
    at: (lines, line) => lines.flatMap((text, index) => (index === line ? [text, text] : [text]))
  },
  {
    name: "two lines in each other's place",
    error: "LogCorrupt",
    at: (lines, line) => {
      const [one, other] = [lines[line], lines[line + 1]]
      if (one === undefined || other === undefined) return undefined
      return lines.map((text, index) => (index === line ? other : index === line + 1 ? one : text))
    }
  },
  { name: "the name of another log", error: "LogCorrupt", at: changed(/"log":"/, `"log":"another `, header) },
  {
    name: "a version that was never written",
    error: "LogCorrupt",
    at: changed(/"shiftboss":\d+/, `"shiftboss":0`, header)
  },
  { name: "a newer version of the file", error: "LogTooNew", at: changed(/"shiftboss":\d+/, `"shiftboss":2`, header) },
  {
    name: "a newer version of an entry",
    error: "LogTooNew",
    typed: true,
    at: changed(/"entry":\{"version":\d+/, `"entry":{"version":1000`, records)
  },
  {
    name: "a version of an entry that was never written",
    error: "LogCorrupt",
    typed: true,
    at: changed(/"entry":\{"version":\d+/, `"entry":{"version":0`, records)
  },
  {
    name: "a kind of entry that nobody knows",
    error: "LogCorrupt",
    typed: true,
    at: changed(/"_tag":"/, `"_tag":"Un`, records)
  }
]
