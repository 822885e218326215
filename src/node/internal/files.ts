/**
 * Private files of attempts.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"

/** Where the files are when the host names no folder: everybody knows the name, and everybody may write beside it. */
export const defaultFolder = (): string => join(tmpdir(), `shiftboss-${process.getuid?.() ?? userInfo().username}`)

/** How long a file is kept that nobody has removed: all of an output, and what a killed host has left. */
const keptMillis = 7 * 24 * 3600 * 1000
const ours = /^[0-9a-f]{8}-[0-9a-f-]{27}\.(?:out|prompt)$/

/** Makes the folder of a file, for this user alone, and removes what has been in it for too long. Throws. */
export const makeFolder = (path: string, now: number): void => {
  const folder = dirname(path)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (folder === defaultFolder()) secure(folder)
  for (const name of readdirSync(folder)) if (ours.test(name)) removeOld(join(folder, name), now)
}

/** Somebody else may have made it first, or a link in its place, and would read and change what is in it. */
const secure = (folder: string): void => {
  const found = lstatSync(folder)
  if (!found.isDirectory() || (process.getuid !== undefined && found.uid !== process.getuid())) {
    throw new Error(`${folder} is not this user's own directory: remove it, or name another one (filesDirectory)`)
  }
  if ((found.mode & 0o077) !== 0) chmodSync(folder, 0o700)
}

const removeOld = (path: string, now: number): void => {
  try {
    if (now - statSync(path).mtimeMs > keptMillis) rmSync(path)
  } catch {
    // Another host has removed it, or it is not ours to remove: it is in nobody's way.
  }
}

/** A file for this user alone that is gone when the scope closes. Fails with a sentence for a person. */
export const keepFile = (path: string, content: string, now: number) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        makeFolder(path, now)
        try {
          writeFileSync(path, content, { flag: "wx", mode: 0o600 })
        } catch (error) {
          // On a full disk the half of it that was written would stay, and keep the disk full.
          rmSync(path, { force: true })
          throw error
        }
        return path
      },
      catch: (error) => `The prompt could not be written to ${path}: ${String(error)}`
    }),
    () => Effect.sync(() => rmSync(path, { force: true }))
  )
