/**
 * The few calls to the file system that a log is made of, all but one asynchronous: a slow disk must not stop the rest of
 * the process. Tests put failing ones in their place.
 */
import { constants, statSync } from "node:fs"
import * as fs from "node:fs/promises"
import { Data, Effect } from "effect"

export interface DiskFile {
  readonly size: () => Promise<number>
  readonly mode: () => Promise<number>
  readonly chmod: (mode: number) => Promise<void>
  /** The bytes read, fewer than asked for at the end of the file. */
  readonly read: (buffer: Buffer, at: number, position: number) => Promise<number>
  /** The bytes written, which may be fewer than given. */
  readonly write: (buffer: Buffer, at: number, position: number) => Promise<number>
  readonly truncate: (length: number) => Promise<void>
  /** Makes what was written durable. A file opened with "durable" may have done so with each write. */
  readonly datasync: () => Promise<void>
  readonly sync: () => Promise<void>
  readonly close: () => Promise<void>
}

export interface Disk {
  readonly open: (path: string, flags: "r" | "r+" | "wx" | "durable", mode?: number) => Promise<DiskFile>
  readonly makeDirectory: (path: string) => Promise<void>
  readonly modeOf: (path: string) => Promise<number>
  readonly chmod: (path: string, mode: number) => Promise<void>
  readonly names: (directory: string) => Promise<ReadonlyArray<string>>
  readonly rename: (from: string, to: string) => Promise<void>
  readonly link: (from: string, to: string) => Promise<void>
  readonly remove: (path: string) => Promise<void>
  readonly modifiedAt: (path: string) => Promise<number>
  /**
   * Answers at once: a name in a folder that is in use is looked up in memory, and a trip through the thread pool would be
   * a fifth of what a flush takes.
   */
  readonly exists: (path: string) => boolean
  readonly setModifiedAt: (path: string, millis: number) => Promise<void>
  readonly text: (path: string) => Promise<string>
}

/**
 * With O_DSYNC a write is as good as one with an fdatasync behind it (POSIX, synchronized I/O data integrity), for one trip
 * through the thread pool instead of two. Not on macOS, where only Node's fdatasync has the drive empty its cache.
 */
const syncsWrites = process.platform === "linux"
const durableFlags = syncsWrites ? constants.O_RDWR | constants.O_DSYNC : constants.O_RDWR

const open: Disk["open"] = async (path, flags, mode) => {
  const handle = await fs.open(path, flags === "durable" ? durableFlags : flags, mode)
  const isSynced = flags === "durable" && syncsWrites
  return {
    size: async () => (await handle.stat()).size,
    mode: async () => (await handle.stat()).mode & 0o777,
    chmod: (mode) => handle.chmod(mode),
    read: async (buffer, at, position) => (await handle.read(buffer, at, buffer.length - at, position)).bytesRead,
    write: async (buffer, at, position) => (await handle.write(buffer, at, buffer.length - at, position)).bytesWritten,
    truncate: (length) => handle.truncate(length),
    datasync: () => (isSynced ? Promise.resolve() : handle.datasync()),
    sync: () => handle.sync(),
    close: () => handle.close()
  }
}

export const nodeDisk: Disk = {
  open,
  makeDirectory: async (path) => {
    await fs.mkdir(path, { recursive: true, mode: 0o700 })
  },
  modeOf: async (path) => (await fs.stat(path)).mode,
  chmod: fs.chmod,
  names: (directory) => fs.readdir(directory),
  rename: fs.rename,
  link: fs.link,
  remove: fs.unlink,
  modifiedAt: async (path) => (await fs.stat(path)).mtimeMs,
  exists: (path) => statSync(path, { throwIfNoEntry: false }) !== undefined,
  setModifiedAt: (path, millis) => fs.utimes(path, millis / 1000, millis / 1000),
  text: (path) => fs.readFile(path, "utf8")
}

/** Whether the error is the operating system's with one of these codes. */
export const hasCode = (error: unknown, ...codes: ReadonlyArray<string>): boolean =>
  error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code)

/** The value, or nothing when there is no such file. */
export const unlessAbsent = <A>(promise: Promise<A>): Promise<A | undefined> =>
  promise.catch((error: unknown) => {
    if (hasCode(error, "ENOENT")) return undefined
    throw error
  })

/** Writes all of it, also when the system takes it piece by piece. */
export const writeAll = async (file: DiskFile, buffer: Buffer, position: number): Promise<void> => {
  for (let at = 0; at < buffer.length;) {
    const written = await file.write(buffer, at, position + at)
    if (written === 0) throw new Error("the disk took no more bytes")
    at += written
  }
}

/** Makes what was created, renamed or removed in the directory outlive a power loss. */
export const syncDirectory = async (disk: Disk, directory: string): Promise<void> => {
  const handle = await disk.open(directory, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** What the disk answered. `code` is Node's, such as ENOSPC. */
export class DiskError extends Data.TaggedError("DiskError")<{
  readonly message: string
  readonly code: string | undefined
  readonly cause: unknown
}> {}

/** The promise as an effect that fails with what it was rejected with. The signal says that it was interrupted. */
export const attempt = <A>(evaluate: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, DiskError> =>
  Effect.tryPromise({
    try: evaluate,
    catch: (cause) =>
      new DiskError({
        message: cause instanceof Error ? cause.message : String(cause),
        code: cause instanceof Error && "code" in cause ? String(cause.code) : undefined,
        cause
      })
  })
