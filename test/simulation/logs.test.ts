import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Simulation } from "shiftboss/testing"
import { diskMutants } from "./diskMutants.ts"
import { logs } from "./logs.ts"

describe("logs on a simulated disk", () => {
  it.live(
    "keep what they acknowledged, in order, whatever the disk, the power and the processes do",
    () => Simulation.check(logs(), { seeds: 40, promises: true }),
    120_000
  )

  for (const [name, { mutant, within }] of Object.entries(diskMutants)) {
    it.live(
      `do not, and are found out within ${within} seeds, when one ${name}`,
      () =>
        Effect.gen(function* () {
          const options = { seeds: within, promises: true, shrinks: 0 }
          const error = yield* Effect.flip(Simulation.check(logs(mutant), options))
          assert.strictEqual(error._tag, "Falsified")
        }),
      120_000
    )
  }
})
