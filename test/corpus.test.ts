/**
 * Each build reads the logs of every version that was released, and refuses what it does not understand. How to extend the
 * corpus: `docs/compatibility.md`.
 */
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Case, Dispatcher, Storage } from "shiftboss"
import {
  isReleased,
  type Kept,
  logsIn,
  make,
  present,
  read,
  shapes,
  shapesIn,
  versions,
  viewOf
} from "./compatibility/corpus.ts"
import { type Format, formats } from "./compatibility/formats.ts"
import { scenarios } from "./compatibility/scenarios.ts"
import { missingKinds, type Shape, unannounced } from "./compatibility/shapes.ts"
import { type Tampering, tamperings } from "./compatibility/tampering.ts"
import { append, folder, storageIn } from "./node/support/folders.ts"

const kept = versions().flatMap(logsIn)

const titleOf = ({ version, path }: Kept) => path.slice(path.indexOf(`/${version}/`) + 1)

/** The log in a folder, with these bytes or its own. */
const laid = Effect.fnUntraced(function* (directory: string, { path, file }: Kept, bytes?: Buffer) {
  const copy = join(directory, file)
  const content = bytes ?? (yield* Effect.promise(() => readFile(path)))
  yield* Effect.promise(() => writeFile(copy, content))
  const isUntouched = Effect.promise(async () => (await readFile(copy)).equals(content))
  return { storage: storageIn(directory), isUntouched, copy }
})

/** All that was recorded, of what there is now: a later version may say more. */
const recordedOf = (recorded: unknown, now: unknown): unknown => {
  if (Array.isArray(recorded) && Array.isArray(now)) {
    return now.map((element, index) => (index < recorded.length ? recordedOf(recorded[index], element) : element))
  }
  if (typeof recorded !== "object" || recorded === null || typeof now !== "object" || now === null) return now
  return Object.fromEntries(
    Object.entries(now).flatMap(([key, value]) =>
      key in recorded ? [[key, recordedOf(Reflect.get(recorded, key), value)]] : []
    )
  )
}

const entriesOf = (
  storage: Storage.Storage["Service"],
  { log, format }: Kept
): Stream.Stream<unknown, Storage.OpenError> => {
  const { entries }: Format = formats[format]
  return entries === undefined ? storage.read(log) : Storage.readTyped(storage, log, entries)
}

describe("a log of an earlier version, or of this one", () => {
  it("is there for every version", () => {
    assert.include(versions(), present, "run `npm run corpus`")
    for (const version of versions()) assert.isNotEmpty(logsIn(version), version)
  })

  it.effect.each(kept.map((one) => [titleOf(one), one] as const))("is read to what was recorded: %s", ([, one]) =>
    Effect.gen(function* () {
      const { storage, isUntouched } = yield* laid(yield* folder, one)
      const view = yield* viewOf(storage, one.log, one.format)
      assert.deepStrictEqual(recordedOf(one.view, view), one.view)
      assert.isTrue(yield* isUntouched)
    })
  )

  it.effect.each(kept.map((one) => [titleOf(one), one] as const))("is gone on with: %s", ([, one]) =>
    Effect.gen(function* () {
      const { storage, copy } = yield* laid(yield* folder, one)
      const before = yield* Stream.runCollect(storage.read(one.log))
      yield* Effect.scoped(Effect.flatMap(storage.open(one.log), (log) => log.append([{ gone: "on" }])))
      assert.deepStrictEqual(yield* Stream.runCollect(storage.read(one.log)), [...before, { gone: "on" }])
      const [was, is] = yield* Effect.promise(() => Promise.all([readFile(one.path), readFile(copy)]))
      assert.isTrue(is.subarray(0, was.length).equals(was), "what was there has changed")
    })
  )
})

describe("a log that is not as it was written", () => {
  const damaged = (tampering: Tampering, text: string) => {
    const lines = text.split("\n").slice(0, -1)
    return lines.flatMap((_, line) => {
      const changed = tampering.at(lines, line)
      const bytes = changed?.map((part) => Buffer.concat([Buffer.from(part), Buffer.from("\n")]))
      return bytes === undefined ? [] : [{ line, bytes: Buffer.concat(bytes) }]
    })
  }

  for (const tampering of tamperings) {
    const logs = kept.filter(({ format }) => tampering.typed !== true || "entries" in formats[format])
    it.effect(`is refused as ${tampering.error} and left as it is: ${tampering.name}`, () =>
      Effect.gen(function* () {
        const directory = yield* folder
        let tried = 0
        for (const one of logs) {
          const all = damaged(tampering, yield* Effect.promise(() => readFile(one.path, "utf8")))
          tried += all.length
          for (const { line, bytes } of all) {
            const { storage, isUntouched } = yield* laid(directory, one, bytes)
            const error = yield* Effect.flip(Stream.runDrain(entriesOf(storage, one)))
            const where = `${titleOf(one)}, line ${line + 1}`
            assert.strictEqual(error._tag, tampering.error, where)
            assert.isTrue(yield* isUntouched, where)
          }
        }
        assert.isAbove(tried, versions().length)
      })
    )
  }

  it.effect("is refused by a holder too, which writes nothing to it", () =>
    Effect.gen(function* () {
      for (const one of kept) {
        const directory = yield* folder
        for (const tampering of tamperings) {
          if (tampering.typed === true) continue
          const all = damaged(tampering, yield* Effect.promise(() => readFile(one.path, "utf8")))
          const middle = all[all.length >> 1]
          if (middle === undefined) continue
          const { storage, isUntouched } = yield* laid(directory, one, middle.bytes)
          const opened = Effect.flatMap(storage.open(one.log), (log) => log.append([null]))
          const error = yield* Effect.flip(Effect.scoped(opened))
          const cause = error._tag === "StorageError" ? error.cause : error
          assert.propertyVal(cause, "_tag", tampering.error, `${titleOf(one)}: ${tampering.name}`)
          assert.isTrue(yield* isUntouched, `${titleOf(one)}: ${tampering.name}`)
        }
      }
    })
  )
})

describe("a request to stop", () => {
  it.live("that a newer version wrote is left where it is by a run of this one, which does not begin", () =>
    Effect.gen(function* () {
      const storage = storageIn(yield* folder)
      const request = { version: 1000, value: { _tag: "StopRequested", at: 1 } }
      yield* append(storage, "dispatch.control", request)
      const layer = Dispatcher.layer.pipe(Layer.provide(Layer.succeed(Storage.Storage, storage)))
      const run = Dispatcher.run({ cases: Effect.succeed([]), train: () => Effect.succeed(Case.completed()) })
      const error = yield* Effect.flip(Effect.provide(run, layer))
      assert.strictEqual(error._tag, "LogTooNew")
      assert.deepStrictEqual(yield* Stream.runCollect(storage.read("dispatch.control")), [request])
    })
  )
})

describe("the corpus of this version", () => {
  it.effect.skipIf(isReleased(present))("is what this build writes: else run `npm run corpus`", () =>
    Effect.gen(function* () {
      const made = yield* make(scenarios)
      const there = read(present)
      assert.deepStrictEqual([...there.keys()].toSorted(), [...made.keys()].toSorted())
      for (const [name, text] of made) assert.strictEqual(there.get(name), text, name)
    })
  )

  it.effect("has an entry of every kind: else extend a scenario and run `npm run corpus`", () =>
    Effect.gen(function* () {
      const of = new Map<string, Array<Schema.Json>>()
      for (const one of logsIn(present)) {
        const { storage } = yield* laid(yield* folder, one)
        const entries = yield* Stream.runCollect(storage.read(one.log))
        const values = entries.flatMap((entry) => (Schema.is(Stored)(entry) ? [entry.value] : []))
        of.set(one.format, [...(of.get(one.format) ?? []), ...values])
      }
      for (const [name, shape] of Object.entries(shapes())) {
        assert.deepStrictEqual(missingKinds(shape, of.get(name) ?? []), [], name)
      }
    })
  )
})

const Stored = Schema.Struct({ version: Schema.Number, value: Schema.Json })

describe("what entries look like", () => {
  it.each(versions())("changed since %s only where their version has", (version) => {
    assert.deepStrictEqual(unannounced(shapesIn(version), shapes()), [])
  })

  const dispatcher = shapes()["dispatcher"]
  const added: Shape = {
    version: 1,
    definitions: {},
    kinds: [...(dispatcher?.kinds ?? []), { type: "object", properties: { _tag: { enum: ["Added"] } } }]
  }

  it("is noticed when it changed under the same version, and is fine under the next", () => {
    const before = shapes()
    assert.match(unannounced(before, { ...before, dispatcher: added }).join(), /dispatcher has changed .* version 1/)
    assert.deepStrictEqual(unannounced(before, { ...before, dispatcher: { ...added, version: 2 } }), [])
  })

  it("is noticed when no log has an entry of a kind", () => {
    const end = { _tag: "RunEnded", at: 1, end: { _tag: "Stopped" } }
    const missing = missingKinds(added, [end])
    assert.includeMembers([...missing], [":Added", ":RunStarted", ":RunEnded.end:Finished"])
    assert.notInclude(missing, ":RunEnded.end:Stopped")
    assert.notInclude(missing, ":RunEnded")
  })
})
