/**
 * Runs benchmarks, each in a process of its own, and prints the tables that they make.
 *
 *     npm run bench                          all of them but those that need other people's packages
 *     npm run bench -- dispatch storage      these
 *     npm run bench -- peers                 beside other queues, which are installed into test/bench/peers first
 *     npm run bench -- all --record          all of them, and the tables of docs/performance.md become those of this run
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { machine } from "./measure.ts"

const own = ["storage", "dispatch", "wake", "whole-run", "reading", "turns", "schedule", "recheck", "recheck-loop"]
const known = [...own, "peers"]
const performancePage = new URL("../../docs/performance.md", import.meta.url)
const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

const chosen = (names: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (names.length === 0) return own
  if (names.includes("all")) return known
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length === 0) return names
  console.error(`no benchmark is called ${unknown.join(", ")}; there are ${known.join(", ")} and all`)
  process.exit(2)
}

/** Their types are checked here, because the gate does not install them. */
const installPeers = (): void => {
  execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: pathOf("peers"), stdio: ["ignore", 2, 2] })
  execFileSync("npx", ["tsc", "-p", "test/bench/peers"], { cwd: pathOf("../.."), stdio: ["ignore", 2, 2] })
}

let running: ChildProcess | undefined

// A Ctrl-C reaches the benchmark by itself; it then stops what it has started.
process.once("SIGTERM", () => {
  running?.kill("SIGTERM")
  process.exit(1)
})

/** What the benchmark prints, shown as it comes. */
const printed = async (name: string): Promise<string> => {
  if (name === "peers") installPeers()
  const child = spawn(process.execPath, [pathOf(`${name}.bench.ts`)], { stdio: ["inherit", "pipe", "inherit"] })
  running = child
  let text = ""
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
    process.stdout.write(chunk)
  })
  const [code] = await once(child, "close")
  if (code !== 0) {
    console.error(`the benchmark ${name} ended with ${String(code)}`)
    process.exitCode = 1
  }
  return text
}

/** Puts the text between the marks of that name. */
const record = (name: string, text: string): void => {
  const page = readFileSync(performancePage, "utf8")
  const [begin, end] = [`<!-- bench ${name} -->`, `<!-- end ${name} -->`]
  const [before, after] = [page.indexOf(begin), page.indexOf(end)]
  if (before < 0 || after < before) throw new Error(`docs/performance.md has no "${begin}" … "${end}"`)
  writeFileSync(performancePage, `${page.slice(0, before)}${begin}\n${text.trim()}\n${page.slice(after)}`)
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { record: { type: "boolean" } } })
const on = `On ${machine()}.`
console.log(on)
for (const name of chosen(positionals)) {
  const text = await printed(name)
  if (values.record === true) record(name, `${on}\n\n${text.trim()}`)
}
