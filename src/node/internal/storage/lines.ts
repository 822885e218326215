/**
 * Reads a log's file: all of its lines in chunks, or only where it begins and ends.
 */
import { join } from "node:path"
import { Effect, Option, Stream } from "effect"
import type { Storage } from "shiftboss"
import { attempt, type DiskFile, unlessAbsent } from "./disk.ts"
import { dataPath, type Folder, FolderError } from "./folder.ts"

const chunkSize = 256 * 1024
const endingSize = 64 * 1024
/** The longest header that is looked for when a file does not tell its log. */
const headerSize = 1024 * 1024
const newline = 10

/** Closing does not wait: on a disk that hangs it would hang with it whoever only stops to read. */
const close = (file: DiskFile | undefined) => Effect.sync(() => void file?.close().catch(() => undefined))

/** What is opened for somebody who was interrupted meanwhile is known to nobody else. */
const openUnlessAborted = async (folder: Folder, log: string, signal: AbortSignal): Promise<DiskFile | undefined> => {
  const file = await unlessAbsent(folder.disk.open(dataPath(folder, log), "r"))
  if (!signal.aborted) return file
  await file?.close()
  return undefined
}

const openFile = (folder: Folder, log: string) =>
  Effect.acquireRelease(
    attempt((signal) => openUnlessAborted(folder, log, signal)),
    close,
    { interruptible: true }
  )

/**
 * Cuts bytes into lines. What comes after the last newline waits for the rest of its line. Each line is decoded by itself,
 * because a line that is a slice of a longer text is slower to go through, three times over for its checksum.
 */
class Splitter {
  private pieces: Array<Buffer> = []

  take(bytes: Buffer): Array<string> {
    const lines: Array<string> = []
    let from = 0
    for (let to = bytes.indexOf(newline); to >= 0; to = bytes.indexOf(newline, from)) {
      lines.push(this.pieces.length === 0 ? bytes.toString("utf8", from, to) : this.join(bytes.subarray(from, to)))
      from = to + 1
    }
    // A copy, since the buffer is used for the next chunk.
    if (from < bytes.length) this.pieces.push(Buffer.from(bytes.subarray(from)))
    return lines
  }

  private join(end: Buffer): string {
    const line = Buffer.concat([...this.pieces, end]).toString("utf8")
    this.pieces = []
    return line
  }

  /** A line without its end was cut off, see `Encoded.lines`. */
  rest(): Array<string> {
    return this.pieces.length === 0 ? [] : [`${Buffer.concat(this.pieces).toString("utf8")}\0`]
  }
}

/** Reads a file from its start to the length it had then, one chunk ahead of whoever takes them. */
class Chunks {
  private readonly file: DiskFile
  private readonly size: number
  private position = 0
  private ahead: Promise<Buffer>
  private spare: Buffer

  constructor(file: DiskFile, size: number) {
    this.file = file
    this.size = size
    this.spare = Buffer.allocUnsafe(Math.min(chunkSize, size))
    this.ahead = this.read(Buffer.allocUnsafe(this.spare.length))
  }

  /** The next bytes, good until the one after next is asked for; none at the end. */
  async next(): Promise<Buffer> {
    const chunk = await this.ahead
    this.position += chunk.length
    this.ahead = chunk.length === 0 ? Promise.resolve(chunk) : this.read(this.spare)
    this.spare = Buffer.from(chunk.buffer, chunk.byteOffset, this.spare.length)
    return chunk
  }

  private async read(into: Buffer): Promise<Buffer> {
    const wanted = into.subarray(0, Math.min(into.length, this.size - this.position))
    const read = wanted.length === 0 ? 0 : this.file.read(wanted, 0, this.position)
    const reading = Promise.resolve(read).then((count) => wanted.subarray(0, count))
    // Whoever stops early never asks what came of it.
    reading.catch(() => undefined)
    return reading
  }
}

/**
 * The lines up to the file's length at the start, so that a reader beside a writer comes to an end. A file that exists and
 * is empty gives one empty line: it was never made so by this library, and must not pass for a log that never was.
 */
export const lines = (folder: Folder, log: string): Stream.Stream<string, unknown> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const file = yield* openFile(folder, log)
      if (file === undefined) return Stream.empty
      const size = yield* attempt(() => file.size())
      if (size === 0) return Stream.make("")
      const chunks = new Chunks(file, size)
      const splitter = new Splitter()
      return Stream.paginate(undefined, () =>
        Effect.map(
          attempt(() => chunks.next()),
          (chunk) =>
            chunk.length === 0 ? [splitter.rest(), Option.none()] : [splitter.take(chunk), Option.some(undefined)]
        )
      )
    })
  ).pipe(Stream.scoped)

const readAt = async (file: DiskFile, position: number, length: number): Promise<Buffer> => {
  const buffer = Buffer.allocUnsafe(length)
  return buffer.subarray(0, await file.read(buffer, 0, position))
}

const firstLine = (bytes: Buffer): string | undefined => {
  const end = bytes.indexOf(newline)
  return end < 0 ? undefined : bytes.toString("utf8", 0, end)
}

/** The whole lines at the end; none when the end is not one of a line. */
const lastLines = (bytes: Buffer): ReadonlyArray<string> => {
  const start = bytes.indexOf(newline) + 1
  if (start === 0 || bytes.at(-1) !== newline) return []
  return bytes.toString("utf8", start, bytes.length - 1).split("\n")
}

export const ending = (folder: Folder, log: string): Effect.Effect<Storage.Ending, unknown> =>
  Effect.scoped(
    Effect.gen(function* () {
      const file = yield* openFile(folder, log)
      if (file === undefined) return { first: undefined, last: [] }
      return yield* attempt(async () => {
        const size = await file.size()
        const length = Math.min(size, endingSize)
        const first = firstLine(await readAt(file, 0, length))
        return { first, last: lastLines(await readAt(file, size - length, length)) }
      })
    })
  )

/** The log's name out of the header of a file whose own name is too short for it. */
export const nameIn = async (folder: Folder, file: string): Promise<string> => {
  const handle = await folder.disk.open(join(folder.path, file), "r")
  try {
    const first = firstLine(await readAt(handle, 0, Math.min(await handle.size(), headerSize))) ?? ""
    const header: unknown = JSON.parse(first)
    if (typeof header === "object" && header !== null && "log" in header && typeof header.log === "string")
      return header.log
    throw new Error("its first line is no header")
  } catch (cause) {
    throw new FolderError(`${file} does not say which log it holds (${String(cause)})`, "Move it out of the folder")
  } finally {
    await handle.close()
  }
}
