// A month of nights in two seconds: every night at two, in Berlin, an agent writes a report. Each night is a turn of
// RetryPolicy, which repeats what may pass; a night that fails for good counts against the schedule.
//
//   node examples/nightly.ts
import { Clock, Console, DateTime, Effect, Layer } from "effect"
import { AgentLauncher, Failure, RetryPolicy, ScheduleJournal, Storage } from "shiftboss"
import { ScriptedLauncher, WallClock } from "shiftboss/testing"

const berlin = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")
const at = (iso: string) => DateTime.makeUnsafe(iso).epochMilliseconds
const shown = (millis: number) => DateTime.formatIsoZoned(DateTime.makeZonedUnsafe(millis, { timeZone: berlin }))

// The agent of this example plays a script: it works for eight minutes, and in the second week things go wrong. A
// program of one's own has ProcessLauncher here, from shiftboss/node.
const agent = ScriptedLauncher.layer(() =>
  Effect.gen(function* () {
    yield* Effect.sleep("8 minutes")
    const now = yield* Clock.currentTimeMillis
    const isBetween = (from: string, to: string) => now >= at(from) && now < at(to)
    if (isBetween("2026-03-22T00:00Z", "2026-03-22T01:15Z")) {
      return AgentLauncher.failed(Failure.make("Capacity", "overloaded"))
    }
    if (isBetween("2026-03-24", "2026-03-27"))
      return AgentLauncher.failed(Failure.make("Auth", "the token has expired"))
    return AgentLauncher.succeeded("the report")
  })
)

// What runs every night. The run id is the identity of its turn, so a night that a crash cuts off goes on where it was.
const report = Effect.fn("report")(function* ({ runId, dueAt }: ScheduleJournal.EffectFiring) {
  const turn = { id: runId, prompt: `Write the report of ${shown(dueAt)}.`, directory: "/reports", model: "large" }
  const { status, attempts, detail, fix } = yield* RetryPolicy.run(turn)
  const outcome = status === "succeeded" ? "" : `: ${detail}. ${fix}`
  yield* Console.log(`${runId}  due ${shown(dueAt)}  ${status} at attempt ${attempts.length}${outcome}`)
  if (status !== "succeeded") return yield* Effect.fail(status)
})

const schedules = ScheduleJournal.layerEffects({
  nightly: { cron: "0 2 * * *", zone: "Europe/Berlin", lateWithin: "1 hour", resumable: true, run: report }
})

const month = Effect.gen(function* () {
  const journal = yield* ScheduleJournal.ScheduleJournal
  yield* Effect.forkChild(journal.run)
  for (let day = 0; day < 31; day++) {
    yield* Effect.sleep("1 day")
    const [nightly] = yield* journal.list
    if (nightly?.state !== "stopped") continue
    yield* Console.log(`stopped after ${nightly.failedRunIds.join(", ")}; somebody renews the token and resumes`)
    yield* journal.resume("nightly", "the token is new")
  }
  const [nightly] = yield* journal.list
  yield* Console.log(`${nightly?.lastSlot} nights: ${nightly?.ran} ran, skipped ${JSON.stringify(nightly?.skipped)}`)
})

const program = month.pipe(
  Effect.scoped,
  Effect.provide(schedules.pipe(Layer.provide(RetryPolicy.layer), Layer.provide([agent, Storage.layerMemory])))
)

const clock = await Effect.runPromise(WallClock.make({ start: at("2026-03-15T12:00Z") }))
await Effect.runPromise(clock.passWhile(program))
