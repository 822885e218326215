import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Stream } from "effect"
import { Case, Dispatcher, DispatcherEvent, Improvements, type Rechecks, Storage, Verdict } from "shiftboss"
import { CrashEverywhere, FaultyStorage } from "shiftboss/testing"
import { Missing } from "./support.ts"

/** What the processes did to the world outside the store; it survives them. */
interface World {
  readonly runs: Array<string>
  /** Runs whose result the try was given. */
  readonly acknowledged: Set<string>
  readonly batches: Map<string, ReadonlyArray<string>>
  readonly repeated: Array<string>
}

const programOf = (world: World, controls: boolean) =>
  Effect.gen(function* () {
    const outside = (name: string) =>
      FaultyStorage.outside(
        Effect.sync(() => {
          if (world.acknowledged.has(name)) world.repeated.push(name)
          world.runs.push(name)
        })
      )
    const recheck = (one: Rechecks.Try, seat: Dispatcher.Seat) =>
      Effect.gen(function* () {
        const run = seat.info.key.replace(/\.\d+$/, "")
        yield* seat.step("run", Effect.delay(outside(run), "1 minute"))
        world.acknowledged.add(run)
        yield* seat.step("grade", outside(seat.info.key + " graded"))
        const isBroken = one.apply === "001" && one.arm === "new" && one.case.id === "a"
        return isBroken ? Verdict.wrong({ missing: one.version }) : Verdict.right<never>()
      })
    return yield* Dispatcher.run(
      {
        cases: Effect.succeed([{ id: "a" }, { id: "b" }, { id: "ask" }]),
        train: (case_: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
          Effect.gen(function* () {
            if (case_.id === "ask") yield* seat.park("p", { missing: "x" })
            return Case.completed()
          }),
        improve: {
          request: Missing,
          controls,
          recheck,
          apply: (batch: Improvements.Batch<typeof Missing.Type>) =>
            Effect.sync(() => {
              world.batches.set(
                batch.name,
                batch.requests.map(({ id }) => id)
              )
              return Improvements.changed(batch.version ?? "v0", `v${batch.name}`)
            })
        }
      },
      { seats: 2, rechecks: 2 }
    )
  }).pipe(Effect.provide(Dispatcher.layer))

const verdicts = (storage: Storage.Storage["Service"]) =>
  Effect.map(
    Stream.runCollect(
      Storage.readTyped(storage, "dispatch", {
        entry: DispatcherEvent.DispatcherEvent,
        version: DispatcherEvent.version
      })
    ),
    (events) =>
      events
        .flatMap((event) =>
          event._tag === "RecheckEnded" ? [`${event.case} ${event.apply} ${event.outcome._tag}`] : []
        )
        .toSorted()
  )

for (const controls of [false, true]) {
  describe(`a recheck ${controls ? "with" : "without"} controls that is cut off anywhere`, () => {
    it.live("ends with the same verdicts and one repair, and no run of a try is bought twice", () =>
      Effect.gen(function* () {
        const report = yield* CrashEverywhere.crashEverywhere(
          Effect.sync(() => {
            const world: World = { runs: [], acknowledged: new Set(), batches: new Map(), repeated: [] }
            return {
              program: programOf(world, controls),
              check: ({ exit, storage }: CrashEverywhere.Ended<Dispatcher.Summary, unknown>) =>
                Effect.gen(function* () {
                  assert(Exit.isSuccess(exit), String(exit))
                  assert.deepStrictEqual(yield* verdicts(storage), [
                    "a 001 Regressed",
                    "a 002 Passed",
                    "b 001 Passed",
                    "b 002 Passed"
                  ])
                  assert.deepStrictEqual(world.batches.get("002"), ["a@recheck-001"])
                  assert.strictEqual(world.batches.size, 2)
                  assert.deepStrictEqual(world.repeated, [])
                })
            }
          })
        )
        assert.isAbove(report.points, 40)
      })
    )
  })
}
