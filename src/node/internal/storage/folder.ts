/**
 * Where the files of a log are, and that nobody else reads them.
 */
import { join } from "node:path"
import { type Disk, syncDirectory } from "./disk.ts"
import { fromFileName, toFileName } from "./names.ts"

/** A cause that brings its own advice. */
export class FolderError extends Error {
  readonly remedy: string
  constructor(message: string, remedy: string) {
    super(message)
    this.name = "FolderError"
    this.remedy = remedy
  }
}

const suffix = ".ndjson"
const stickyBit = 0o1000

export interface Folder {
  readonly disk: Disk
  readonly path: string
}

export const dataPath = (folder: Folder, log: string): string => join(folder.path, `${toFileName(log)}${suffix}`)

/** Begins with a point, which no file of a log does. */
export const temporaryPath = (folder: Folder, log: string, epoch: number): string =>
  join(folder.path, `.${toFileName(log)}.${epoch}.tmp`)

/** Of a lock with that number, as long as it is being written; `id` is drawn anew for each. */
export const unfinishedLockPath = (folder: Folder, log: string, epoch: number, id: string): string =>
  join(folder.path, `.${toFileName(log)}.${epoch}.${id}.lock.tmp`)

/**
 * Whether nobody needs the file any more once `epoch` holds the log: content that a former holder did not finish, or a lock
 * whose number cannot be taken now. One with a higher number may be at work on it.
 */
export const isLeftover = (name: string, log: string, epoch: number): boolean => {
  const prefix = `.${toFileName(log)}.`
  const match = name.startsWith(prefix) ? /^(\d+)(\.[\da-f-]+\.lock)?\.tmp$/.exec(name.slice(prefix.length)) : null
  return match !== null && (match[2] === undefined || Number(match[1]) <= epoch)
}

/** The log of a data file, `undefined` when it has to be read from its header, and nothing for other files. */
export const logOf = (name: string): { readonly log: string | undefined } | undefined =>
  name.startsWith(".") || !name.endsWith(suffix) ? undefined : { log: fromFileName(name.slice(0, -suffix.length)) }

/** Makes the folder, or takes the rights of others to it away. */
export const prepare = async ({ disk, path }: Folder): Promise<void> => {
  if (process.platform === "win32") {
    throw new FolderError("logs in files are not supported on Windows", "Use Linux or macOS, or another storage")
  }
  await disk.makeDirectory(path)
  const mode = await disk.modeOf(path)
  if ((mode & 0o777) === 0o700) return
  // A folder such as /tmp: closing it would take it away from everyone else.
  if ((mode & stickyBit) !== 0) {
    throw new FolderError(
      `${path} is shared with other users`,
      "Give the logs a folder of their own, such as one inside it"
    )
  }
  await disk.chmod(path, 0o700)
}

export const syncFolder = ({ disk, path }: Folder): Promise<void> => syncDirectory(disk, path)
