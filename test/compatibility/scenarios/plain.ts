/**
 * Logs as they are below all services: groups of entries, holders one after the other, compaction, odd names.
 */
import { Effect, Stream } from "effect"
import { Storage } from "shiftboss"
import type { Scenario } from "../scenario.ts"

const name = `Ünïcode/with "quotes", a \u{1F680} and \ud800`

/** What one holder does with the log. */
const hold = (
  log: string,
  ...changes: ReadonlyArray<(log: Storage.Log<Storage.Json>) => Effect.Effect<void, unknown>>
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const storage = yield* Storage.Storage
      const opened = yield* storage.open(log)
      yield* Stream.runDrain(opened.replay)
      for (const change of changes) yield* change(opened)
    })
  )

const append =
  (...entries: ReadonlyArray<Storage.Json>) =>
  (log: Storage.Log<Storage.Json>) =>
    log.append(entries)

const every: ReadonlyArray<Storage.Json> = [
  null,
  true,
  0,
  -1.5e-7,
  9007199254740991,
  "",
  "a line\nand another\u0000\u2028",
  "\ud800",
  [],
  {},
  [[{ deep: ["in", { here: null }] }]],
  { "a key": 1, "": 2, __proto__1: 3 }
]

export const plain: Scenario = {
  name: "plain",
  logs: { holders: "plain", compacted: "plain", [name]: "plain", empty: "plain" },
  play: Effect.gen(function* () {
    yield* hold("holders", append("one of the first"), append("two", "at once"))
    yield* hold("holders", append("one of the second"))
    yield* hold("holders")
    yield* hold("holders", append(...Array.from({ length: 5 }, (_, index) => ({ index }))), append("the last"))

    yield* hold("compacted", append("dropped"), append("dropped too"))
    yield* hold("compacted", (log) => log.replace(["kept", "of all", "before"]), append("and more"))
    yield* hold("compacted", append("by the next"), append("twice"))

    yield* hold(name, append(...every), append("the last"))

    yield* hold("empty", append("dropped"), (log) => log.replace([]))
  })
}
