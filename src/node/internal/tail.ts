/**
 * The end of an output, and a file with all of it when it is long.
 */
import { closeSync, openSync, rmSync, writeSync } from "node:fs"
import { makeFolder } from "./files.ts"

/** What did not fit. */
export interface Cut {
  /** How much there was in all. */
  readonly bytes: number
  /** Where all of it is; null when it could not be kept. */
  readonly path: string | null
}

export interface TailOptions {
  /** Everything goes to this file as well once there is more than the limit. */
  readonly file?: { readonly path: string; readonly now: number } | undefined
  /** The end begins this much later at the most, so that it begins with a line. */
  readonly reach?: number | undefined
}

/** Keeps the last `limit` bytes. */
export class Tail {
  private chunks: Array<Buffer> = []
  private kept = 0
  private bytes = 0
  private descriptor: number | null = null
  private failed = false
  private readonly limit: number
  private readonly reach: number
  private readonly file: TailOptions["file"]

  constructor(limit: number, { file, reach = 0 }: TailOptions = {}) {
    this.limit = limit
    this.reach = reach
    this.file = file
  }

  write(chunk: Buffer): void {
    this.bytes += chunk.length
    this.kept += chunk.length
    this.chunks.push(chunk)
    if (this.file !== undefined && this.bytes > this.limit) this.spool(chunk)
    // Cut only now and then: joining at every chunk would copy all of it each time.
    if (this.kept > 2 * (this.limit + this.reach) + 65_536) this.trim()
  }

  /**
   * The end as text, beginning with a whole character. Before it is cut `clean` gets as much more of it as may be part of
   * a secret: half of one could not be told from other text.
   */
  text(clean: (text: string) => string = (text) => text): string {
    this.trim()
    const all = Buffer.concat(this.chunks)
    if (this.bytes <= this.limit) return all.toString("utf8")
    const text = Buffer.from(clean(all.toString("utf8", wholeFrom(all, 0))))
    const line = text.subarray(0, this.reach).indexOf(newline)
    const rest = this.bytes === this.kept ? 0 : line < 0 ? this.reach : line + 1
    return text.toString("utf8", wholeFrom(text, Math.max(rest, text.length - this.limit)))
  }

  /** Closes the file. Answers null when nothing was cut. */
  close(): Cut | null {
    const there = this.descriptor !== null
    this.closeFile()
    const path = there && !this.failed ? (this.file?.path ?? null) : null
    return this.bytes > this.limit ? { bytes: this.bytes, path } : null
  }

  /** Written at once, so that a child that prints a lot waits for a slow disk. */
  private spool(chunk: Buffer): void {
    if (this.failed || this.file === undefined) return
    try {
      if (this.descriptor === null) {
        makeFolder(this.file.path, this.file.now)
        this.descriptor = openSync(this.file.path, "wx", 0o600)
        for (const before of this.chunks) writeAll(this.descriptor, before)
      } else writeAll(this.descriptor, chunk)
    } catch {
      // A full disk must not cost the attempt: its end is still in memory. Nor may what is on it keep it full.
      this.failed = true
      if (this.descriptor !== null) rmSync(this.file.path, { force: true })
      this.closeFile()
    }
  }

  private closeFile(): void {
    try {
      if (this.descriptor !== null) closeSync(this.descriptor)
    } catch {
      // Some file systems tell only now that they have no room.
      this.failed = true
    }
    this.descriptor = null
  }

  private trim(): void {
    const most = this.limit + this.reach
    if (this.kept <= most) return
    const all = Buffer.concat(this.chunks)
    // A copy: a slice would keep all of it alive.
    this.chunks = [Buffer.from(all.subarray(all.length - most))]
    this.kept = most
  }
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const newline = 0x0a

const writeAll = (file: number, bytes: Buffer): void => {
  for (let from = 0; from < bytes.length;) from += writeSync(file, bytes, from)
}

/** The first whole character that begins there or later. */
const wholeFrom = (bytes: Buffer, from: number): number => {
  let at = from
  while (at < from + 3 && ((bytes[at] ?? 0) & 0xc0) === 0x80) at++
  return at
}
