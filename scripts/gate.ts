/**
 * The gate: everything a change has to pass, one line a step.
 *
 *     npm run gate
 *     npm run gate -- --only lint,format
 *     npm run gate -- --skip smoke
 */
import { parseArgs } from "node:util"
import { bundle, build, packed, smoke } from "./gate/package.ts"
import { effect, format, lint, types, unused } from "./gate/static.ts"
import { perform, type Step } from "./gate/step.ts"
import { tests } from "./gate/tests.ts"

// The package is built first: examples and scripts see it through its own exports.
const steps: ReadonlyArray<Step> = [
  { name: "format", check: format },
  { name: "lint", check: lint },
  { name: "build", check: build },
  { name: "types", check: types },
  { name: "effect", check: effect },
  { name: "unused", check: unused },
  { name: "tests", check: tests },
  { name: "package", check: packed },
  { name: "smoke", check: smoke },
  { name: "bundle", check: bundle }
]

const names = (list: string | undefined): ReadonlySet<string> | undefined => {
  const chosen = list === undefined ? undefined : new Set(list.split(","))
  const unknown = [...(chosen ?? [])].filter((name) => !steps.some((step) => step.name === name))
  if (unknown.length > 0) {
    console.error(`no step is called ${unknown.join(", ")}; there are ${steps.map(({ name }) => name).join(", ")}`)
    process.exit(2)
  }
  return chosen
}

const { values } = parseArgs({ options: { only: { type: "string" }, skip: { type: "string" } } })
const only = names(values.only)
const skip = names(values.skip)
const chosen = steps.filter(({ name }) => (only?.has(name) ?? true) && !skip?.has(name))

const failed: Array<string> = []
for (const step of chosen) {
  if (!(await perform(step))) {
    failed.push(step.name)
  }
}

if (chosen.length === 0) {
  failed.push("every step was left out")
}
if (failed.length > 0) {
  console.error(`\nthe gate is shut: ${failed.join(", ")}`)
  process.exitCode = 1
} else {
  console.log(`\nthe gate is open: ${chosen.length} of ${steps.length} steps passed`)
}
