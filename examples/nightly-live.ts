// Schedules on the real clock, for a few seconds: what is due when, a run by hand, and what the journal tells of it.
//
//   node examples/nightly-live.ts
import { Console, DateTime, Effect, Layer, Stream } from "effect"
import { ScheduleJournal, Storage } from "shiftboss"

const schedules = ScheduleJournal.layerEffects({
  nightly: {
    cron: "0 2 * * *",
    zone: "Europe/Berlin",
    run: ({ runId }) => Effect.andThen(Effect.sleep("500 millis"), Console.log(`report of ${runId} written`))
  },
  heartbeat: { everySeconds: 60, run: () => Console.log("still here") }
})

const program = Effect.gen(function* () {
  const journal = yield* ScheduleJournal.ScheduleJournal
  yield* Effect.forkChild(journal.run)
  yield* Effect.forkChild(
    Stream.runForEach(journal.events, ({ _tag }) => Console.log(`event: ${_tag}`)),
    { startImmediately: true }
  )
  for (const at of yield* journal.preview("nightly", 3)) {
    yield* Console.log(`due ${DateTime.formatIso(DateTime.makeUnsafe(at))}`)
  }
  const { runId } = yield* journal.runNow("nightly")
  yield* Console.log(`asked for ${runId}`)
  yield* Effect.sleep("3 seconds")
  for (const { workflowId, state, lastSlot, nextAt, activeRunId } of yield* journal.list) {
    yield* Console.log(JSON.stringify({ workflowId, state, lastSlot, nextAt, activeRunId }))
  }
})

await program.pipe(Effect.scoped, Effect.provide(schedules.pipe(Layer.provide(Storage.layerMemory))), Effect.runPromise)
