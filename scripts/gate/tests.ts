/**
 * The test step.
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { root, run } from "./command.ts"
import type { Checked } from "./step.ts"

/** What vitest wrote about its last run. */
const resultsFile = join(root, ".gate/tests.json")

interface Results {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly numPendingTests: number
}

/** The counts of the last run. */
export const readResults = (): Results => JSON.parse(readFileSync(resultsFile, "utf8"))

export const tests = async (): Promise<Checked> => {
  mkdirSync(join(root, ".gate"), { recursive: true })
  // Results of an earlier run must not speak for this one.
  rmSync(resultsFile, { force: true })
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${resultsFile}`]
  // `it.only` left behind would silence the rest.
  const { stdout } = await run("vitest", ["run", "--allowOnly=false", ...reporters])
  const closing = stdout.slice(stdout.lastIndexOf(" Test Files ")).split("\n")
  return {
    count: readResults().numPassedTests,
    of: "tests",
    said: closing.map((line) => line.trim()).filter((line) => line.length > 0 && !line.startsWith("JSON"))
  }
}
