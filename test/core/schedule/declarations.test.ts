import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Result } from "effect"
import type { ScheduleJournal } from "shiftboss"
import { Advance } from "shiftboss/testing"
import * as CronSlots from "../../../src/core/internal/schedule/cron.ts"
import { check } from "../../../src/core/internal/schedule/declarations.ts"
import { makeInProcess } from "../../../src/core/internal/schedule/inProcess.ts"
import { makeDisk, makeWorld, minute } from "./kit.ts"

/** What is said of a declaration of "a" that makes no sense. */
const said = (declaration: object): string => {
  const result = check([{ workflowId: "a", ...declaration } as ScheduleJournal.Schedule])
  return Result.isFailure(result) ? result.failure.message : "nothing"
}

const everyMinute = { everySeconds: 60 }
const hostile: ReadonlyArray<unknown> = [Object.create(null), Symbol("no"), () => 60, {}, [], 1n, Number.NaN]

describe("a declaration that makes no sense is said to be, by its field:", () => {
  it("when it fires", () => {
    const either = 'schedule "a" needs either everySeconds or cron'
    assert.deepStrictEqual([said({}), said({ everySeconds: 60, cron: "* * * * *" })], [either, either])
    const text = 'schedule "a".cron has to be a string of at most 200 characters'
    for (const cron of [...hostile, null, 5, "* * * * *".padEnd(201)]) assert.strictEqual(said({ cron }), text)
    assert.strictEqual(said({ cron: "* * * * *".padEnd(200) }), "nothing")
    assert.include(said({ cron: "* * * *" }), '.cron "* * * *" has 4 fields instead of five')
    for (const zone of [...hostile, 5]) {
      assert.match(said({ cron: "* * * * *", zone }), /^schedule "a".zone is .*; it has to be a string$/)
    }
    for (const everySeconds of [...hostile, null, 59, 86_401, 60.5, "60"]) {
      assert.match(said({ everySeconds }), /^schedule "a".everySeconds is .*; it has to be a whole number from 60/)
    }
  })

  it("how late it may be", () => {
    const late = 'schedule "a".lateWithin has to be a duration that is not negative'
    for (const lateWithin of ["soon", -1, "-1 seconds", Symbol("no"), null]) {
      assert.strictEqual(said({ ...everyMinute, lateWithin }), late)
    }
    for (const lateWithin of [0, "0 seconds", "1 hour", Duration.infinity]) {
      assert.strictEqual(said({ ...everyMinute, lateWithin }), "nothing")
    }
  })

  it("after how many failures it stops, and what it gives its runs", () => {
    for (const failuresInARow of [...hostile, 0, 101, 1.5]) {
      assert.include(said({ ...everyMinute, failuresInARow }), ".failuresInARow is")
    }
    const input = 'schedule "a".input has to be what JSON keeps, of at most 65536 characters'
    for (const odd of [Number.NaN, "x".repeat(65_535), () => 1]) {
      assert.strictEqual(said({ ...everyMinute, input: odd }), input)
    }
    assert.strictEqual(said({ ...everyMinute, input: "x".repeat(65_534) }), "nothing")
  })

  it("whose it is", () => {
    const id = (value: unknown) => said({ ...everyMinute, workflowId: value })
    assert.strictEqual(id(""), 'workflowId is ""; it has to be a string of 1 to 200 characters')
    assert.strictEqual(id(5), "workflowId is 5; it has to be a string of 1 to 200 characters")
    assert.strictEqual(id(null), "workflowId is null; it has to be a string of 1 to 200 characters")
    assert.strictEqual(
      id(Symbol("no")),
      "workflowId is of the type symbol; it has to be a string of 1 to 200 characters"
    )
    // Of a long one as much as a person reads.
    assert.strictEqual(
      id("x".repeat(10_000)),
      `workflowId is "${"x".repeat(100)}"; it has to be a string of 1 to 200 characters`
    )
    assert.strictEqual(id("x".repeat(200)), "nothing")
  })

  it("that they are not declarations at all", () => {
    for (const schedules of [null, "x", { length: 1, 0: everyMinute }, [null], [() => 60], [5]]) {
      const result = check(schedules as never)
      const message = Result.isFailure(result) && result.failure.message
      assert.strictEqual(message, "schedules has to be an array of declarations")
    }
    const twice = check([
      { workflowId: "a", everySeconds: 60 },
      { workflowId: "a", everySeconds: 61 }
    ])
    assert.strictEqual(Result.isFailure(twice) && twice.failure.message, 'schedule "a" is declared twice')
  })
})

describe("an expression", () => {
  it("is read whatever white space is around and between its fields", () => {
    for (const expression of ["  0 6 * * *", "0 6 * * *  ", "0  6\t*\n* *"]) {
      assert.isUndefined(CronSlots.problem({ expression, zone: "UTC" }), JSON.stringify(expression))
    }
  })
})

describe("options", () => {
  it.effect("are taken up to their bounds, and said to be wrong beyond", () =>
    Effect.gen(function* () {
      for (const concurrency of [1, 1000]) yield* makeWorld([], { concurrency })
      const problem = (options: object) => Effect.map(Effect.flip(makeWorld([], options)), (error) => error.message)
      for (const concurrency of [0, 1001, 1.5, "1"]) {
        assert.strictEqual(yield* problem({ concurrency }), "concurrency has to be a whole number from 1 to 1000")
      }
      for (const hostTimeout of ["soon", 0, -1, Duration.infinity, Symbol("no")]) {
        assert.strictEqual(yield* problem({ hostTimeout }), "hostTimeout has to be a duration above zero, and finite")
      }
      yield* makeWorld([], { hostTimeout: 1 })
    })
  )
})

describe("runNow", () => {
  const declared = [{ workflowId: "a", everySeconds: 60 }]

  it.effect("is refused while a run of the schedule goes on, and says which", () =>
    Effect.gen(function* () {
      const { after, journal } = yield* makeWorld(declared)
      yield* after(minute)
      assert.strictEqual((yield* Effect.flip(journal.runNow("a"))).message, 'schedule "a" is running a@1.1')
    })
  )

  it.effect("decides nothing while the host does not say what became of what it was asked for", () =>
    Effect.gen(function* () {
      for (const isPending of [true, false]) {
        const { after, disk, host, journal } = yield* makeWorld(declared)
        if (isPending) host.manner = "silent"
        yield* after(minute)
        host.manner = "silent"
        const before = disk.appends
        const error = yield* Effect.flip(journal.runNow("a"))
        assert.deepInclude(error, { _tag: "SchedulesUnavailable", reason: "HostSilent" })
        assert.strictEqual(disk.appends, before)
      }
    })
  )

  it.effect("of an id that is none is told what was given", () =>
    Effect.gen(function* () {
      const { journal } = yield* makeWorld(declared)
      const ids = [5, null, Symbol("no"), {}] as ReadonlyArray<unknown>
      const errors = yield* Effect.forEach(ids, (id) => Effect.flip(journal.runNow(id as never)))
      assert.deepStrictEqual(
        errors.map((error) => error._tag === "UnknownSchedule" && error.workflowId),
        ["5", "null", "of the type symbol", "of the type object"]
      )
      const { message } = yield* Effect.flip(journal.runNow("b"))
      assert.include(message, 'no schedule "b" is declared; declared are: "a".')
    })
  )
})

describe("runs of this process", () => {
  it.effect("are known of the newest eight of each workflow, so that their log does not grow", () =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      const workflow = { run: () => Effect.void, resumable: false }
      const workflows = new Map([
        ["a", workflow],
        ["b", workflow]
      ])
      const host = yield* makeInProcess(disk.storage, "runs", workflows, Context.empty())
      const runIds = ["b@1.1", ...Array.from({ length: 10 }, (_, index) => `a@1.${index + 1}`)]
      for (const runId of runIds) {
        const workflowId = runId.slice(0, 1)
        yield* host.submit({ workflowId, slot: 1, runId, input: null, dueAt: 0, late: Duration.zero })
        yield* Advance.settle
      }
      const outcomes = yield* Effect.forEach(runIds, host.outcome)
      assert.deepStrictEqual(outcomes, [
        "succeeded",
        ...["unknown", "unknown"],
        ...Array.from({ length: 8 }, () => "succeeded")
      ])
    }).pipe(Effect.scoped)
  )
})
