// Runs a schedule over logs in files, an hour of slots a moment, until it is killed. Prints the time after each slot.
import { appendFileSync } from "node:fs"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal } from "shiftboss"
import { FileStorage } from "shiftboss/node"

const [folder = "", host = "", begin = "0"] = process.argv.slice(2)
const minute = 60_000

const schedules = ScheduleJournal.layerEffects({
  a: { everySeconds: 60, run: ({ runId }) => Effect.sync(() => appendFileSync(host, `${runId}\n`)) }
})

const program = Effect.gen(function* () {
  const journal = yield* ScheduleJournal.ScheduleJournal
  for (let now = Number(begin); ; now += minute) {
    yield* journal.tick
    console.log(now)
    yield* TestClock.adjust(minute)
  }
})

await TestClock.setTime(Number(begin)).pipe(
  Effect.andThen(Effect.provide(program, schedules.pipe(Layer.provide(FileStorage.layer(folder))))),
  Effect.provide(TestClock.layer()),
  Effect.runPromise
)
