/**
 * Text out of bytes, as programs print it, with its secrets taken out before anything of it is kept or shown.
 */
import { StringDecoder } from "node:string_decoder"

export interface TextOptions {
  /** Takes the secrets out of a text. What it has cleaned it leaves as it is. */
  readonly clean: (text: string) => string
  /** No secret is longer, in characters. */
  readonly reach: number
  /** Gets clean text in order: whole lines, unless they are very long. */
  readonly onText: (text: string) => void
}

/** More than this without the end of a line is not waited for. */
const longestLine = 64 * 1024

/** Reads text in whatever pieces it comes. No secret is missed because it came in two. */
export class TextReader {
  private readonly decoder = new StringDecoder("utf8")
  private pending = ""
  private readonly options: TextOptions

  constructor(options: TextOptions) {
    this.options = options
  }

  write(chunk: Uint8Array): void {
    const { clean, reach, onText } = this.options
    const text = this.pending + this.decoder.write(chunk)
    const lines = text.lastIndexOf("\n") + 1
    this.pending = text.slice(lines)
    if (lines > 0) onText(clean(text.slice(0, lines)))
    if (this.pending.length <= longestLine + reach) return
    // A secret that has not come as a whole yet is in what is held back.
    const line = clean(this.pending)
    const to = Math.max(0, line.length - reach)
    if (to > 0) onText(line.slice(0, to))
    this.pending = line.slice(to)
  }

  end(): void {
    const last = this.options.clean(this.pending + this.decoder.end())
    this.pending = ""
    if (last !== "") this.options.onText(last)
  }
}
