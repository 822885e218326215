/**
 * The guards of the layers, tried on sources that break them: a rule that no longer bites would go unnoticed.
 */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

const root = join(import.meta.dirname, "..")

type Layer = "core" | "testing" | "node"
type Guard = "oxlint" | "tsc"

interface Breach {
  readonly name: string
  readonly layers: ReadonlyArray<Layer>
  readonly guards: ReadonlyArray<Guard>
  readonly source: string
}

const pure = ["core", "testing"] as const
const both = ["oxlint", "tsc"] as const

const breaches: ReadonlyArray<Breach> = [
  { name: "Date.now", layers: pure, guards: ["oxlint"], source: "export const now = Date.now()" },
  { name: "new Date", layers: pure, guards: ["oxlint"], source: "export const now = new Date()" },
  { name: "Math.random", layers: pure, guards: ["oxlint"], source: "export const chance = Math.random()" },
  { name: "globalThis", layers: pure, guards: ["oxlint"], source: "export const now = globalThis.Date" },
  { name: "console", layers: pure, guards: both, source: 'export const said = console.log("x")' },
  { name: "setTimeout", layers: pure, guards: both, source: "export const timer = setTimeout(() => 1, 1)" },
  { name: "setInterval", layers: pure, guards: both, source: "export const timer = setInterval(() => 1, 1)" },
  { name: "queueMicrotask", layers: pure, guards: both, source: "export const queued = queueMicrotask(() => 1)" },
  { name: "process", layers: pure, guards: both, source: "export const pid = process.pid" },
  { name: "fetch", layers: pure, guards: both, source: 'export const page = fetch("http://localhost")' },
  { name: "crypto", layers: pure, guards: both, source: "export const id = crypto.randomUUID()" },
  { name: "node:fs", layers: pure, guards: both, source: 'export { readFileSync } from "node:fs"' },
  { name: "node:fs, typed only", layers: pure, guards: both, source: 'export type { Stats } from "node:fs"' },
  { name: "node:fs, imported late", layers: pure, guards: ["tsc"], source: 'export const fs = import("node:fs")' },
  { name: "platform packages", layers: pure, guards: ["oxlint"], source: 'export * from "@effect/platform-node"' },
  { name: "an unstable module", layers: pure, guards: ["oxlint"], source: 'export { FileSystem } from "effect"' },
  { name: "an unstable path", layers: pure, guards: ["oxlint"], source: 'export * from "effect/FileSystem"' },
  { name: "an unstable folder", layers: pure, guards: ["oxlint"], source: 'export * from "effect/process"' },
  { name: "all of effect", layers: pure, guards: ["oxlint"], source: 'export * from "effect"' },
  {
    name: "TestConsole",
    layers: ["testing"],
    guards: ["oxlint"],
    source: 'export * from "effect/testing/TestConsole"'
  },
  {
    name: "the index of testing",
    layers: pure,
    guards: ["oxlint"],
    source: 'export { TestClock } from "effect/testing"'
  },
  {
    name: "TestClock",
    layers: ["core"],
    guards: ["oxlint"],
    source: 'export { make } from "effect/testing/TestClock"'
  },
  { name: "the node layer", layers: pure, guards: both, source: 'export { there } from "../node/index.ts"' },
  {
    name: "the testing layer",
    layers: ["core", "node"],
    guards: both,
    source: 'export { there } from "../testing/index.ts"'
  },
  {
    name: "files of the core",
    layers: ["node", "testing"],
    guards: ["oxlint"],
    source: 'export { there } from "../core/index.ts"'
  },
  { name: "the core by name", layers: ["core"], guards: ["oxlint"], source: 'export { there } from "shiftboss"' },
  {
    name: "the testing kit by name",
    layers: ["core", "node", "testing"],
    guards: ["oxlint"],
    source: 'export * from "shiftboss/testing"'
  },
  {
    name: "Effect.runSync",
    layers: pure,
    guards: ["oxlint"],
    source: 'import { Effect } from "effect"\nexport const run = Effect.runSync(Effect.void)'
  },
  { name: "any", layers: ["core", "testing", "node"], guards: ["oxlint"], source: "export const it = (x: any) => x" },
  {
    name: "ts-ignore",
    layers: ["core", "testing", "node"],
    guards: ["oxlint"],
    source: "// @ts-ignore\nexport const it: string = 1"
  }
]

const allowed: Record<Layer, string> = {
  core: 'import { Clock, Effect } from "effect"\nexport const now = Effect.map(Clock.currentTimeMillis, (it) => it)',
  testing: 'export { make } from "effect/testing/TestClock"\nexport { there } from "shiftboss"',
  node: 'export { readFileSync } from "node:fs"\nexport { there } from "shiftboss"\nexport * from "@effect/platform-node"'
}

// -----------------------------------------------------------------------------
// projects of their own, guarded by the rules of this one
// -----------------------------------------------------------------------------

const layers: ReadonlyArray<Layer> = ["core", "node", "testing"]

const configs = layers.map((layer) => `src/${layer}/tsconfig.json`)

const fileOf = (breach: Breach, layer: Layer) => `src/${layer}/breach-${breaches.indexOf(breach)}.ts`

/** Writes a package with these sources, and answers what a command in it printed. */
const askIn = (
  sources: ReadonlyArray<{ readonly file: string; readonly source: string }>,
  commands: ReadonlyArray<ReadonlyArray<string>>
): string => {
  const project = mkdtempSync(join(tmpdir(), "shiftboss-layers-"))
  try {
    symlinkSync(join(root, "node_modules"), join(project, "node_modules"))
    for (const file of ["package.json", "tsconfig.base.json", "oxlint.config.ts", ...configs]) {
      cpSync(join(root, file), join(project, file))
    }
    for (const { file, source } of sources) {
      mkdirSync(dirname(join(project, file)), { recursive: true })
      writeFileSync(join(project, file), `${source}\n`)
    }
    return commands
      .map(([tool = "", ...args]) =>
        spawnSync(process.execPath, [join(root, "node_modules", tool), ...args], { cwd: project, encoding: "utf8" })
      )
      .map(({ stderr, stdout }) => stdout + stderr)
      .join("\n")
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

const neighbours = layers.map((layer) => ({ file: `src/${layer}/index.ts`, source: "export const there = 1" }))

const oxlint = ["oxlint/bin/oxlint", "-f", "unix", "src"]
const tsc = "typescript/bin/tsc"

const breachesFor = (guard: Guard) =>
  breaches
    .filter(({ guards }) => guards.includes(guard))
    .flatMap((breach) => breach.layers.map((layer) => ({ file: fileOf(breach, layer), source: breach.source })))

describe("the layers", () => {
  const complaints: Record<Guard, string> = { oxlint: "", tsc: "" }

  beforeAll(() => {
    complaints.oxlint = askIn([...neighbours, ...breachesFor("oxlint")], [oxlint])
    // One project at a time: a build stops at the first that fails.
    complaints.tsc = askIn(
      [...neighbours, ...breachesFor("tsc")],
      configs.map((config) => [tsc, "-p", config, "--noEmit", "--pretty", "false"])
    )
  })

  it("may use what they are allowed", () => {
    const sources = layers.map((layer) => ({ file: `src/${layer}/allowed.ts`, source: allowed[layer] }))
    const said = askIn([...neighbours, ...sources], [oxlint, [tsc, "-b", ...layers.map((layer) => `src/${layer}`)]])
    assert.strictEqual(said.trim(), "")
  })

  for (const breach of breaches) {
    for (const layer of breach.layers) {
      for (const guard of breach.guards) {
        it(`keep ${breach.name} out of ${layer}: ${guard}`, () => {
          const file = fileOf(breach, layer)
          const lines = complaints[guard].split("\n")
          assert.isTrue(
            lines.some((line) => line.startsWith(`${file}:`) || line.startsWith(`${file}(`)),
            `${guard} let it pass`
          )
        })
      }
    }
  }
})
