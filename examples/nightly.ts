// A month of nights in a second: a report every night at two, in Berlin, under a clock that is moved by hand.
//
//   node examples/nightly.ts
import { Clock, Console, DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal, Storage } from "shiftboss"

const berlin = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")
const shown = (millis: number) => DateTime.formatIsoZoned(DateTime.makeZonedUnsafe(millis, { timeZone: berlin }))

// What runs every night. The run id is its identity: give it to whatever has to happen once for this night.
const report = Effect.fn("report")(function* ({ slot, runId, dueAt }: ScheduleJournal.Firing) {
  const now = yield* Clock.currentTimeMillis
  yield* Console.log(`night ${String(slot).padStart(2)}  ${runId}  due ${shown(dueAt)}`)
  yield* Effect.sleep("20 minutes")
  // The source it reads from is down in the second week.
  if (now > begin + 7 * day && now < begin + 10 * day) return yield* Effect.fail("the source is down")
})

const day = 86_400_000
const begin = DateTime.makeUnsafe("2026-03-15T12:00:00Z").epochMilliseconds

const schedules = ScheduleJournal.layerEffects({
  nightly: { cron: "0 2 * * *", zone: "Europe/Berlin", lateWithin: "1 hour", run: report }
})

// Logs in memory, with a lease so long that renewing it does not fill the month.
const storage = Layer.sync(Storage.Storage, () => Storage.fromEncoded(Storage.makeMemory(), { lease: "1 day" }))

const month = Effect.gen(function* () {
  const journal = yield* ScheduleJournal.ScheduleJournal
  for (let halfHour = 0; halfHour < 31 * 48; halfHour++) {
    yield* TestClock.adjust("30 minutes")
    // a program that runs for long leaves this to `journal.run`
    yield* journal.tick
    const [nightly] = yield* journal.list
    if (nightly?.state !== "stopped" || halfHour % 96 !== 0) continue
    yield* Console.log(`stopped after ${nightly.failedRunIds.join(", ")}; somebody looks at it and resumes`)
    yield* journal.resume("nightly", "the source is back")
  }
  const [nightly] = yield* journal.list
  yield* Console.log(`${nightly?.lastSlot} nights: ${nightly?.ran} ran, skipped ${JSON.stringify(nightly?.skipped)}`)
})

await TestClock.setTime(begin).pipe(
  Effect.andThen(Effect.provide(month, schedules.pipe(Layer.provide(storage)))),
  Effect.scoped,
  Effect.provide(TestClock.layer()),
  Effect.runPromise
)
