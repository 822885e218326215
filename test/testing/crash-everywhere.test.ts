import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Stream } from "effect"
import { Storage } from "shiftboss"
import { CrashEverywhere, FaultyStorage, WallClock } from "shiftboss/testing"

/** Sends letters, one an hour, and journals each before (or, which is wrong, without looking) it is sent. */
const letters = (options: { readonly looks: boolean }) =>
  Effect.sync(() => {
    const sent: Array<number> = []
    const program = Effect.scoped(
      Effect.gen(function* () {
        const storage = yield* Storage.Storage
        const log = yield* storage.open("letters")
        const done = yield* Stream.runCollect(log.replay)
        for (let letter = done.length + 1; letter <= 3; letter++) {
          yield* Effect.sleep("1 hour")
          const send = Effect.sync(() => {
            if (!options.looks || !sent.includes(letter)) sent.push(letter)
          })
          yield* FaultyStorage.outside(send)
          yield* log.append([letter])
        }
        return yield* Clock.currentTimeMillis
      })
    )
    const check = ({ exit, storage }: CrashEverywhere.Ended<number, unknown>) =>
      Effect.gen(function* () {
        assert(Exit.isSuccess(exit))
        assert.deepStrictEqual(sent, [1, 2, 3])
        assert.deepStrictEqual(yield* Stream.runCollect(storage.read("letters")), [1, 2, 3])
      })
    return { sent, program, check }
  })

describe("crashEverywhere", () => {
  it.effect("crashes before, in the middle of and after everything, and says how often", () =>
    Effect.gen(function* () {
      const report = yield* CrashEverywhere.crashEverywhere(letters({ looks: true }))
      const open = 2
      const reading = 1
      const letter = 2 + 3 // before and after it is sent; before, in the middle of and after its append
      const release = 2
      const points = open + reading + 3 * letter + release
      assert.deepStrictEqual(report, { points, trials: points })
    })
  )

  it.effect("crashes the restart everywhere as well, when asked to", () =>
    Effect.gen(function* () {
      const lives: Array<number> = []
      const trial = Effect.map(letters({ looks: true }), ({ program, check }) => ({
        program,
        check: (ended: CrashEverywhere.Ended<number, unknown>) =>
          Effect.andThen(
            Effect.sync(() => lives.push(ended.lives)),
            check(ended)
          )
      }))
      const report = yield* CrashEverywhere.crashEverywhere(trial, { inARow: 2 })
      assert.isAbove(report.trials, report.points * 10)
      assert.deepStrictEqual([...new Set(lives)], [1, 2, 3])
      assert.strictEqual(lives.length, report.trials + 1)
    })
  )

  it.effect("names the point at which the check does not hold, and how to run it alone", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(CrashEverywhere.crashEverywhere(letters({ looks: false })))
      assert(error._tag === "NotSurvived")
      const { crashes } = error
      assert.deepStrictEqual(
        crashes.map(({ wrong }) => wrong),
        ["crash-after"]
      )
      assert.strictEqual(error.operation, "outside")
      assert.include(error.message, `process ends after operation ${crashes[0]!.at} (there: outside)`)
      assert.include(error.message, `{ only: [{"at":${crashes[0]!.at},"wrong":"crash-after"}] }`)
      assert.include(error.message, "to deeply equal")
      const again = yield* Effect.flip(CrashEverywhere.crashEverywhere(letters({ looks: false }), { only: crashes }))
      assert.deepStrictEqual(again, error)
      yield* CrashEverywhere.crashEverywhere(letters({ looks: true }), { only: crashes })
    })
  )

  it.effect("says so when the check does not even hold without a crash", () =>
    Effect.gen(function* () {
      const trial = Effect.succeed({ program: Effect.void, check: () => Effect.fail("never right") })
      const error = yield* Effect.flip(CrashEverywhere.crashEverywhere(trial))
      assert.strictEqual(error.message, "the check does not hold even without a crash: never right")
    })
  )

  it.effect("fails when there was nothing to crash at", () =>
    Effect.gen(function* () {
      const trial = Effect.succeed({ program: Effect.sleep("1 hour"), check: () => Effect.void })
      const error = yield* Effect.flip(CrashEverywhere.crashEverywhere(trial))
      assert.strictEqual(error._tag, "NothingTried")
    })
  )

  it.effect("fails when a point is not met again", () =>
    Effect.gen(function* () {
      let runs = 0
      const program = Effect.suspend(() => Effect.repeat(FaultyStorage.outside(Effect.void), { times: 3 - runs++ }))
      const error = yield* Effect.flip(
        CrashEverywhere.crashEverywhere(Effect.succeed({ program, check: () => Effect.void }))
      )
      assert(error._tag === "PointNotMet")
      assert.include(error.message, "has to do the same each time")
      const none = CrashEverywhere.crashEverywhere(letters({ looks: true }), { only: [{ at: 99, wrong: "crash" }] })
      assert.strictEqual((yield* Effect.flip(none))._tag, "PointNotMet")
    })
  )

  it.effect("lets nothing of a dead process come outside, not even of its other fibers and finalizers", () =>
    Effect.gen(function* () {
      const done: Array<string> = []
      const say = (what: string) => FaultyStorage.outside(Effect.sync(() => void done.push(what)))
      const program = Effect.gen(function* () {
        yield* Effect.addFinalizer(() => Effect.ignore(say("finalizer")))
        yield* Effect.forkDetach(Effect.andThen(Effect.sleep("1 hour"), say("detached")))
        const slow = Effect.andThen(
          Effect.sleep("90 minutes"),
          Effect.sync(() => done.push("under way"))
        )
        yield* Effect.forkDetach(FaultyStorage.outside(slow), { startImmediately: true })
        yield* say("first")
        yield* Effect.sleep("2 hours")
        yield* say("never")
      })
      const first = FaultyStorage.make([{ on: "outside", at: 2, wrong: "crash-after" }])
      const clock = yield* WallClock.make()
      assert.isUndefined(yield* clock.passWhile(first.run(Effect.scoped(program))))
      yield* clock.pass("3 hours")
      assert.deepStrictEqual(done, ["first"])
      yield* clock.passWhile(first.restart().run(Effect.scoped(program)))
      assert.deepStrictEqual(done, ["first", "first", "detached", "under way", "never", "finalizer"])
    })
  )
})
