/**
 * Changes the core in one small way after another, and sees whether a test finds out.
 *
 *     npm run mutate                               all areas, one after the other: hours
 *     npm run mutate -- recheck retry              only these
 *     npm run mutate -- recheck --sample 5         every fifth piece of them
 *     npm run mutate -- recheck --files src/core/Verdict.ts
 */
import { spawnSync } from "node:child_process"
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { areas } from "./areas.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const here = "test/mutation"
const least = 85

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: "string", default: "1" },
    files: { type: "string" }
  }
})
const files = values.files?.split(",")
const sample = Number(values.sample)
if (!(Number.isSafeInteger(sample) && sample >= 1)) throw new Error(`--sample ${values.sample} is no whole number`)

/** Lines in a piece of a file: about as long as what a person would look at as one. */
const piece = 8

/** Every so manieth piece of the files, as ranges of lines; the first one is another in each file. */
const sampled = (pattern: string): ReadonlyArray<string> =>
  sample === 1
    ? [pattern]
    : globSync(pattern, { cwd: root }).flatMap((file, index) => {
        const lines = readFileSync(`${root}/${file}`, "utf8").split("\n").length
        const pieces = Array.from({ length: Math.ceil(lines / piece) }, (_, at) => at)
        return pieces
          .filter((at) => (at + index) % sample === 0)
          .map((at) => `${file}:${at * piece + 1}-${Math.min(lines, (at + 1) * piece)}`)
      })

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
  mutate: files ?? (areas[name]?.mutate ?? []).flatMap(sampled),
  // Texts for people are not what is proved here.
  mutator: { excludedMutations: ["StringLiteral"] },
  ignoreStatic: true,
  reporters: ["clear-text", "json"],
  clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: `${here}/reports/${name}.json` },
  tempDirName: `${here}/.stryker`,
  concurrency: Number(process.env["MUTATION_RUNNERS"] ?? 1),
  dryRunTimeoutMinutes: 30,
  timeoutMS: 5_000
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

const names = positionals.length > 0 ? positionals : Object.keys(areas)
for (const name of names) if (areas[name] === undefined) throw new Error(`no area "${name}": ${Object.keys(areas)}`)
const installed = run("npm", ["ci", "--no-audit", "--no-fund", "--prefix", here])
if (installed !== 0) process.exit(installed)

const rows = names.map((name) => {
  const options = `${here}/.stryker-${name}.json`
  writeFileSync(`${root}/${options}`, JSON.stringify(optionsFor(name)))
  const stryker = `${here}/node_modules/@stryker-mutator/core/bin/stryker.js`
  // Random tests look at fewer programs than usual: each mutant is a run of its own.
  const code = run(process.execPath, [stryker, "run", options], {
    MUTATION_AREA: name,
    MODEL_RUNS: "15",
    PROPERTY_RUNS: "20",
    ...process.env
  })
  if (code !== 0) throw new Error(`the mutation of ${name} did not come to an end`)
  return { area: name, ...scoreOf(name) }
})
console.table(rows.map(({ percent, ...row }) => ({ ...row, "found, %": percent.toFixed(1) })))
if (rows.some(({ percent }) => percent < least)) {
  console.error(`less than ${least} % of the mutants of an area were found`)
  process.exit(1)
}
