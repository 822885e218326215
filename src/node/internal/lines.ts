/**
 * Lines of JSON out of bytes, as agents print them: cut anywhere, with noise between, of any length.
 */

/** A JSON object of one line. */
export interface Json {
  readonly [key: string]: unknown
}

/** What was on the lines that were no JSON objects. */
export interface Counts {
  /** JSON objects read. */
  readonly read: number
  readonly blank: number
  /** Lines of something else than a JSON object. */
  readonly noise: number
  /** Lines that began like a JSON object and were none. */
  readonly unparsable: number
  /** Lines longer than the cap. */
  readonly tooLong: number
  /** 1 when the stream ended inside a line. */
  readonly cut: number
}

export interface LinesOptions {
  /** A longer line is skipped, and no more than this is kept of it meanwhile. Default 32 MiB. */
  readonly maxLineBytes?: number | undefined
  /** Gets each JSON object in order, and the line it came from. */
  readonly onLine: (json: Json, line: string) => void
  /** Gets each other line that is not blank. */
  readonly onNoise?: ((line: string) => void) | undefined
}

const newline = 0x0a
const defaultMaxLineBytes = 32 * 1024 * 1024
/** Memory for the beginning of a line is used again for the next one, unless it is more than this. */
const reusedBytes = 8 * 1024 * 1024

/**
 * A reader of JSON lines.
 *
 * Lines end at the byte `\n` and nowhere else: U+2028, U+0085 and form feeds are text. Whole lines are decoded at once,
 * so that no chunk boundary falls inside a character; bytes that are no UTF-8 become U+FFFD.
 */
export class LineReader {
  /** The beginning of a line, in the first `pendingBytes`. */
  private pending = new Uint8Array(0)
  private pendingBytes = 0
  private skipping = false
  private started = false
  private readonly counts = { read: 0, blank: 0, noise: 0, unparsable: 0, tooLong: 0, cut: 0 }
  private readonly maxLineBytes: number
  private readonly onLine: (json: Json, line: string) => void
  private readonly onNoise: ((line: string) => void) | undefined

  constructor(options: LinesOptions) {
    this.maxLineBytes = options.maxLineBytes ?? defaultMaxLineBytes
    this.onLine = options.onLine
    this.onNoise = options.onNoise
  }

  /** What was read so far. */
  get counted(): Counts {
    return { ...this.counts }
  }

  /** Takes the next bytes. They are not kept when the call returns, except for the beginning of a line. */
  write(chunk: Uint8Array): void {
    const first = chunk.indexOf(newline)
    if (first < 0) return this.keep(chunk)
    this.keep(chunk.subarray(0, first + 1))
    this.flush()
    const last = chunk.lastIndexOf(newline)
    if (last > first) this.region(chunk.subarray(first + 1, last + 1))
    if (last + 1 < chunk.length) this.keep(chunk.subarray(last + 1))
  }

  /** The end of the stream: a last line without a newline is read if it is whole, and dropped if it was cut. */
  end(): void {
    if (this.pendingBytes === 0) return
    const line = this.take()
    const before = this.counts.unparsable
    this.line(line)
    if (this.counts.unparsable === before) return
    this.counts.unparsable = before
    this.counts.cut = 1
  }

  private keep(bytes: Uint8Array): void {
    if (this.skipping) {
      if (bytes.at(-1) === newline) this.skipping = false
      return
    }
    if (this.pendingBytes + bytes.length > this.maxLineBytes) {
      this.counts.tooLong++
      this.skipping = bytes.at(-1) !== newline
      this.release()
      return
    }
    const needed = this.pendingBytes + bytes.length
    if (needed > this.pending.length) {
      const grown = new Uint8Array(Math.min(Math.max(needed, 2 * this.pending.length), this.maxLineBytes))
      grown.set(this.pending.subarray(0, this.pendingBytes))
      this.pending = grown
    }
    this.pending.set(bytes, this.pendingBytes)
    this.pendingBytes = needed
  }

  private release(): void {
    this.pendingBytes = 0
    if (this.pending.length > reusedBytes) this.pending = new Uint8Array(0)
  }

  private flush(): void {
    if (this.pendingBytes > 0) this.line(this.take())
  }

  private take(): string {
    const whole = this.pending[this.pendingBytes - 1] === newline
    const text = this.decode(this.pending.subarray(0, this.pendingBytes - (whole ? 1 : 0)))
    this.release()
    return text
  }

  /** Whole lines: decoding them together is much faster than one by one when they are short. */
  private region(bytes: Uint8Array): void {
    if (bytes.length > this.maxLineBytes) {
      let from = 0
      while (from < bytes.length) {
        const to = bytes.indexOf(newline, from) + 1
        this.keep(bytes.subarray(from, to))
        this.flush()
        from = to
      }
      return
    }
    const text = this.decode(bytes)
    let from = 0
    while (from < text.length) {
      const to = text.indexOf("\n", from)
      this.line(text.slice(from, to))
      from = to + 1
    }
  }

  private decode(bytes: Uint8Array): string {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8")
    if (this.started) return text
    this.started = true
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  }

  private line(line: string): void {
    const at = line.charCodeAt(0) === 0x7b ? 0 : firstVisible(line)
    if (at < 0) {
      this.counts.blank++
      return
    }
    if (line.charCodeAt(at) !== 0x7b) {
      this.counts.noise++
      this.onNoise?.(line)
      return
    }
    let json: Json
    try {
      json = JSON.parse(line)
    } catch {
      this.counts.unparsable++
      this.onNoise?.(line)
      return
    }
    this.counts.read++
    this.onLine(json, line)
  }
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

/** The index of the first character that is not JSON's white space, or -1. */
const firstVisible = (line: string): number => {
  for (let at = 0; at < line.length; at++) {
    const code = line.charCodeAt(at)
    if (code !== 0x20 && code !== 0x09 && code !== 0x0d && code !== 0x0a) return at
  }
  return -1
}
