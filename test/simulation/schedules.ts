/**
 * Schedules in the scenario of everything together: a host of runs that changes its ways, a person who pauses, resumes and
 * asks for runs, and runs that are effects of the process itself.
 */
import assert from "node:assert/strict"
import { Clock, Effect, Layer, Stream } from "effect"
import { ScheduleJournal, Storage } from "shiftboss"
import { Simulation } from "shiftboss/testing"
import { Account } from "../core/schedule/law.ts"
import type { Host } from "./host.ts"

export const marks = [
  "slot recovered",
  "slot skipped",
  "schedule paused",
  "schedule resumed",
  "run asked for",
  "run in the process ended",
  "run in the process cut off",
  "run in the process taken up again"
] as const

const workflowId = "nightly"
const lateWithinMillis = 120_000

type Workflows = ScheduleJournal.Workflows["Service"]

// -----------------------------------------------------------------------------
// the host of runs
// -----------------------------------------------------------------------------

const manners = ["accepting", "refusing", "silent", "deaf", "hanging"] as const
const endings = ["succeeded", "failed", "cancelled", "lost"] as const

/** It changes its ways and ends runs, for as long as the process lives. */
export const hostOfRuns = (host: Host) =>
  Effect.forever(
    Effect.gen(function* () {
      const { simulator, workflows } = host
      yield* Effect.sleep((60 + simulator.pickUnsafe("runs.seconds", 900)) * 1000)
      workflows.manner = host.fails("runs.manner", 0.4) ? manners[simulator.pickUnsafe("runs.how", 5)]! : "accepting"
      workflows.end(host.isCalm ? "succeeded" : endings[simulator.pickUnsafe("runs.end", 4)]!)
    })
  )

/** Holds every request against what the person was told. */
const watched = (host: Host, workflows: Workflows): Workflows =>
  ScheduleJournal.Workflows.of({
    ...workflows,
    submit: (firing) =>
      Effect.suspend(() => {
        host.fired(firing)
        return workflows.submit(firing)
      })
  })

export const layer = (host: Host, mutate: (workflows: Workflows) => Workflows = (workflows) => workflows) =>
  ScheduleJournal.layer([{ workflowId, everySeconds: 600, lateWithin: lateWithinMillis }]).pipe(
    Layer.provide(Layer.succeed(ScheduleJournal.Workflows, mutate(watched(host, host.workflows.workflows))))
  )

// -----------------------------------------------------------------------------
// the person
// -----------------------------------------------------------------------------

/** What it was told has happened is held against what the host of runs sees. */
export const person = (host: Host) =>
  Effect.forever(
    Effect.gen(function* () {
      const { simulator } = host
      const journal = yield* ScheduleJournal.ScheduleJournal
      yield* Effect.sleep((60 + simulator.pickUnsafe("person.seconds", 900)) * 1000)
      switch (simulator.pickUnsafe("person.does", 3)) {
        case 1:
          // It may count from the moment it is asked for.
          host.resumed()
          yield* journal.resume(workflowId)
          return simulator.markUnsafe("schedule resumed")
        case 2:
          if (host.isCalm) return
          yield* journal.pause(workflowId)
          host.paused(yield* Clock.currentTimeMillis)
          return simulator.markUnsafe("schedule paused")
        default: {
          const { runId } = yield* journal.runNow(workflowId)
          host.askedFor(runId)
          return simulator.markUnsafe("run asked for")
        }
      }
    }).pipe(Effect.catch(() => Effect.void))
  )

// -----------------------------------------------------------------------------
// runs in the process
// -----------------------------------------------------------------------------

const inProcess = (host: Host, life: number) => {
  const workflow = (resumable: boolean) => ({
    everySeconds: 900,
    lateWithin: lateWithinMillis,
    resumable,
    run: (firing: ScheduleJournal.EffectFiring) => host.runInProcess(life, firing, resumable)
  })
  return ScheduleJournal.layerEffects({ once: workflow(false), again: workflow(true) }, { log: "inside" })
}

/** Fires them for as long as the process lives. */
export const runInProcess = (host: Host, life: number) =>
  Effect.flatMap(ScheduleJournal.ScheduleJournal, (journal) => journal.run).pipe(
    Effect.provide(Layer.fresh(inProcess(host, life))),
    Effect.ignore
  )

// -----------------------------------------------------------------------------
// the end
// -----------------------------------------------------------------------------

const scheduled = Effect.flatMap(Storage.Storage, (storage) =>
  Stream.runCollect(Storage.readTyped(storage, "schedules", { entry: ScheduleJournal.ScheduleEvent, version: 1 }))
)

/** A slot that was about to be fired when its process ended, and has to be found by this one. */
export const noteSlotPending = Effect.flatMap(scheduled, (entries) => {
  const last = entries.findLastIndex(({ _tag }) => _tag === "SlotPending")
  const settled = entries.findLastIndex(({ _tag }) => ["RunAccepted", "RunRefused", "SlotsSkipped"].includes(_tag))
  return last > settled ? Simulation.mark("slot recovered") : Effect.void
})

export const check = Effect.fnUntraced(function* (host: Host) {
  const entries = yield* scheduled
  if (entries.some(({ _tag }) => _tag === "ScheduleSaved")) return
  const { slots } = new Account(entries, lateWithinMillis)
  const ran = [...slots].flatMap(([slot, outcome]) => (outcome === "ran" ? [slot] : []))
  const started = host.workflows.submitted.flatMap(({ slot }) => (slot === null ? [] : [slot]))
  const ascending = (one: number, other: number) => one - other
  assert.deepStrictEqual(ran.toSorted(ascending), [...new Set(started)].toSorted(ascending), "slots that ran")
  assert.ok(![...slots.values()].includes("pending"), "no slot is pending")
  if ([...slots.values()].some((outcome) => outcome.startsWith("skipped"))) yield* Simulation.mark("slot skipped")
})
