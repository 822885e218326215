import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { ScheduleJournal } from "shiftboss"
import { ScriptedWorkflows } from "shiftboss/testing"
import { day, type Disk, type Fault, hour, makeDisk, minute, revive, start, untilCrash } from "./kit.ts"
import { account } from "./law.ts"

const isProgress = Schema.is(ScheduleJournal.ScheduleProgress)

type Journal = ScheduleJournal.ScheduleJournalShape

type Command =
  | { readonly do: "pass" | "back"; readonly millis: number }
  | { readonly do: "host"; readonly manner: ScriptedWorkflows.Manner }
  | { readonly do: "end"; readonly ending: "succeeded" | "failed" | "cancelled" | "lost" }
  | { readonly do: "pause" | "resume" | "runNow" | "runFails" }
  | { readonly do: "restart"; readonly every: number | null }
  | { readonly do: "fault"; readonly fault: Fault }

/** Short intervals with steps of up to days, or long ones with steps of years. */
interface Scale {
  readonly times: ReadonlyArray<number>
  readonly intervals: ReadonlyArray<number>
}
const short: Scale = {
  times: [1000, 30_000, minute, 61_000, 7 * minute, hour, 5 * hour, day],
  intervals: [60, 60, 90, 600]
}
const long: Scale = {
  times: [30_000, hour, 7 * hour, day, 40 * day, 3 * 366 * day],
  intervals: [3600, 3600, 10_000, 86_400]
}

const fault = fc.record({
  kind: fc.constantFrom("fail" as const, "crash" as const),
  written: fc.boolean(),
  after: fc.nat(4)
})

const commands = ({ times, intervals }: Scale): fc.Arbitrary<Command> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ do: fc.constant("pass" as const), millis: fc.constantFrom(...times) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("back" as const), millis: fc.constantFrom(...times) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("host" as const),
        manner: fc.constantFrom(
          "accepting" as const,
          "accepting" as const,
          "refusing" as const,
          "silent" as const,
          "deaf" as const
        )
      })
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("end" as const),
        ending: fc.constantFrom(
          "succeeded" as const,
          "failed" as const,
          "failed" as const,
          "cancelled" as const,
          "lost" as const
        )
      })
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constantFrom("pause" as const, "resume" as const, "runNow" as const, "runFails" as const)
      })
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant("restart" as const), every: fc.constantFrom(...intervals, null) })
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("fault" as const), fault }) }
  )

const id = "nightly"
const declaring = (every: number | null): ReadonlyArray<ScheduleJournal.Schedule> =>
  every === null ? [] : [{ workflowId: id, everySeconds: every, lateWithin: "3 minutes" }]

const request = (journal: Journal, command: Command): Effect.Effect<unknown, unknown> => {
  switch (command.do) {
    case "pause":
      return journal.pause(id)
    case "resume":
      return journal.resume(id)
    case "runNow":
      return journal.runNow(id)
    default:
      return journal.tick
  }
}

/** Moves what the journal does not decide. */
const prepare = Effect.fnUntraced(function* (command: Command, host: ScriptedWorkflows.ScriptedWorkflows, disk: Disk) {
  if (command.do === "pass") yield* TestClock.adjust(command.millis)
  if (command.do === "back") yield* TestClock.setTime((yield* Clock.currentTimeMillis) - command.millis)
  if (command.do === "host") host.manner = command.manner
  if (command.do === "end") host.end(command.ending)
  if (command.do === "runFails") host.endsAtOnce = host.endsAtOnce === undefined ? "failed" : undefined
  if (command.do === "fault") disk.fault = command.fault
})

const entriesOfIt = (disk: Disk) => Effect.map(disk.entries(), (all) => all.filter((entry) => entry.workflowId === id))

/** What the journal says agrees with its entries, and no state is one that its own schema refuses. */
const checkAgreement = Effect.fnUntraced(function* (journal: Journal, disk: Disk) {
  const { slots } = account(yield* entriesOfIt(disk))
  for (const { nextAt, ...summary } of yield* journal.list) {
    assert.isTrue(isProgress({ ...summary, nextAt: nextAt ?? 0, recent: [] }))
    const outcomes = [...slots.values()]
    assert.strictEqual(summary.lastSlot, slots.size)
    assert.strictEqual(summary.ran, outcomes.filter((outcome) => outcome === "ran").length)
    for (const [reason, count] of Object.entries(summary.skipped)) {
      assert.strictEqual(count, outcomes.filter((outcome) => outcome === `skipped: ${reason}`).length)
    }
  }
})

const checkHost = (host: ScriptedWorkflows.ScriptedWorkflows) => {
  const ids = host.submitted.map(({ runId }) => runId)
  assert.strictEqual(new Set(ids).size, ids.length, "the host saw a run twice")
}

const runProgram = Effect.fnUntraced(function* (first: number, program: ReadonlyArray<Command>) {
  yield* TestClock.setTime(40_000 * day)
  const disk = yield* makeDisk
  const host = ScriptedWorkflows.make()
  let every: number | null = first
  let process = yield* start(disk, host, declaring(every))
  const restart = Effect.fnUntraced(function* () {
    disk.fault = undefined
    yield* process.stop
    yield* revive(disk)
    process = yield* start(disk, host, declaring(every))
  })
  for (const command of program) {
    yield* prepare(command, host, disk)
    if (command.do === "restart") {
      every = command.every
      yield* restart()
    }
    if (yield* untilCrash(disk, request(process.journal, command))) yield* restart()
    checkHost(host)
    if (disk.fault === undefined) {
      yield* Effect.exit(process.journal.tick)
      yield* checkAgreement(process.journal, disk)
    }
  }
  // At rest, with a host that answers, nothing is pending and no slot that was due is left.
  host.manner = "accepting"
  yield* restart()
  yield* process.journal.tick
  yield* TestClock.adjust(minute)
  yield* process.journal.tick
  yield* checkAgreement(process.journal, disk)
  checkHost(host)
  const { slots, runIds, dueAt, isFiring } = account(yield* entriesOfIt(disk))
  assert.isFalse([...slots.values()].includes("pending"))
  if (isFiring) assert.isAbove(dueAt(slots.size + 1), yield* Clock.currentTimeMillis)
  const started = host.submitted.flatMap(({ slot, runId }) => (slot === null ? [] : [runId]))
  const ran = [...slots].flatMap(([slot, outcome]) => (outcome === "ran" ? [runIds.get(slot)] : []))
  assert.sameMembers(started, ran)
  yield* process.stop
}, Effect.scoped)

describe("every slot is exactly one of ran, skipped and pending", () => {
  const programs = fc.oneof(
    fc.tuple(fc.constant(60), fc.array(commands(short), { minLength: 1, maxLength: 25 })),
    fc.tuple(fc.constant(3600), fc.array(commands(long), { minLength: 1, maxLength: 25 }))
  )
  it("whatever happens to the host, the clock, the storage and the process", { timeout: 60_000 }, async () => {
    const found = await fc.check(
      fc.asyncProperty(programs, ([first, program]) =>
        Effect.runPromise(runProgram(first, program).pipe(Effect.provide(TestClock.layer())))
      ),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 200) }
    )
    assert.isFalse(found.failed, fc.defaultReportMessage(found))
  })
})
