/**
 * Makes sure that what a new holder reads is on the disk.
 */
import { type DiskFile, unlessAbsent, writeAll } from "./disk.ts"
import { dataPath, type Folder } from "./folder.ts"

const newline = 10
const firstWindow = 64 * 1024

/** How many lines before it the flush of this line begins; nothing when it is no record. */
const linesBefore = (line: string): number | undefined => {
  const match = /,"seq":(\d+),"first":(\d+),/.exec(line)
  return match === null ? undefined : Number(match[1]) - Number(match[2])
}

/** Where the last flush begins in these bytes, which are the end of the file; nothing when it begins before them. */
const flushStart = (bytes: Buffer): number | undefined => {
  const end = bytes.lastIndexOf(newline)
  if (end < 0) return undefined
  let start = bytes.lastIndexOf(newline, end - 1) + 1
  let left = linesBefore(bytes.toString("utf8", start, Math.min(end, start + 256)))
  // Nobody can tell what damage is part of: all that was read counts as in doubt.
  if (left === undefined) return 0
  for (; left > 0 && start > 0; left--) start = start < 2 ? 0 : bytes.lastIndexOf(newline, start - 2) + 1
  return start > 0 ? start : undefined
}

const readEnd = async (file: DiskFile, position: number, size: number): Promise<Buffer> => {
  const buffer = Buffer.allocUnsafe(size - position)
  let length = 0
  while (length < buffer.length) {
    const count = await file.read(buffer, length, position + length)
    if (count === 0) break
    length += count
  }
  return buffer.subarray(0, length)
}

/**
 * Writes the last flush again, as it is, and syncs it. A former holder can have ended between writing it and having it synced:
 * it is in the system's cache and looks as if it stood. When the sync had failed, the system even counts those pages as
 * written, and no later sync would write them.
 */
export const settle = async (folder: Folder, log: string): Promise<void> => {
  const file = await unlessAbsent(folder.disk.open(dataPath(folder, log), "r+"))
  if (file === undefined) return
  try {
    const size = await file.size()
    for (let window = firstWindow; ; window *= 8) {
      const position = Math.max(0, size - window)
      const bytes = await readEnd(file, position, size)
      const start = flushStart(bytes) ?? (position === 0 ? 0 : undefined)
      if (start === undefined) continue
      await writeAll(file, bytes.subarray(start), position + start)
      await file.sync()
      return
    }
  } finally {
    await file.close()
  }
}
