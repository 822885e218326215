/**
 * What the services would be if one of their facts were not kept, or kept under the wrong name.
 */
import { Clock, Effect, Option, Schema } from "effect"
import { ScheduleJournal, Storage } from "shiftboss"
import type { Killed } from "./diskMutants.ts"
import type { WorkMutant } from "./work.ts"

const Tagged = Schema.Struct({ value: Schema.Struct({ _tag: Schema.String }) })
const isTagged = Schema.is(Tagged)

/** Logs from which the events with this tag are missing: they count for the process that has them, and for none after it. */
const without =
  (tag: string, of?: string) =>
  (storage: Storage.Storage["Service"]): Storage.Storage["Service"] =>
    Storage.Storage.of({
      ...storage,
      open: (name) =>
        Effect.map(storage.open(name), (log) => ({
          ...log,
          append: (entries) =>
            log.append(
              entries.filter(
                (entry) => !(isTagged(entry) && entry.value._tag === tag && (of === undefined || of === name))
              )
            )
        }))
    })

/** The log with this name, changed. */
const inLog =
  (name: string, change: (log: Storage.Log<Storage.Json>) => Partial<Storage.Log<Storage.Json>>) =>
  (storage: Storage.Storage["Service"]): Storage.Storage["Service"] =>
    Storage.Storage.of({
      ...storage,
      open: (opened) => Effect.map(storage.open(opened), (log) => (opened === name ? { ...log, ...change(log) } : log))
    })

const ApplyChanged = Schema.Struct({
  version: Schema.Number,
  value: Schema.Struct({
    _tag: Schema.Literal("ApplyEnded"),
    at: Schema.Number,
    apply: Schema.String,
    applied: Schema.Struct({ _tag: Schema.Literal("Changed"), from: Schema.String, to: Schema.String })
  })
})
const asApplyChanged = Schema.decodeUnknownOption(ApplyChanged)

/** The log of applies that do not say what they were made of. */
const withoutBaseline = inLog("dispatch", (log) => ({
  append: (entries) =>
    log.append(
      entries.map((entry) =>
        Option.match(asApplyChanged(entry), {
          onNone: () => entry,
          onSome: ({ version, value }) => ({
            version,
            value: { ...value, applied: { ...value.applied, from: "v1000" } }
          })
        })
      )
    )
}))

/** Runs that are known by the time at which they are asked for. */
const byTime = (workflows: ScheduleJournal.Workflows["Service"]): ScheduleJournal.Workflows["Service"] => {
  const now = (runId: string) => Effect.map(Clock.currentTimeMillis, (time) => `${runId.split("@")[0]}@${time}`)
  return ScheduleJournal.Workflows.of({
    submit: (firing) => Effect.flatMap(now(firing.runId), (runId) => workflows.submit({ ...firing, runId })),
    outcome: (runId) => Effect.flatMap(now(runId), workflows.outcome)
  })
}

const crashes = { crash: 1 / 150, kill: 0.5 }

export interface KilledAtWork extends Killed {
  readonly mutant: WorkMutant
}

/** By what is wrong. */
export const workMutants: Readonly<Record<string, KilledAtWork>> = {
  "does not record that a step has ended": { within: 10, mutant: { storage: without("StepEnded"), faults: crashes } },
  "does not record that a case was woken": {
    within: 30,
    mutant: { storage: without("ApplyEnded"), faults: { kill: 1 } }
  },
  "counts attempts anew after a restart": {
    within: 20,
    mutant: { turns: (life) => `turns-${life}`, faults: crashes }
  },
  "leaves a request to stop where the next start finds it": {
    within: 60,
    mutant: { storage: inLog("dispatch.control", () => ({ replace: () => Effect.void })), faults: {} }
  },
  "forgets that a schedule was paused": {
    within: 60,
    mutant: { storage: without("SchedulePaused"), faults: { kill: 0.5 } }
  },
  "does not record that a run in its process was begun": {
    within: 20,
    mutant: { storage: without("RunStarted", "inside/runs"), faults: { kill: 1 } }
  },
  "forgets what version an apply was made of": {
    within: 300,
    mutant: { storage: withoutBaseline, faults: { kill: 1 } }
  },
  "knows a slot by its time": { within: 60, mutant: { workflows: byTime, faults: { crash: 1 / 40, kill: 0.5 } } }
}
