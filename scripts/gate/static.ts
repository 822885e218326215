/**
 * The steps that read the sources: format, lint, types, Effect diagnostics, unused code.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { attempt, CommandFailed, root, run } from "./command.ts"
import { expectAll, sourcesIn } from "./sources.ts"
import { type Checked, countIn } from "./step.ts"

export const format = async (): Promise<Checked> => {
  const { output } = await run("oxfmt", ["--check", "."])
  return { count: countIn(output, /on (\d+) files/), of: "files" }
}

export const lint = async (): Promise<Checked> => {
  const { output } = await run("oxlint", ["--deny-warnings", "--report-unused-disable-directives"])
  return { count: countIn(output, /on (\d+) files/), of: "files" }
}

const projects = (): ReadonlyArray<string> => {
  const { references }: { references: ReadonlyArray<{ path: string }> } = JSON.parse(
    readFileSync(join(root, "tsconfig.json"), "utf8")
  )
  return references.map(({ path }) => path)
}

/** The packages these use are installed by `npm run bench -- peers`, which checks them with a project of their own. */
const peers = "test/bench/peers/"

export const types = async (): Promise<Checked> => {
  await run("tsc", ["-b", "--pretty", "false"])
  // An incremental build says nothing of what it looked at, so ask each project what belongs to it.
  const listed = await Promise.all(projects().map((project) => run("tsc", ["-p", project, "--listFilesOnly"])))
  const sources = sourcesIn("src", "test", "examples", "scripts").filter((file) => !file.startsWith(peers))
  expectAll(sources, new Set(listed.flatMap(({ stdout }) => stdout.split("\n"))), "tsc")
  return { count: sources.length, of: "files" }
}

interface Diagnostics {
  readonly diagnostics: ReadonlyArray<{
    readonly file: string
    readonly line: number
    readonly column: number
    readonly severity: string
    readonly name: string
    readonly message: string
  }>
  /** Absent when it looked at none. */
  readonly files?: ReadonlyArray<{ readonly file: string }>
}

const tsgo = { version: "0.45.0", folder: join(root, ".gate/tsgo") }

/** In a folder of its own: in the lock file of the project it would make `npm ci` fail on other platforms. */
const installTsgo = async (): Promise<string> => {
  const manifest = join(tsgo.folder, "node_modules/@effect/tsgo/package.json")
  const installed = existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).version : undefined
  if (installed !== tsgo.version) {
    mkdirSync(tsgo.folder, { recursive: true })
    await run("npm", [
      "install",
      "--no-package-lock",
      "--prefer-offline",
      "--no-audit",
      "--no-fund",
      "--prefix",
      tsgo.folder,
      `@effect/tsgo@${tsgo.version}`
    ])
  }
  return join(tsgo.folder, "node_modules/.bin/effect-tsgo")
}

export const effect = async (): Promise<Checked> => {
  const command = await installTsgo()
  const args = ["diagnostics", "--strict", "--format", "json", "--list-files", "--project", "tsconfig.json"]
  const ended = await attempt(command, args)
  if (!ended.stdout.startsWith("{")) {
    throw new CommandFailed("effect-tsgo diagnostics", ended)
  }
  const { diagnostics, files = [] }: Diagnostics = JSON.parse(ended.stdout)
  const faults = diagnostics.filter(({ severity }) => severity !== "message")
  if (!ended.ok || faults.length > 0) {
    const lines = faults.map((it) => `${relative(root, it.file)}:${it.line}:${it.column} ${it.name}: ${it.message}`)
    throw new Error(`${faults.length} diagnostics\n${lines.join("\n")}`)
  }
  expectAll(sourcesIn("src"), new Set(files.map(({ file }) => file)), "effect-tsgo")
  return { count: files.length, of: "files" }
}

export const unused = async (): Promise<Checked> => {
  const reporter = join(import.meta.dirname, "knipCount.ts")
  const { output } = await run("knip", ["--no-progress", "--reporter", "symbols", "--reporter", reporter])
  return { count: countIn(output, /looked at (\d+) files/), of: "files" }
}
