/**
 * Changes the core in one small way after another, and sees whether a test finds out.
 *
 *     npm run mutate                     all areas, one after the other: hours
 *     npm run mutate -- recheck retry    only these
 */
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { areas } from "./areas.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const here = "test/mutation"
const least = 85

const run = (command: string, args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  spawnSync(command, args, { cwd: root, stdio: "inherit", env: { ...process.env, ...env } }).status ?? 1

/** Stryker reads its options from a file alone, and vitest its area from the environment. */
const optionsFor = (name: string) => ({
  plugins: ["@stryker-mutator/vitest-runner"],
  testRunner: "vitest",
  vitest: { configFile: `${here}/vitest.config.ts`, related: false },
  // Stryker's own parser of tsconfig.json does not know this TypeScript; without one it asks for nothing.
  tsconfigFile: "none.json",
  coverageAnalysis: "perTest",
  mutate: areas[name]?.mutate,
  // Texts for people are not what is proved here.
  mutator: { excludedMutations: ["StringLiteral"] },
  ignoreStatic: true,
  reporters: ["clear-text", "json"],
  clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: `${here}/reports/${name}.json` },
  tempDirName: `${here}/.stryker`,
  concurrency: 1,
  dryRunTimeoutMinutes: 30,
  timeoutMS: 20_000
})

interface Report {
  readonly files: Readonly<Record<string, { readonly mutants: ReadonlyArray<{ readonly status: string }> }>>
}

/** Mutants that a test found, of all that were tried. */
const scoreOf = (name: string) => {
  const report = JSON.parse(readFileSync(`${root}/${here}/reports/${name}.json`, "utf8")) as Report
  const all = Object.values(report.files).flatMap(({ mutants }) => mutants.map(({ status }) => status))
  const found = all.filter((status) => status === "Killed" || status === "Timeout").length
  const tried = found + all.filter((status) => status === "Survived" || status === "NoCoverage").length
  return { found, tried, percent: tried === 0 ? 0 : (100 * found) / tried }
}

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(areas)
for (const name of names) if (areas[name] === undefined) throw new Error(`no area "${name}": ${Object.keys(areas)}`)
const installed = run("npm", ["ci", "--no-audit", "--no-fund", "--prefix", here])
if (installed !== 0) process.exit(installed)

const rows = names.map((name) => {
  const options = `${here}/.stryker-${name}.json`
  writeFileSync(`${root}/${options}`, JSON.stringify(optionsFor(name)))
  const stryker = `${here}/node_modules/@stryker-mutator/core/bin/stryker.js`
  const code = run(process.execPath, [stryker, "run", options], { MUTATION_AREA: name })
  if (code !== 0) throw new Error(`the mutation of ${name} did not come to an end`)
  return { area: name, ...scoreOf(name) }
})
console.table(rows.map(({ percent, ...row }) => ({ ...row, "found, %": percent.toFixed(1) })))
if (rows.some(({ percent }) => percent < least)) {
  console.error(`less than ${least} % of the mutants of an area were found`)
  process.exit(1)
}
