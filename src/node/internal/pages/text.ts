/**
 * Text of agents and hosts in Markdown, safe whatever it holds: it is shown as it is, and means nothing.
 *
 * Inline it always is a code span, because in one nothing is special but backticks. A backslash before each special
 * character would not do: renderers make links of bare addresses all the same.
 */
import { stripVTControlCharacters, toUSVString } from "node:util"

// -----------------------------------------------------------------------------
// cutting
// -----------------------------------------------------------------------------

/** The beginning of the text, at most so many UTF-16 units of it: a copy, for a slice would keep all of the text alive. */
export const cut = (text: string, limit: number): string => {
  if (text.length <= limit) return text
  const isHigh = (text.charCodeAt(limit - 1) & 0xfc00) === 0xd800
  return Buffer.from(text.slice(0, isHigh ? limit - 1 : limit), "utf16le").toString("utf16le")
}

// -----------------------------------------------------------------------------
// making visible
// -----------------------------------------------------------------------------

/** Controls, what changes the direction of text or takes no room, and line ends that only some programs know. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** A control becomes its picture (NUL is ␀), anything else its number. */
const pictureOf = (char: string): string => {
  const code = char.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`
}

const visible = (text: string, kept: string): string =>
  toUSVString(text).replace(hidden, (char) => (kept.includes(char) ? char : pictureOf(char)))

/** The text without colours on one line, cut. */
const oneLine = (text: string, limit: number): string => {
  const all = stripVTControlCharacters(cut(text, 4 * limit)).trim()
  const shown = visible(all.replace(/\s*\n\s*/g, " ⏎ ").replaceAll("\t", " "), "")
  return shown.length <= limit && text.length <= 4 * limit ? shown : `${cut(shown, limit)}…`
}

// -----------------------------------------------------------------------------
// Markdown
// -----------------------------------------------------------------------------

const longestRun = (text: string): number => {
  let longest = 0
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  return longest
}

const defaultLimit = 200

/** A code span. At most `limit` characters of the text are shown. */
export const code = (text: string, limit = defaultLimit): string => {
  const shown = oneLine(text, limit)
  if (shown === "") return "(empty)"
  const bar = "`".repeat(longestRun(shown) + 1)
  const pad = shown.startsWith("`") || shown.endsWith("`") ? " " : ""
  return bar + pad + shown + pad + bar
}

/**
 * A code span in a cell of a table. A pipe is escaped; behind a backslash, where renderers do not agree on what an escape
 * of it means, it is shown as a broken bar.
 */
export const cell = (text: string, limit = defaultLimit): string =>
  code(text, limit).replaceAll("\\|", "\\¦").replaceAll("|", "\\|")

/** A fenced block, its fence longer than any run of backticks inside. */
const fenced = (language: "diff" | "text", shown: string): string => {
  const bar = "`".repeat(Math.max(3, longestRun(shown) + 1))
  return `${bar}${language}\n${shown}${shown.endsWith("\n") || shown === "" ? "" : "\n"}${bar}`
}

/** What an agent said, without its colours. */
export const prose = (text: string): string =>
  fenced("text", visible(stripVTControlCharacters(text).replaceAll("\r\n", "\n"), "\n\t"))

/** A patch, with every character of it visible: one that changes only line ends shows them. */
export const verbatim = (language: "diff" | "text", text: string): string => fenced(language, visible(text, "\n\t"))

/** A table. Nothing when it has no rows. */
export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): ReadonlyArray<string> => {
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  return rows.length === 0 ? [] : [line(head), line(head.map(() => "---")), ...rows.map(line)]
}

// -----------------------------------------------------------------------------
// numbers
// -----------------------------------------------------------------------------

/** Epoch milliseconds, as UTC. */
export const time = (millis: number): string => {
  const date = new Date(millis)
  return Number.isNaN(date.getTime())
    ? "at an unknown time"
    : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`
}

/** The two largest units that say something. A clock that stepped back makes nothing negative. */
export const duration = (millis: number): string => {
  const seconds = Math.max(0, Math.floor(millis / 1000))
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)]
  if (days > 0) return `${days} d ${hours % 24} h`
  if (hours > 0) return `${hours} h ${minutes % 60} min`
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`
}

export const count = (value: number): string => value.toLocaleString("en-US", { maximumFractionDigits: 0 })

export const usd = (value: number): string => value.toFixed(value !== 0 && Math.abs(value) < 0.1 ? 4 : 2)

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

export const unknown = "–"
