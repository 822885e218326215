/**
 * Which files are the project's own TypeScript.
 */
import { globSync } from "node:fs"
import { join } from "node:path"
import { root } from "./command.ts"

// Fixtures are input, and consumer programs belong to a package of their own.
const foreign = /(^|\/)(fixtures|corpus|node_modules)\/|^scripts\/consumer\//

/** The TypeScript files below these folders, relative to the package. */
export const sourcesIn = (...folders: ReadonlyArray<string>): ReadonlyArray<string> =>
  folders
    .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root }))
    .filter((file) => !foreign.test(file))
    .toSorted()

/** Fails when one of the sources is missing in what a tool looked at, given as absolute paths. */
export const expectAll = (sources: ReadonlyArray<string>, looked: ReadonlySet<string>, tool: string): void => {
  const missed = sources.filter((file) => !looked.has(join(root, file)))
  if (missed.length > 0) {
    throw new Error(`${tool} did not look at ${missed.join(", ")}: add the folder to a tsconfig.json`)
  }
}
