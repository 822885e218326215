/**
 * The end of an output, and a file with all of it when it is long.
 */
import { closeSync, openSync, writeSync } from "node:fs"
import { makeFolder } from "./files.ts"

/** What did not fit. */
export interface Cut {
  /** How much there was in all. */
  readonly bytes: number
  /** Where all of it is; null when it could not be kept. */
  readonly path: string | null
}

/** Keeps the last `limit` bytes. With a path, everything goes to that file as well once there is more than that. */
export class Tail {
  private chunks: Array<Buffer> = []
  private kept = 0
  private bytes = 0
  private file: number | null = null
  private failed = false
  private readonly limit: number
  private readonly path: string | undefined

  constructor(limit: number, path: string | undefined) {
    this.limit = limit
    this.path = path
  }

  write(chunk: Buffer): void {
    this.bytes += chunk.length
    this.kept += chunk.length
    this.chunks.push(chunk)
    if (this.path !== undefined && this.bytes > this.limit) this.spool(this.path, chunk)
    // Cut only now and then: joining at every chunk would copy all of it each time.
    if (this.kept > 2 * this.limit + 65_536) this.trim()
  }

  /** The end as text. It begins with a whole character. */
  text(): string {
    this.trim()
    const all = Buffer.concat(this.chunks)
    let from = 0
    if (this.bytes > this.kept) while (from < 3 && ((all[from] ?? 0) & 0xc0) === 0x80) from++
    return all.toString("utf8", from)
  }

  /** The end as whole lines: half a secret at the beginning could not be told from other text. */
  lines(): string {
    const text = this.text()
    return this.bytes > this.kept ? text.slice(text.indexOf("\n") + 1) : text
  }

  /** Closes the file. Answers null when nothing was cut. */
  close(): Cut | null {
    if (this.file !== null) closeSync(this.file)
    const path = this.file === null || this.failed ? null : (this.path ?? null)
    this.file = null
    return this.bytes > this.limit ? { bytes: this.bytes, path } : null
  }

  /** Written at once and not through a stream, whose buffer would grow without bound before a slow disk. */
  private spool(path: string, chunk: Buffer): void {
    if (this.failed) return
    try {
      if (this.file === null) {
        makeFolder(path)
        this.file = openSync(path, "wx", 0o600)
        for (const before of this.chunks) writeAll(this.file, before)
      } else writeAll(this.file, chunk)
    } catch {
      // A full disk must not cost the attempt: its end is still in memory.
      this.failed = true
    }
  }

  private trim(): void {
    if (this.kept <= this.limit) return
    const all = Buffer.concat(this.chunks)
    // A copy: a slice would keep all of it alive.
    this.chunks = [Buffer.from(all.subarray(all.length - this.limit))]
    this.kept = this.limit
  }
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const writeAll = (file: number, bytes: Buffer): void => {
  for (let from = 0; from < bytes.length;) from += writeSync(file, bytes, from)
}
