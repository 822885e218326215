/**
 * Writes the corpus of this version anew.
 *
 *     npm run corpus
 *
 * Once the version is released its corpus stays as it is, and this refuses.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { folder, isReleased, make, present, write } from "./corpus.ts"
import { scenarios } from "./scenarios.ts"

if (isReleased(present)) {
  console.error(`${present} is released: its corpus never changes. Raise the version in package.json first.`)
  process.exitCode = 1
} else {
  const files = await Effect.runPromise(make(scenarios))
  rmSync(join(folder, present), { recursive: true, force: true })
  write(present, files)
  console.log(`wrote ${files.size} files to test/corpus/${present}`)
}
