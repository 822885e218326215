/**
 * Where the pages are. Each is replaced whole, so that a reader never sees half of one.
 *
 * Nothing is synced: a page that a power loss takes is written again at the next start, and syncing one each second would
 * slow the log beside it.
 */
import { join } from "node:path"
import { type Disk, unlessAbsent, writeAll } from "../storage/disk.ts"
import { type Folder, prepare } from "../storage/folder.ts"
import { toFileName } from "../storage/names.ts"

export interface Shelf {
  readonly disk: Disk
  readonly status: Folder
  readonly applies: Folder
}

export const make = ({ disk, path }: Folder): Shelf => ({
  disk,
  status: { disk, path },
  applies: { disk, path: join(path, "applies") }
})

/** Makes the folders, closed to others, and removes what a killed process left half-written. */
export const open = async ({ applies, disk, status }: Shelf): Promise<void> => {
  for (const folder of [status, applies]) {
    await prepare(folder)
    for (const name of await disk.names(folder.path)) {
      if (/^\..+\.md\.\d+\.tmp$/.test(name)) await unlessAbsent(disk.remove(join(folder.path, name)))
    }
  }
}

/** Whether the folders are there. Where that cannot be told, opening them says why. */
export const isOpen = ({ applies, disk }: Shelf): boolean => {
  try {
    return disk.exists(applies.path)
  } catch {
    return false
  }
}

export const writeStatus = (shelf: Shelf, text: string): Promise<void> => replace(shelf.status, "STATUS.md", text)

/** The name is data: it never leaves the folder. */
export const writeApply = (shelf: Shelf, apply: string, text: string): Promise<void> =>
  replace(shelf.applies, `${toFileName(apply)}.md`, text)

const replace = async ({ disk, path }: Folder, name: string, text: string): Promise<void> => {
  const temporary = join(path, `.${name}.${process.pid}.tmp`)
  await unlessAbsent(disk.remove(temporary))
  try {
    const file = await disk.open(temporary, "wx", 0o600)
    try {
      await writeAll(file, Buffer.from(text), 0)
    } finally {
      await file.close()
    }
    await disk.rename(temporary, join(path, name))
  } catch (error) {
    await disk.remove(temporary).catch(() => undefined)
    throw error
  }
}
