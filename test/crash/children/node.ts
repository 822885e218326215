/**
 * `shiftboss/node` with logs in files that tell what is written to them, and what was acknowledged.
 */
import { Effect, Layer } from "effect"
import { Storage } from "../../../src/core/index.ts"
import { FileStorage as Real } from "../../../src/node/index.ts"
import { tell } from "./tell.ts"

export * from "../../../src/node/index.ts"

let attempts = 0

const telling = (log: Storage.Log<Storage.Json>): Storage.Log<Storage.Json> => {
  const write = (operation: "append" | "replace") => (entries: ReadonlyArray<Storage.Json>) =>
    Effect.suspend(() => {
      const id = ++attempts
      tell({ _tag: "Attempted", id, log: log.name, operation, entries })
      return Effect.tap(log[operation](entries), () => Effect.sync(() => tell({ _tag: "Acknowledged", id })))
    })
  return { ...log, append: write("append"), replace: write("replace") }
}

const layer: typeof Real.layer = (directory, options) =>
  Layer.effect(
    Storage.Storage,
    Effect.map(Storage.Storage, (storage) =>
      Storage.Storage.of({
        ...storage,
        open: (name) =>
          Effect.map(storage.open(name), (log) => {
            tell({ _tag: "Opened", log: name })
            return telling(log)
          })
      })
    )
  ).pipe(Layer.provide(Real.layer(directory, options)))

export const FileStorage = { ...Real, layer }
