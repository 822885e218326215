// Runs a schedule over logs in files, a minute of slots a moment, until it is killed. Waits for the journal while another
// process has it. Its time goes on where that of the one before it was, and is printed after each slot.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { Clock, Effect, Exit, Layer } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal } from "shiftboss"
import { FileStorage } from "shiftboss/node"

const [folder = "", host = "", begin = "0"] = process.argv.slice(2)
const minute = 60_000
const clock = `${host}.clock`

const schedules = ScheduleJournal.layerEffects({
  a: { everySeconds: 60, run: ({ runId }) => Effect.sync(() => appendFileSync(host, `${runId}\n`)) }
}).pipe(Layer.provide(FileStorage.layer(folder)))

const program = Effect.gen(function* () {
  const journal = yield* ScheduleJournal.ScheduleJournal
  for (;;) {
    yield* journal.tick
    const now = yield* Clock.currentTimeMillis
    writeFileSync(clock, String(now + minute))
    console.log(now)
    yield* TestClock.adjust(minute)
  }
})

for (;;) {
  const exit = await Effect.runPromiseExit(
    // The journal is opened at the time that the one before had reached.
    TestClock.setTime(existsSync(clock) ? Number(readFileSync(clock, "utf8")) : Number(begin)).pipe(
      Effect.andThen(Effect.provide(program, Layer.fresh(schedules))),
      Effect.provide(TestClock.layer())
    )
  )
  const error = Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error : undefined
  if (error?._tag !== "LogHeld") throw new Error(`it ended: ${String(exit)}`)
  await setTimeout(20)
}
