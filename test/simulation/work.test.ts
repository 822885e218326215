import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Simulation } from "shiftboss/testing"
import { work } from "./work.ts"
import { workMutants } from "./workMutants.ts"

const settings = { promises: true, mostSteps: 300_000 }

describe("cases, applies, rechecks, turns and schedules in one process on a simulated disk", () => {
  it.live(
    "lose nothing, repeat nothing that ended, and come to their end when nothing goes wrong any more",
    () => Simulation.check(work(), { ...settings, seeds: 6 }),
    120_000
  )

  for (const [name, { mutant, within }] of Object.entries(workMutants)) {
    it.live(
      `do not, and are found out within ${within} seeds, when one ${name}`,
      () =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(Simulation.check(work(mutant), { ...settings, seeds: within, shrinks: 0 }))
          assert.strictEqual(error._tag, "Falsified")
        }),
      120_000
    )
  }
})
