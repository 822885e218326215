// A disk in memory that answers at once, so that a fake clock decides when pages are written, and that can be told to fail.
import { basename, dirname } from "node:path"
import type { Disk } from "../../../src/node/internal/storage/disk.ts"
import { failure } from "../support/folders.ts"

export interface MemoryDisk extends Disk {
  readonly files: Map<string, string>
  readonly folders: Set<string>
  /** The files that were put in place, in order. */
  readonly written: Array<string>
  /** Why nothing can be written or removed. */
  broken: "ENOSPC" | undefined
}

export const memoryDisk = (): MemoryDisk => {
  const files = new Map<string, string>()
  const folders = new Set<string>()
  const absent = () => Promise.reject(failure("ENOENT"))
  const unused = () => Promise.reject(new Error("no page needs this"))
  const disk: MemoryDisk = {
    ...{ files, folders, written: [], broken: undefined },
    open: async (path) => {
      if (!folders.has(dirname(path))) return absent()
      if (files.has(path)) throw failure("EEXIST")
      files.set(path, "")
      return {
        ...{
          size: unused,
          mode: unused,
          chmod: unused,
          read: unused,
          truncate: unused,
          datasync: unused,
          sync: unused
        },
        write: async (buffer, at) => {
          if (disk.broken !== undefined) throw failure(disk.broken)
          files.set(path, files.get(path) + buffer.toString("utf8", at))
          return buffer.length - at
        },
        close: async () => undefined
      }
    },
    makeDirectory: async (path) => void folders.add(path),
    modeOf: async () => 0o700,
    chmod: async () => undefined,
    names: async (path) => [...files.keys()].filter((file) => dirname(file) === path).map((file) => basename(file)),
    rename: async (from, to) => {
      const text = files.get(from)
      if (text === undefined || !folders.has(dirname(to))) return absent()
      if (folders.has(to)) throw failure("EISDIR")
      files.delete(from)
      files.set(to, text)
      disk.written.push(to)
    },
    remove: async (path) => {
      if (disk.broken !== undefined && files.has(path)) throw failure(disk.broken)
      if (!files.delete(path)) await absent()
    },
    exists: (path) => folders.has(path) || files.has(path),
    ...{ link: unused, modifiedAt: unused, setModifiedAt: unused, text: unused }
  }
  return disk
}
