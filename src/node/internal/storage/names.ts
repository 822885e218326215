/**
 * Log names as file names: reversible, and apart from each other on file systems that fold case or normalize Unicode.
 */
import { createHash } from "node:crypto"

/** Leaves room below the 255 bytes of a file name for what is put around it. */
const longest = 180

/** Every UTF-16 unit but these is written as its number, so that a lone surrogate is a name like any other. */
const escapeUnit = (unit: string): string => {
  const code = unit.charCodeAt(0)
  return code < 0x80 ? `%${code.toString(16).padStart(2, "0")}` : `%u${code.toString(16).padStart(4, "0")}`
}

/** The part of a log's file names that stands for its name. */
export const toFileName = (log: string): string => {
  if (log === "") return "%"
  const escaped = log.replace(/[^a-z0-9_.-]|^\./g, (text) =>
    Array.from({ length: text.length }, (_, at) => escapeUnit(text[at]!)).join("")
  )
  if (escaped.length <= longest) return escaped
  return `%h${createHash("sha256").update(log, "utf16le").digest("hex")}`
}

/** The log of a file name; nothing when only its header knows. */
export const fromFileName = (name: string): string | undefined => {
  if (name === "%") return ""
  if (name.startsWith("%h")) return undefined
  return name.replace(/%u([0-9a-f]{4})|%([0-9a-f]{2})/g, (_, wide?: string, narrow?: string) =>
    String.fromCharCode(Number.parseInt(wide ?? narrow ?? "", 16))
  )
}
