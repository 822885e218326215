/**
 * Schedules until there is an event of every kind, and one journal that was compacted.
 */
import { Effect, Layer } from "effect"
import { ScheduleJournal, Storage } from "shiftboss"
import { Advance, ScriptedWorkflows } from "shiftboss/testing"
import * as TestClock from "effect/testing/TestClock"
import { scheduleLog } from "../../../src/core/internal/schedule/journal.ts"
import { beginning, type Scenario } from "../scenario.ts"

const minute = 60_000

const journal = ScheduleJournal.ScheduleJournal

const tick = (millis: number) =>
  Effect.andThen(
    TestClock.adjust(millis),
    Effect.flatMap(journal, ({ tick }) => tick)
  )

const onLog =
  (log: string, host: ScriptedWorkflows.ScriptedWorkflows, ...schedules: ReadonlyArray<ScheduleJournal.Schedule>) =>
  <A, E, R>(program: Effect.Effect<A, E, R>) =>
    Effect.provide(program, Layer.fresh(ScheduleJournal.layer(schedules, { log }).pipe(Layer.provide(host.layer))))

const on = (host: ScriptedWorkflows.ScriptedWorkflows, ...schedules: ReadonlyArray<ScheduleJournal.Schedule>) =>
  onLog("schedules", host, ...schedules)

const nightly: ScheduleJournal.Schedule = { workflowId: "nightly", cron: "30 21 * * *", zone: "Europe/Berlin" }
const often: ScheduleJournal.Schedule = { workflowId: "often", everySeconds: 60, input: { fast: true } }

export const schedules: Scenario = {
  name: "schedules",
  logs: { schedules: "schedules" },
  play: Effect.gen(function* () {
    const host = ScriptedWorkflows.make()
    const end = (ending: "succeeded" | "failed" | "cancelled") => Effect.sync(() => host.end(ending))
    const manner = (now: ScriptedWorkflows.Manner) => Effect.sync(() => void (host.manner = now))
    yield* on(
      host,
      nightly,
      often
    )(
      Effect.gen(function* () {
        const { pause, resume, runNow } = yield* journal
        yield* tick(minute)
        yield* tick(minute) // the last run goes on: skipped
        yield* end("succeeded")
        yield* manner("refusing")
        yield* tick(minute)
        yield* manner("accepting")
        yield* tick(10 * minute) // asleep: missed
        yield* end("cancelled")
        yield* pause("often", "over the weekend")
        yield* tick(5 * minute)
        yield* resume("often", "it is Monday")
        yield* runNow("often")
        yield* end("succeeded")
        // Far back, and the grid would be due in a day.
        yield* TestClock.setTime(beginning - 24 * 60 * minute)
        yield* tick(1000)
      })
    )
    yield* on(
      host,
      { ...often, failuresInARow: 2 },
      { workflowId: "hourly", everySeconds: 3600 }
    )(
      Effect.gen(function* () {
        for (let failed = 0; failed < 3; failed++) {
          yield* tick(minute)
          yield* end("failed")
        }
        yield* tick(120 * minute)
      })
    )
    // The host takes the run, and its answer is lost: it stays pending.
    yield* manner("deaf")
    yield* on(host, { ...often, failuresInARow: 2 }, { workflowId: "hourly", everySeconds: 1800 })(tick(40 * minute))
  })
}

/** Each long enough to be compacted, which happens at the thousandth entry, and some more. */
export const keptSchedules: Scenario = {
  name: "kept-schedules",
  logs: { "with a run": "schedules", "with skips": "schedules" },
  play: Effect.gen(function* () {
    const ending = ScriptedWorkflows.make()
    ending.endsAtOnce = "succeeded"
    // Three declarations and three entries a run: the thousandth is one of a run about to begin.
    yield* onLog("with a run", ending, often, nightly, { ...nightly, workflowId: "also" })(
      Effect.repeat(tick(minute), { times: 340 })
    )
    yield* onLog("with skips", ScriptedWorkflows.make(), often)(Effect.repeat(tick(minute), { times: 510 }))
  })
}

/** A skip is settled in the append that begins it, so that no journal is ever compacted between; its entry can say it. */
export const pendingSkip: Scenario = {
  name: "pending-skip",
  logs: { schedules: "schedules" },
  play: Effect.gen(function* () {
    const storage = yield* Storage.Storage
    const log = Storage.typed(yield* storage.open("schedules"), scheduleLog)
    const progress: ScheduleJournal.ScheduleProgress = {
      workflowId: "often",
      everySeconds: 60,
      generation: 1,
      nextAt: beginning + 4 * minute,
      lastSlot: 3,
      state: "active",
      declared: true,
      ran: 0,
      skipped: { missed: 0, overlap: 0, refused: 1, paused: 0, stopped: 0, removed: 0 },
      failuresInARow: 3,
      failuresInRow: 0,
      failedRunIds: [],
      stops: [],
      pending: { _tag: "Skip", first: 2, last: 3, reason: "missed" },
      manualRuns: 0,
      recent: [{ _tag: "Skipped", first: 1, last: 1, at: beginning + minute, reason: "refused", detail: "too busy" }]
    }
    yield* log.append([{ _tag: "ScheduleSaved", workflowId: "often", at: beginning, progress }])
    yield* log.append([
      { _tag: "SlotsSkipped", workflowId: "often", at: beginning, first: 2, last: 3, reason: "missed" }
    ])
  })
}

export const runs: Scenario = {
  name: "schedule-runs",
  logs: { schedules: "schedules", "schedules/runs": "schedule runs" },
  play: Effect.gen(function* () {
    const layer = ScheduleJournal.layerEffects({
      works: { everySeconds: 60, run: () => Effect.void },
      fails: { everySeconds: 60, run: () => Effect.fail("no") },
      "goes on": { everySeconds: 60, run: () => Effect.never },
      resumes: { everySeconds: 60, resumable: true, run: () => Effect.never }
    })
    const minutes = Effect.repeat(Effect.andThen(tick(minute), Advance.settle), { times: 3 })
    yield* Effect.provide(minutes, Layer.fresh(layer))
  })
}
