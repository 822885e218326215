/**
 * The seam of `Storage` over a folder of files.
 */
import { Stream } from "effect"
import { Storage } from "shiftboss"
import { makeContent } from "./content.ts"
import { attempt, DiskError, hasCode, unlessAbsent } from "./disk.ts"
import { type Folder, FolderError, logOf } from "./folder.ts"
import { ending, lines, nameIn } from "./lines.ts"
import { free, layToRest, renew, take } from "./locks.ts"
import { settle } from "./settle.ts"
import { alive, identify } from "./processes.ts"

export const makeFiles = (folder: Folder): Storage.Encoded => {
  const content = makeContent(folder)
  const acquire = async (log: string, holder: string, options: Storage.AcquireOptions): Promise<Storage.Acquired> => {
    const taken = await take(folder, log, holder, options)
    if ("lock" in taken) return { _tag: "Held", lock: taken.lock }
    try {
      if (taken.haunted) {
        await content.moveAway(log, taken.epoch)
        await layToRest(folder, log, taken.epoch, options.now)
      } else await settle(folder, log)
    } catch (error) {
      // The lock of a haunted log still says that the copy is due, to whoever comes next.
      await free(folder, log, taken.epoch).catch(() => undefined)
      throw error
    }
    return { _tag: "Acquired", epoch: taken.epoch }
  }
  const release = async (log: string, epoch: number) => {
    await content.forget(log, epoch)
    await free(folder, log, epoch)
  }
  const names = async (): Promise<ReadonlyArray<string>> => {
    const files = (await unlessAbsent(folder.disk.names(folder.path))) ?? []
    const logs: Array<string> = []
    for (const file of files) {
      const found = logOf(file)
      if (found !== undefined) logs.push(found.log ?? (await nameIn(folder, file)))
    }
    return logs
  }
  return {
    acquire: (log, holder, options) => attempt(() => acquire(log, holder, options)),
    renew: (log, epoch, now) => attempt(() => renew(folder, log, epoch, now)),
    release: (log, epoch) => attempt(() => release(log, epoch)),
    append: (log, epoch, standing, lines) => attempt(() => content.append(log, epoch, standing, lines)),
    replace: (log, epoch, lines) => attempt(() => content.replace(log, epoch, lines)),
    lines: (log) => lines(folder, log),
    ending: (log) => ending(folder, log),
    names: Stream.fromIterableEffect(attempt(names)),
    remove: (log, epoch) => attempt(() => content.remove(log, epoch))
  }
}

const remedyOf = (folder: Folder, cause: unknown): string | undefined => {
  if (cause instanceof DiskError && cause.cause instanceof FolderError) return cause.cause.remedy
  if (hasCode(cause, "ENOSPC", "EDQUOT")) return `Make room on the disk of ${folder.path}; then it works again`
  if (hasCode(cause, "EACCES", "EPERM", "EROFS")) return `Let this process read and write ${folder.path}`
  if (hasCode(cause, "EMFILE", "ENFILE")) return "Close files, or raise the limit of open files (ulimit -n)"
  if (hasCode(cause, "ENOTDIR", "EEXIST")) return `Make ${folder.path} a directory, or name another one`
  if (hasCode(cause, "EIO")) return `Check the disk of ${folder.path}`
  return undefined
}

export const makeFileStorage = (folder: Folder, options: Storage.EncodedOptions = {}): Storage.Storage["Service"] =>
  Storage.fromEncoded(makeFiles(folder), {
    identity: identify,
    alive,
    remedy: (_, cause) => remedyOf(folder, cause),
    ...options
  })
