/**
 * What the services would be if one of their facts were not kept, or kept under the wrong name.
 */
import { Clock, Effect, Schema } from "effect"
import { ScheduleJournal, Storage } from "shiftboss"
import type { Killed } from "./diskMutants.ts"
import type { WorkMutant } from "./work.ts"

const Tagged = Schema.Struct({ value: Schema.Struct({ _tag: Schema.String }) })
const isTagged = Schema.is(Tagged)

/** Logs from which the events with this tag are missing: they count for the process that has them, and for none after it. */
const without =
  (tag: string) =>
  (storage: Storage.Storage["Service"]): Storage.Storage["Service"] =>
    Storage.Storage.of({
      ...storage,
      open: (name) =>
        Effect.map(storage.open(name), (log) => ({
          ...log,
          append: (entries) => log.append(entries.filter((entry) => !(isTagged(entry) && entry.value._tag === tag)))
        }))
    })

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
  "knows a slot by its time": { within: 60, mutant: { workflows: byTime, faults: { crash: 1 / 40, kill: 0.5 } } }
}
