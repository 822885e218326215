/**
 * Reads a log's file: all of its lines in chunks, or only where it begins and ends.
 */
import { join } from "node:path"
import { Effect, Option, Stream } from "effect"
import type { Storage } from "shiftboss"
import { type DiskFile, unlessAbsent } from "./disk.ts"
import { dataPath, type Folder, FolderError } from "./folder.ts"

const chunkSize = 256 * 1024
const endingSize = 64 * 1024
/** The longest header that is looked for when a file does not tell its log. */
const headerSize = 1024 * 1024
const newline = 10

/** Closing does not wait: on a disk that hangs it would hang with it whoever only stops to read. */
const close = (file: DiskFile | undefined) => Effect.sync(() => void file?.close().catch(() => undefined))

const openFile = (folder: Folder, log: string) =>
  Effect.acquireRelease(
    Effect.tryPromise(() => unlessAbsent(folder.disk.open(dataPath(folder, log), "r"))),
    close,
    { interruptible: true }
  )

/** Cuts bytes into lines. What comes after the last newline waits for the rest of its line. */
class Splitter {
  private readonly pieces: Array<Buffer> = []

  take(bytes: Buffer): Array<string> {
    const end = bytes.lastIndexOf(newline)
    if (end < 0) {
      this.pieces.push(Buffer.from(bytes))
      return []
    }
    this.pieces.push(bytes.subarray(0, end))
    const lines = Buffer.concat(this.pieces).toString("utf8").split("\n")
    this.pieces.length = 0
    if (end + 1 < bytes.length) this.pieces.push(Buffer.from(bytes.subarray(end + 1)))
    return lines
  }

  /** A line without its end was cut off, see `Encoded.lines`. */
  rest(): Array<string> {
    return this.pieces.length === 0 ? [] : [`${Buffer.concat(this.pieces).toString("utf8")}\0`]
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
      const size = yield* Effect.tryPromise(() => file.size())
      if (size === 0) return Stream.make("")
      const splitter = new Splitter()
      const buffer = Buffer.allocUnsafe(Math.min(chunkSize, size))
      return Stream.paginate(0, (position) =>
        Effect.tryPromise(async () => {
          const wanted = buffer.subarray(0, Math.min(buffer.length, size - position))
          const count = wanted.length === 0 ? 0 : await file.read(wanted, 0, position)
          if (count === 0) return [splitter.rest(), Option.none<number>()] as const
          return [splitter.take(wanted.subarray(0, count)), Option.some(position + count)] as const
        })
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
      return yield* Effect.tryPromise(async () => {
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
