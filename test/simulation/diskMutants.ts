/**
 * What the logs would be with one of their protections missing. Each is put between the logs and their disk from outside.
 */
import { crc32 } from "node:zlib"
import { Effect, Stream } from "effect"
import type { Storage } from "shiftboss"
import type { Disk, DiskFile } from "../../src/node/internal/storage/disk.ts"
import { folder } from "./disk.ts"
import type { Mutant } from "./lives.ts"

type Flags = Parameters<Disk["open"]>[1]

/** The disk with other files. One that would sync each write is synced by calls, so that a mutant can leave those out. */
const files = (
  change: (file: DiskFile, path: string, flags: Flags) => Partial<DiskFile>,
  faults?: Mutant["faults"]
): Mutant => ({
  ...(faults === undefined ? {} : { faults }),
  disk: (disk) => ({
    ...disk,
    open: async (path, flags, mode) => {
      const file = await disk.open(path, flags === "durable" ? "r+" : flags, mode)
      return { ...file, ...change(file, path, flags) }
    }
  })
})

const done = () => Promise.resolve()
const isFolder = (path: string) => path === folder
const isLog = (path: string) => path.endsWith(".ndjson")

/** Gives each line the checksum that it should have. */
const resealed = (line: string): string => {
  const rest = line.slice(`{"crc":"00000000",`.length)
  return `{"crc":"${crc32(rest).toString(16).padStart(8, "0")}",${rest}`
}

const unchecked = (encoded: Storage.Encoded): Storage.Encoded => {
  const { ending, lines } = encoded
  return {
    ...encoded,
    lines: (log) => Stream.map(lines(log), resealed),
    ...(ending === undefined
      ? {}
      : {
          ending: (log) =>
            Effect.map(ending(log), ({ first, last }) => ({
              first: first === undefined ? first : resealed(first),
              last: last.map(resealed)
            }))
        })
  }
}

/** A mutant, and how many seeds may pass it by before one finds it. */
export interface Killed {
  readonly mutant: Mutant
  readonly within: number
}

/** By what is missing. */
export const diskMutants: Readonly<Record<string, Killed>> = {
  "acknowledges before the sync": {
    within: 60,
    mutant: files((file) => ({ datasync: () => (void file.datasync().catch(done), done()) }), {
      slow: 0.1,
      powerLoss: 0.7
    })
  },
  "never syncs a file": {
    within: 20,
    mutant: files((_, path) => (isFolder(path) ? {} : { datasync: done, sync: done }), { powerLoss: 0.5 })
  },
  "never syncs the folder": {
    within: 20,
    mutant: files((_, path) => (isFolder(path) ? { sync: done } : {}), { powerLoss: 0.5 })
  },
  "syncs again after a failed sync": {
    within: 30,
    mutant: files((file) => ({ datasync: () => file.datasync().catch(() => file.datasync()) }), {
      syncFails: 0.05,
      powerLoss: 0.5
    })
  },
  "goes on when the folder could not be synced": {
    within: 40,
    mutant: files((file, path) => (isFolder(path) ? { sync: () => file.sync().catch(done) } : {}), {
      syncFails: 0.1,
      powerLoss: 1
    })
  },
  "does not check checksums": { within: 60, mutant: { encoded: unchecked, faults: { crash: 0.02 } } },
  "does not cut off a torn end": { within: 40, mutant: files(() => ({ truncate: done }), { crash: 0.015 }) },
  "does not settle what its predecessor left": {
    within: 40,
    mutant: files(
      (_, path, flags) =>
        isLog(path) && flags === "r+" ? { write: async (buffer, at) => buffer.length - at, sync: done } : {},
      { syncFails: 0.15, powerLoss: 0.5 }
    )
  },
  "does not look whether it still holds the log": {
    within: 20,
    mutant: {
      disk: (disk) => ({ ...disk, exists: (path) => path.endsWith(".lock") || disk.exists(path) }),
      faults: { pause: 1 }
    }
  }
}
