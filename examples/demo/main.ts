/**
 * A tuning loop at work: it learns to read timestamps.
 *
 *     npm run demo                       goes on where it was, or says that it is done
 *     npm run demo -- --fresh            begins anew
 *     npm run demo -- --state DIR        keeps its records in DIR (default: ./shiftboss-demo)
 *     npm run demo -- --seats N          cases at a time (default: 4)
 *     npm run demo -- --cases N          only the first N cases
 *     npm run demo -- --pace MILLIS      how long the agent takes for an answer (default: 300)
 *
 * Ctrl-C stops between steps, a second one at once. Kill it and start it again: it goes on.
 */
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Fiber, FileSystem, Layer, Path, Runtime, Schema, Stream } from "effect"
import { parseArgs } from "node:util"
import { Dispatcher, RecheckRule, Storage } from "shiftboss"
import { FileStorage, NodeMain, Pages } from "shiftboss/node"
import { type Learned, readTimestamps, workload } from "./loop.ts"
import { check, report } from "./report.ts"
import { Rulebook } from "./rulebook.ts"
import * as Screen from "./screen.ts"
import { follow } from "./view.ts"

/** What the program ends with when work is left, or when the result is not what it has to be. */
class Unfinished extends Schema.TaggedError<Unfinished>()("Unfinished", {
  problems: Schema.Array(Schema.String),
  code: Schema.Number
}) {
  override get message(): string {
    return this.problems.join("\n")
  }
  override readonly [Runtime.errorExitCode] = this.code
  override readonly [Runtime.errorReported] = false
}

const { values: flags } = parseArgs({
  options: {
    fresh: { type: "boolean", default: false },
    state: { type: "string", default: "shiftboss-demo" },
    seats: { type: "string", default: "4" },
    cases: { type: "string", default: "Infinity" },
    pace: { type: "string", default: "300" }
  }
})

/** Removes what an earlier run left, unless it is still at work: then its log is held, and this fails with who holds it. */
const beginAnew = Effect.fnUntraced(function* (...folders: ReadonlyArray<string>) {
  const storage = yield* Storage.Storage
  const files = yield* FileSystem.FileSystem
  yield* Stream.runForEach(storage.list(), (log) => storage.remove(log))
  for (const folder of folders) yield* files.remove(folder, { recursive: true, force: true })
})

const work = Effect.gen(function* () {
  const timestamps = (yield* readTimestamps).slice(0, Number(flags.cases))
  const screen = yield* Screen.make
  const view = yield* follow(screen, timestamps.length)
  // The agent is a parser, which says the same every time: one failure is believed. A model's would not be.
  const options = { seats: Number(flags.seats), rechecks: 8, recheckRule: RecheckRule.allFail(1) }
  const summary: Dispatcher.Summary<Learned> = yield* Dispatcher.run(workload(timestamps, Number(flags.pace)), options)
  yield* Effect.timeoutOption(Fiber.join(view), "1 second")
  return { timestamps, summary }
}).pipe(Effect.scoped)

const canGoOn = "The same command goes on from here."

const tune = Effect.gen(function* () {
  const before = yield* Dispatcher.snapshot
  const { timestamps, summary } = yield* work
  if (summary.end._tag === "Stopped") {
    return yield* new Unfinished({ problems: [`Stopped. ${canGoOn}`], code: 130 })
  }
  const problems = yield* check(summary, timestamps)
  if (problems.length > 0) return yield* new Unfinished({ problems, code: 1 })
  const lines = yield* report(summary, timestamps)
  const wasDone = before.counts.completed + before.counts.difficult >= timestamps.length
  if (wasDone) yield* Console.log("There is nothing left to do. To begin anew: npm run demo -- --fresh")
  yield* Console.log(lines.join("\n"))
})

const main = Effect.gen(function* () {
  const path = yield* Path.Path
  const state = path.resolve(flags.state)
  const rules = path.join(state, "rules")
  const storage = FileStorage.layer(path.join(state, "log"))
  yield* Console.log(`Rules: ${path.join(rules, "rules.txt")}, each apply a commit. Log: ${path.join(state, "log")}`)
  yield* Console.log(`Pages: ${path.join(state, "STATUS.md")} and ${path.join(state, "applies")}`)
  if (flags.fresh) yield* Effect.provide(beginAnew(rules, path.join(state, "applies")), storage)
  const dispatcher = Pages.layer({ directory: state }).pipe(
    Layer.provideMerge(Dispatcher.layer),
    Layer.provide(storage)
  )
  const layer = Layer.mergeAll(dispatcher, Rulebook.layer(rules))
  yield* Effect.provide(tune, layer)
})

main.pipe(
  Effect.tapError((error) => Console.error(error.message)),
  Effect.onInterrupt(() => Console.error(`Interrupted. ${canGoOn}`)),
  Effect.provide(NodeServices.layer),
  (program) => NodeMain.runMain(program, { disableErrorReporting: true })
)
