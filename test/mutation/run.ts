/**
 * Changes the core in one small way after another, and sees whether a test finds out.
 *
 *     npm run mutate                               all areas, one after the other: hours
 *     npm run mutate -- recheck retry              only these
 *     npm run mutate -- recheck --sample 5         every fifth piece of them
 *     npm run mutate -- recheck --files src/core/Verdict.ts
 */
import { spawnSync } from "node:child_process"
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { areas } from "./areas.ts"
import judgements from "./judgements.json" with { type: "json" }

type Judged = (typeof judgements)[number]["mutants"][number]

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
  reporters: ["progress-append-only", "clear-text", "json"],
  clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false, reportTests: false },
  jsonReporter: { fileName: `${here}/reports/${name}.json` },
  tempDirName: `${here}/.stryker`,
  concurrency: Number(process.env["MUTATION_RUNNERS"] ?? 1),
  dryRunTimeoutMinutes: 30,
  timeoutMS: 2_500,
  timeoutFactor: 1
})

interface Mutant {
  readonly status: string
  readonly replacement?: string
  readonly location: {
    readonly start: { readonly line: number; readonly column: number }
    readonly end: { readonly line: number; readonly column: number }
  }
}

interface Report {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: ReadonlyArray<Mutant> }>>
}

/** What a mutant is, wherever in its file it stands: lines move. */
const named = (file: string, source: string, { location: { start, end }, replacement = "" }: Mutant): Judged => {
  const lines = source.split("\n").slice(start.line - 1, end.line)
  lines[lines.length - 1] = lines.at(-1)!.slice(0, end.column - 1)
  lines[0] = lines[0]!.slice(start.column - 1)
  const onOneLine = (text: string) => text.replaceAll(/\s+/g, " ").slice(0, 120)
  return { file, from: onOneLine(lines.join(" ")), to: onOneLine(replacement) }
}

const keyOf = ({ file, from, to }: Judged): string => JSON.stringify([file, from, to])

/** Mutants that a test found, of all that were tried, and those that nobody has judged. */
const judge = (name: string) => {
  const report = JSON.parse(readFileSync(`${root}/${here}/reports/${name}.json`, "utf8")) as Report
  const known = new Set(judgements.flatMap(({ mutants }) => mutants.map(keyOf)))
  const all = Object.entries(report.files).flatMap(([file, { mutants, source }]) =>
    mutants.map((mutant) => ({ status: mutant.status, ...named(file, source, mutant) }))
  )
  const found = all.filter(({ status }) => status === "Killed" || status === "Timeout").length
  const survivors = all.filter(({ status }) => status === "Survived" || status === "NoCoverage")
  const tried = found + survivors.length
  const unjudged = survivors.filter((mutant) => !known.has(keyOf(mutant)))
  return { found, tried, percent: tried === 0 ? 0 : (100 * found) / tried, unjudged }
}

const names = positionals.length > 0 ? positionals : Object.keys(areas)
for (const name of names) if (areas[name] === undefined) throw new Error(`no area "${name}": ${Object.keys(areas)}`)
if (files !== undefined && names.length !== 1) throw new Error("give --files with the one area that they belong to")
for (const file of files ?? []) {
  if (!existsSync(`${root}/${file}`)) throw new Error(`--files ${file}: there is no such file`)
}
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
  return { area: name, ...judge(name) }
})
for (const { unjudged } of rows) for (const { file, from, to } of unjudged) console.log(`${file}: ${from}  =>  ${to}`)
console.table(
  rows.map(({ percent, unjudged, ...row }) => ({
    ...row,
    "found, %": percent.toFixed(1),
    "survived, not judged": unjudged.length
  }))
)
if (rows.some(({ percent }) => percent < least)) {
  console.error(`less than ${least} % of the mutants of an area were found`)
  process.exit(1)
}
