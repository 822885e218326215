/**
 * Writes a log's file, for the one that holds it.
 */
import { type DiskFile, hasCode, unlessAbsent, writeAll } from "./disk.ts"
import { dataPath, type Folder, FolderError, syncFolder, temporaryPath } from "./folder.ts"
import { holds } from "./locks.ts"

/** A log as its holder writes it. */
interface Writing {
  readonly epoch: number
  /** Open while appending. */
  file: DiskFile | undefined
  /** Lines that stand, and the bytes they take. */
  lines: number
  bytes: number
  /** Why nothing more is written until the log is opened again. */
  end: FolderError | undefined
}

const newline = 10
const copySize = 1024 * 1024

const toBytes = (lines: ReadonlyArray<string>): Buffer => Buffer.from(lines.join("\n") + "\n")

/** The bytes that the first lines take. */
const measure = async (file: DiskFile, lines: number): Promise<number> => {
  const buffer = Buffer.allocUnsafe(copySize)
  let left = lines
  for (let position = 0; ;) {
    const count = await file.read(buffer, 0, position)
    if (count === 0) throw new Error(`it has ${lines - left} lines, but ${lines} were acknowledged`)
    const bytes = buffer.subarray(0, count)
    for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) {
      if (--left === 0) return position + at + 1
    }
    position += count
  }
}

const copy = async (from: DiskFile, to: DiskFile, length: number): Promise<void> => {
  const buffer = Buffer.allocUnsafe(copySize)
  for (let position = 0; position < length;) {
    const count = await from.read(buffer.subarray(0, Math.min(copySize, length - position)), 0, position)
    if (count === 0) throw new Error(`it ended after ${position} of ${length} bytes`)
    await writeAll(to, buffer.subarray(0, count), position)
    position += count
  }
}

/**
 * Makes a new file the log's, whole or not at all. The epoch is checked once the file exists: whoever comes later removes
 * the unfinished files of former holders, so that the rename of one that was too slow finds nothing. False when the
 * epoch does not hold the log.
 */
const install = async (
  folder: Folder,
  log: string,
  epoch: number,
  fill: (file: DiskFile) => Promise<void>
): Promise<boolean> => {
  const { disk } = folder
  const temporary = temporaryPath(folder, log, epoch)
  await unlessAbsent(disk.remove(temporary))
  try {
    const file = await disk.open(temporary, "wx", 0o600)
    try {
      await fill(file)
      await file.sync()
    } finally {
      await file.close()
    }
    if (!holds(folder, log, epoch)) {
      await unlessAbsent(disk.remove(temporary))
      return false
    }
    await disk.rename(temporary, dataPath(folder, log))
  } catch (error) {
    await disk.remove(temporary).catch(() => undefined)
    if (!holds(folder, log, epoch)) return false
    throw error
  }
  try {
    await syncFolder(folder)
  } catch (cause) {
    throw new FolderError(
      `its new file is in place, but the folder could not be synced (${cause instanceof Error ? cause.message : String(cause)})`,
      "Check the disk, then open the log again: all that was acknowledged before is still there"
    )
  }
  return holds(folder, log, epoch)
}

/** Copies the log to a new file, so that what a former holder still writes reaches nobody. */
const moveAway = async (folder: Folder, log: string, epoch: number): Promise<void> => {
  const file = await unlessAbsent(folder.disk.open(dataPath(folder, log), "r"))
  if (file === undefined) return
  try {
    const size = await file.size()
    const holding = await install(folder, log, epoch, (to) => copy(file, to, size))
    if (!holding) throw new Error("another holder took it while it was copied")
  } finally {
    await file.close()
  }
}

const close = async (writing: Writing): Promise<void> => {
  const { file } = writing
  writing.file = undefined
  await file?.close().catch(() => undefined)
}

/** Nothing when the epoch does not hold the log. */
const openForAppend = async (
  folder: Folder,
  log: string,
  writing: Writing,
  standing: number
): Promise<DiskFile | undefined> => {
  if (writing.file !== undefined && writing.lines === standing) return writing.file
  await close(writing)
  const file = await folder.disk.open(dataPath(folder, log), "durable")
  writing.file = file
  // Only now: a successor that takes the log over from here on copies this file, and one that had done so is seen.
  if (!holds(folder, log, writing.epoch)) return undefined
  if ((await file.mode()) !== 0o600) await file.chmod(0o600)
  writing.bytes = await measure(file, standing)
  writing.lines = standing
  if ((await file.size()) > writing.bytes) {
    // The torn end of a crash has to be gone for good before anything is acknowledged behind it.
    await file.truncate(writing.bytes)
    await file.sync()
  }
  return file
}

/**
 * After a failed fsync nobody knows which pages are on the disk, and a second one would claim success for those that were
 * dropped. What was acknowledged goes to a new file; where even that fails, the log is closed.
 */
const rescue = async (folder: Folder, log: string, writing: Writing, file: DiskFile): Promise<void> => {
  try {
    await install(folder, log, writing.epoch, (to) => copy(file, to, writing.bytes))
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error)
    writing.end = new FolderError(
      `its file could not be synced, nor copied afterwards (${cause})`,
      "Check the disk, then open the log again: all that was acknowledged before is still there"
    )
  } finally {
    await close(writing)
  }
}

/** The bytes did not get as far as the disk: nothing is in doubt. */
const isRefused = (error: unknown) => hasCode(error, "ENOSPC", "EDQUOT", "EFBIG")

const appendTo = async (
  folder: Folder,
  log: string,
  writing: Writing,
  file: DiskFile,
  lines: ReadonlyArray<string>
) => {
  const bytes = toBytes(lines)
  try {
    await writeAll(file, bytes, writing.bytes)
    await file.datasync()
  } catch (error) {
    if (!isRefused(error)) {
      await rescue(folder, log, writing, file)
      throw error
    }
    // Half a flush only takes up room that may be what is missing. Failing that, the next append drops it.
    await file.truncate(writing.bytes).catch(() => undefined)
    await close(writing)
    throw error
  }
  writing.bytes += bytes.length
  writing.lines += lines.length
}

export const makeContent = (folder: Folder) => {
  /** By hold, not by log: one that was lost may be followed by another in this process before it is given up. */
  const writings = new Map<string, Writing>()
  const holdOf = (log: string, epoch: number) => `${epoch} ${log}`
  const writingOf = (log: string, epoch: number): Writing => {
    const known = writings.get(holdOf(log, epoch))
    if (known !== undefined) return known
    const writing: Writing = { epoch, file: undefined, lines: 0, bytes: 0, end: undefined }
    writings.set(holdOf(log, epoch), writing)
    return writing
  }
  const replace = async (log: string, epoch: number, lines: ReadonlyArray<string>): Promise<boolean> => {
    const writing = writingOf(log, epoch)
    if (writing.end !== undefined) throw writing.end
    await close(writing)
    try {
      return await install(folder, log, epoch, (file) => writeAll(file, toBytes(lines), 0))
    } catch (error) {
      // Until the folder is synced, a power loss brings the former file back: nothing may be acknowledged in the new one.
      if (error instanceof FolderError) writing.end = error
      throw error
    }
  }
  const append = async (
    log: string,
    epoch: number,
    standing: number,
    lines: ReadonlyArray<string>
  ): Promise<boolean> => {
    // A new log appears with its header and first entries, or not at all.
    if (standing === 0) return replace(log, epoch, lines)
    const writing = writingOf(log, epoch)
    if (writing.end !== undefined) throw writing.end
    const file = await openForAppend(folder, log, writing, standing)
    if (file === undefined) return false
    await appendTo(folder, log, writing, file, lines)
    return holds(folder, log, epoch)
  }
  const forget = async (log: string, epoch: number): Promise<void> => {
    const writing = writings.get(holdOf(log, epoch))
    if (writing === undefined) return
    writings.delete(holdOf(log, epoch))
    await close(writing)
  }
  const remove = async (log: string, epoch: number): Promise<boolean> => {
    await forget(log, epoch)
    if (!holds(folder, log, epoch)) return false
    await unlessAbsent(folder.disk.remove(dataPath(folder, log)))
    await syncFolder(folder)
    return true
  }
  return { append, replace, forget, remove, moveAway: (log: string, epoch: number) => moveAway(folder, log, epoch) }
}
