import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { day, hour, makeWorld, minute } from "./kit.ts"
import { Model } from "./model.ts"

/** Each comes after a while in which nobody ticks. */
type Command = { readonly millis: number } & (
  | { readonly do: "pass" | "pause" | "resume" }
  | { readonly do: "end"; readonly ending: "succeeded" | "failed" | "cancelled" }
  | { readonly do: "declare"; readonly everySeconds: number | undefined }
)

const passing = fc.constantFrom(0, 0, 1000, 29_000, minute, 90_000, 4 * minute, hour, 9 * hour, 2 * day, 300 * day)
const millis = fc.oneof({ weight: 9, arbitrary: passing }, { weight: 1, arbitrary: passing.map((forward) => -forward) })
const endings = fc.constantFrom("succeeded" as const, "failed" as const, "failed" as const, "cancelled" as const)
const commands: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ millis, do: fc.constant("pass" as const) }) },
  { weight: 2, arbitrary: fc.record({ millis, do: fc.constantFrom("pause" as const, "resume" as const) }) },
  { weight: 5, arbitrary: fc.record({ millis, do: fc.constant("end" as const), ending: endings }) },
  {
    weight: 2,
    arbitrary: fc.record({
      millis,
      do: fc.constant("declare" as const),
      everySeconds: fc.constantFrom(3600, 3600, 7000, 86_400, undefined)
    })
  }
)

const declaring = (everySeconds: number | undefined, lateWithin: number) =>
  everySeconds === undefined ? [] : [{ workflowId: "a", everySeconds, lateWithin }]

const compare = Effect.fnUntraced(function* (lateWithin: number, program: ReadonlyArray<Command>) {
  const world = yield* makeWorld(declaring(3600, lateWithin))
  const model = new Model(yield* Clock.currentTimeMillis, 3_600_000, lateWithin)
  for (const command of program) {
    const now = (yield* Clock.currentTimeMillis) + command.millis
    yield* TestClock.setTime(now)
    if (command.do === "declare") {
      yield* world.restart(declaring(command.everySeconds, lateWithin))
      model.declare(now, command.everySeconds === undefined ? undefined : command.everySeconds * 1000)
    }
    if (model.isDeclared && command.do === "pause") {
      yield* world.journal.pause("a")
      model.pause(now)
    }
    if (model.isDeclared && command.do === "resume") {
      yield* world.journal.resume("a")
      model.resume(now)
    }
    const ending = command.do === "end" ? command.ending : undefined
    if (ending !== undefined) world.host.end(ending)
    // Looked at as a clock set back has it looked at: at once.
    if (ending !== undefined || command.millis < 0)
      yield* world.restart(declaring(model.isDeclared ? model.everyMillis / 1000 : undefined, lateWithin))
    yield* world.journal.tick
    model.tick(now, ending)
    const { ran, skipped, lastSlot, state, nextAt, failuresInRow } = yield* world.summary("a")
    const { missed, overlap, paused, stopped, removed } = skipped
    assert.deepStrictEqual(
      { state, lastSlot, ran, missed, overlap, paused, stopped, removed, failuresInRow, nextAt },
      {
        state: model.state,
        lastSlot: model.slots.length,
        ran: model.count("ran"),
        missed: model.count("missed"),
        overlap: model.count("overlap"),
        paused: model.count("paused"),
        stopped: model.count("stopped"),
        removed: model.count("removed"),
        failuresInRow: model.streak,
        nextAt: model.state === "active" && model.isDeclared ? model.nextAt : null
      }
    )
    for (let slot = Math.max(1, lastSlot - 2); slot <= lastSlot; slot++) {
      const explained = yield* world.journal.explain("a", slot).pipe(Effect.orElseSucceed(() => undefined))
      if (explained === undefined) continue
      const outcome = explained._tag === "Skipped" ? explained.reason : explained._tag.toLowerCase()
      assert.strictEqual(outcome, model.slots[slot - 1])
    }
  }
})

describe("the journal and a slow, obvious model", () => {
  it("agree on every slot, whatever is asked of them", { timeout: 60_000 }, async () => {
    const found = await fc.check(
      fc.asyncProperty(
        fc.constantFrom(0, 10 * minute),
        fc.array(commands, { minLength: 1, maxLength: 30 }),
        (lateWithin, program) =>
          Effect.runPromise(compare(lateWithin, program).pipe(Effect.scoped, Effect.provide(TestClock.layer())))
      ),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 150) }
    )
    assert.isFalse(found.failed, fc.defaultReportMessage(found))
  })
})
