/**
 * The corpus: for each version of the package, the logs that its services left behind, as files, and what was read in them.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Random, Schema, Stream } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { Storage } from "shiftboss"
import { toFileName } from "../../src/node/internal/storage/names.ts"
import { type FormatName, formats, isFormatName } from "./formats.ts"
import { beginning, type Scenario } from "./scenario.ts"
import type { Shapes } from "./shapes.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
export const folder = join(root, "test/corpus")

/** The version of this build. */
export const present: string = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version

/** Whether the changelog has a section of the version: then its corpus never changes again. */
export const isReleased = (version: string): boolean =>
  readFileSync(join(root, "CHANGELOG.md"), "utf8").includes(`\n## ${version}`)

export const versions = (): ReadonlyArray<string> => readdirSync(folder)

// -----------------------------------------------------------------------------
// formats
// -----------------------------------------------------------------------------

const toJson = (value: unknown) => JSON.parse(JSON.stringify(value))

/** The shapes of this build. */
export const shapes = (): Shapes =>
  Object.fromEntries(
    Object.entries(formats).flatMap(([name, format]) => {
      if (!("entries" in format)) return []
      const { entry, version } = format.entries
      const { definitions, schema } = Schema.toJsonSchemaDocument(entry)
      return [[name, { version, kinds: toJson(schema["anyOf"] ?? [schema]), definitions: toJson(definitions) }]]
    })
  )

export const shapesIn = (version: string): Shapes =>
  JSON.parse(readFileSync(join(folder, version, "formats.json"), "utf8"))

/** A line for each kind of entry, so that a difference shows which one has changed. */
const textOf = (all: Shapes): string => {
  const texts = Object.entries(all).map(([name, { version, kinds, definitions }]) => {
    const lines = kinds.map((kind) => `    ${JSON.stringify(kind)}`).join(",\n")
    const rest = JSON.stringify(definitions)
    return `  ${JSON.stringify(name)}: {"version": ${version}, "kinds": [\n${lines}\n  ], "definitions": ${rest}}`
  })
  return `{\n${texts.join(",\n")}\n}\n`
}

// -----------------------------------------------------------------------------
// logs
// -----------------------------------------------------------------------------

/** One log of the corpus. */
export interface Kept {
  readonly version: string
  /** Of the log's file, in its scenario's folder. */
  readonly file: string
  readonly path: string
  readonly log: string
  readonly format: FormatName
  readonly view: Schema.Json
}

const suffix = ".view.json"

export const logsIn = (version: string): ReadonlyArray<Kept> =>
  readdirSync(join(folder, version), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(suffix))
    .toSorted()
    .map((path) => {
      const { log, format, view } = JSON.parse(readFileSync(join(folder, version, path), "utf8"))
      if (!isFormatName(format)) throw new Error(`${path} is of the format ${format}, which nobody knows`)
      const data = join(folder, version, path.slice(0, -suffix.length))
      return { version, file: basename(data), path: data, log, format, view }
    })

/** What a storage says of a log of the format, as plain JSON. */
export const viewOf = (storage: Storage.Storage["Service"], log: string, format: FormatName) =>
  Effect.map(formats[format].view(storage, log), toJson)

// -----------------------------------------------------------------------------
// writing
// -----------------------------------------------------------------------------

/** What a scenario leaves, as files and their texts. */
const playOf = (scenario: Scenario): Effect.Effect<ReadonlyMap<string, string>, unknown> =>
  Effect.gen(function* () {
    // Failures are journaled with their stacks, and those say where a machine keeps its files.
    const limit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
    yield* Effect.addFinalizer(() => Effect.sync(() => void (Error.stackTraceLimit = limit)))
    const memory = Storage.makeMemory()
    const storage = Storage.fromEncoded(memory, { lease: "1000 days" })
    yield* TestClock.setTime(beginning)
    yield* Effect.provideService(Effect.scoped(scenario.play), Storage.Storage, storage)
    const files = new Map<string, string>()
    for (const [log, format] of Object.entries(scenario.logs)) {
      const lines = yield* Stream.runCollect(memory.lines(log))
      const file = join(scenario.name, `${toFileName(log)}.ndjson`)
      files.set(file, lines.map((line) => `${line}\n`).join(""))
      const view = yield* viewOf(storage, log, format)
      files.set(`${file}${suffix}`, `${JSON.stringify({ log, format, view }, null, 2)}\n`)
    }
    return files
  }).pipe(Effect.scoped, Random.withSeed("corpus"), Effect.provide(TestClock.layer()))

/** All that belongs to the corpus of this build: what the scenarios leave, and the shapes of its entries. */
export const make = (scenarios: ReadonlyArray<Scenario>): Effect.Effect<ReadonlyMap<string, string>, unknown> =>
  Effect.map(Effect.forEach(scenarios, playOf), (played) => {
    const files = new Map(played.flatMap((of) => [...of]))
    return files.set("formats.json", textOf(shapes()))
  })

export const write = (version: string, files: ReadonlyMap<string, string>): void => {
  for (const [name, text] of files) {
    const path = join(folder, version, name)
    mkdirSync(join(path, ".."), { recursive: true })
    writeFileSync(path, text)
  }
}

/** The files of a version by their names, as `make` gives them. */
export const read = (version: string): ReadonlyMap<string, string> => {
  const within = join(folder, version)
  if (!existsSync(within)) return new Map()
  const names = readdirSync(within, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.(ndjson|json)$/.test(name)
  )
  return new Map(names.map((name) => [name, readFileSync(join(within, name), "utf8")]))
}
