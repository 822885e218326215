// Reads the pages of a folder.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** All files of the folder, by name. */
export const pagesIn = (path: string): { readonly [name: string]: string } =>
  Object.fromEntries(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [file.slice(path.length + 1), readFileSync(file, "utf8")])
      .toSorted(([one = ""], [other = ""]) => (one < other ? -1 : 1))
  )
