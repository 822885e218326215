/**
 * Private files of an attempt.
 */
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { Effect } from "effect"

/** Makes the folder of a file, for this user alone. */
export const makeFolder = (path: string): void => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // It may have been there before, with a wider mode.
  chmodSync(dirname(path), 0o700)
}

/** A file for this user alone that is gone when the scope closes. Fails with a sentence for a person. */
export const keepFile = (path: string, content: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        makeFolder(path)
        writeFileSync(path, content, { flag: "wx", mode: 0o600 })
        return path
      },
      catch: (error) => `The prompt could not be written to ${path}: ${String(error)}`
    }),
    () => Effect.sync(() => rmSync(path, { force: true }))
  )
