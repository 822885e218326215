/**
 * A run of the dispatcher that is cut off at every place it can be, and started again. The first host makes its edits
 * idempotent by the name of the apply, the second one forgot.
 *
 *     node examples/crash-everywhere.ts
 */
import { Console, Effect, Exit, Schema } from "effect"
import { Case, Dispatcher, Improvements } from "shiftboss"
import { CrashEverywhere, FaultyStorage } from "shiftboss/testing"

/** A rules file of the host's: it is outside the store, so it survives each crash. */
const trial = (isIdempotent: boolean) =>
  Effect.sync(() => {
    const edits: Array<string> = []
    const edit = (name: string) =>
      FaultyStorage.outside(
        Effect.sync(() => void (isIdempotent && edits.includes(name) ? undefined : edits.push(name)))
      )
    const run = Dispatcher.run({
      cases: Effect.succeed([{ id: "a" }, { id: "b" }]),
      train: (case_, seat) =>
        Effect.gen(function* () {
          yield* seat.step("try", Effect.sleep("10 minutes"))
          yield* seat.park("missing", `a rule for ${case_.id}`)
          yield* seat.step("try again", Effect.sleep("10 minutes"))
          return Case.completed()
        }),
      improve: {
        request: Schema.String,
        apply: ({ name }) => Effect.as(edit(name), Improvements.changed("before", name))
      }
    })
    return {
      program: Effect.provide(run, Dispatcher.layer),
      check: ({ exit }: CrashEverywhere.Ended<Dispatcher.Summary<void>, unknown>) => {
        const completed = Exit.isSuccess(exit) ? exit.value.completed.length : 0
        const isWell = completed === 2 && new Set(edits).size === edits.length
        return isWell ? Effect.void : Effect.fail(`${completed} cases completed, edits: ${edits.join(", ")}`)
      }
    }
  })

const program = Effect.gen(function* () {
  const report = yield* CrashEverywhere.crashEverywhere(trial(true))
  yield* Console.log(`an idempotent apply survives a crash at each of ${report.points} points`)
  const error = yield* Effect.flip(CrashEverywhere.crashEverywhere(trial(false)))
  yield* Console.log(`one that is not: ${error.message}`)
})

await Effect.runPromise(program)
