/**
 * Locks as files: `<log>.<epoch>.lock` while it is held, `<log>.<epoch>.free` once it is released. The highest number is
 * the current one and is never removed, so that no number is used twice.
 *
 * The holder is whoever's own lock file still exists. A successor first links the next number, which only one can, and
 * then removes the lower ones: up to there the former holder's acknowledgements are good, and its successor reads the log
 * only afterwards.
 */
import { randomUUID } from "node:crypto"
import { join } from "node:path"
import type { Storage } from "shiftboss"
import { hasCode, unlessAbsent, writeAll } from "./disk.ts"
import { dataPath, type Folder, isLeftover, prepare, syncFolder, unfinishedLockPath } from "./folder.ts"
import { toFileName } from "./names.ts"

interface LockFile {
  readonly name: string
  readonly epoch: number
  readonly isFree: boolean
}

interface Content {
  readonly holder: string
  /**
   * Whether a former holder may still have the file open, because it was not proven dead. The log then has to be copied to
   * a new file before anything is written, by whoever comes to that first.
   */
  readonly haunted: boolean
}

const opening = `{"haunted":`
const hauntedAt = opening.length
const toText = ({ holder, haunted }: Content) => `${opening}${haunted ? 1 : 0},"holder":${JSON.stringify(holder)}}`

const lockPath = (folder: Folder, log: string, epoch: number) => join(folder.path, `${toFileName(log)}.${epoch}.lock`)

const lockFiles = async (folder: Folder, log: string) => {
  const names = await folder.disk.names(folder.path)
  const prefix = `${toFileName(log)}.`
  const files: Array<LockFile> = []
  for (const name of names) {
    const match = name.startsWith(prefix) ? /^(\d+)\.(lock|free)$/.exec(name.slice(prefix.length)) : null
    if (match !== null) files.push({ name, epoch: Number(match[1]), isFree: match[2] === "free" })
  }
  // A number that was freed counts as free, whatever a late taker has linked beside it.
  files.sort((one, other) => one.epoch - other.epoch || Number(one.isFree) - Number(other.isFree))
  return { files, leftovers: (epoch: number) => names.filter((name) => isLeftover(name, log, epoch)) }
}

const parseContent = (text: string): Content => {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === "object" && parsed !== null && "holder" in parsed && typeof parsed.holder === "string") {
      return { holder: parsed.holder, haunted: !("haunted" in parsed) || parsed.haunted !== 0 }
    }
  } catch {
    // Empty or half-written by something else than this library; nobody can say whose it is.
  }
  return { holder: text, haunted: true }
}

const readLock = async ({ disk, path }: Folder, { name, epoch }: LockFile) => {
  const where = join(path, name)
  const text = await unlessAbsent(disk.text(where))
  const renewedAt = await unlessAbsent(disk.modifiedAt(where))
  if (text === undefined || renewedAt === undefined) return undefined
  const { holder, haunted } = parseContent(text)
  const lock: Storage.Lock = { epoch, holder, renewedAt: Math.round(renewedAt), where }
  return { lock, haunted }
}

const isSame = (lock: Storage.Lock, other: Storage.Lock) =>
  lock.epoch === other.epoch && lock.holder === other.holder && lock.renewedAt === other.renewedAt

const writeLock = async ({ disk }: Folder, path: string, content: Content, now: number): Promise<void> => {
  const file = await disk.open(path, "wx", 0o600)
  try {
    await writeAll(file, Buffer.from(toText(content)), 0)
    await file.sync()
  } finally {
    await file.close()
  }
  await disk.setModifiedAt(path, now)
}

/** Links a complete lock file into place. False when another one was first, also when that took the unfinished one away. */
const create = async (folder: Folder, log: string, epoch: number, content: Content, now: number): Promise<boolean> => {
  const temporary = unfinishedLockPath(folder, log, epoch, randomUUID())
  try {
    await writeLock(folder, temporary, content, now)
    await folder.disk.link(temporary, lockPath(folder, log, epoch))
    return true
  } catch (error) {
    if (hasCode(error, "EEXIST", "ENOENT")) return false
    throw error
  } finally {
    await unlessAbsent(folder.disk.remove(temporary))
  }
}

/** Takes what no holder needs any more away: first what makes former holders stop, then what they had not finished. */
const clear = async (folder: Folder, names: ReadonlyArray<string>) => {
  for (const name of names) await unlessAbsent(folder.disk.remove(join(folder.path, name)))
  await syncFolder(folder)
}

export type Taken = { readonly epoch: number; readonly haunted: boolean } | { readonly lock: Storage.Lock }

/** One attempt; nothing when somebody else changed the locks in the middle of it. */
const attempt = async (
  folder: Folder,
  log: string,
  holder: string,
  { now, dead }: Storage.AcquireOptions
): Promise<Taken | undefined> => {
  const current = (await lockFiles(folder, log)).files.at(-1)
  const read = current === undefined ? undefined : await readLock(folder, current)
  if (current !== undefined && read === undefined) return undefined
  const isHeld = read !== undefined && current?.isFree === false
  if (isHeld && (dead === undefined || !isSame(read.lock, dead.lock))) return { lock: read.lock }
  // A log without any lock: somebody removed it, and whether its holder lives is not known.
  const haunted =
    read === undefined ? folder.disk.exists(dataPath(folder, log)) : read.haunted || (isHeld && dead?.proven !== true)
  const epoch = (current?.epoch ?? 0) + 1
  if (!(await create(folder, log, epoch, { holder, haunted }, now))) return undefined
  const { files, leftovers } = await lockFiles(folder, log)
  if (files.filter((file) => file.epoch >= epoch).length !== 1) {
    // The number had been used since the locks were listed, and freed or removed: this is no lock, only a trace of being
    // late. Where the freed one still stands, a number would have two holders.
    await unlessAbsent(folder.disk.remove(lockPath(folder, log, epoch)))
    return undefined
  }
  const former = files.filter((file) => file.epoch < epoch).map(({ name }) => name)
  await clear(folder, [...former, ...leftovers(epoch)])
  return { epoch, haunted }
}

/** More than two contenders could lose to each other in a row by chance. */
const attempts = 20

export const take = async (
  folder: Folder,
  log: string,
  holder: string,
  options: Storage.AcquireOptions
): Promise<Taken> => {
  await prepare(folder)
  for (let count = 0; count < attempts; count++) {
    const taken = await attempt(folder, log, holder, options)
    if (taken !== undefined) return taken
  }
  throw new Error(`its locks changed ${attempts} times in a row`)
}

export const holds = (folder: Folder, log: string, epoch: number): boolean =>
  folder.disk.exists(lockPath(folder, log, epoch))

export const renew = async (folder: Folder, log: string, epoch: number, now: number): Promise<boolean> =>
  (await unlessAbsent(folder.disk.setModifiedAt(lockPath(folder, log, epoch), now).then(() => true))) ?? false

/** Renaming needs no room, so that a log can be given back on a full disk. */
export const free = async (folder: Folder, log: string, epoch: number): Promise<void> => {
  const path = lockPath(folder, log, epoch)
  await unlessAbsent(folder.disk.rename(path, path.replace(/\.lock$/, ".free")))
  await syncFolder(folder)
}

/**
 * Says in the lock that the log was copied away from former holders. One byte in place: a lock that was lost meanwhile
 * must not come back, as it would by a rename.
 */
export const layToRest = async (folder: Folder, log: string, epoch: number, now: number): Promise<void> => {
  const path = lockPath(folder, log, epoch)
  const file = await folder.disk.open(path, "r+")
  try {
    await writeAll(file, Buffer.from("0"), hauntedAt)
    await file.sync()
  } finally {
    await file.close()
  }
  await folder.disk.setModifiedAt(path, now)
}
