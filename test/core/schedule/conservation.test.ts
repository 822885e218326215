import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema } from "effect"
import * as fc from "fast-check"
import { ScheduleJournal } from "shiftboss"
import { ScriptedWorkflows, WallClock } from "shiftboss/testing"
import { day, hour, makeDisk, minute, revive, start } from "./kit.ts"
import { Account } from "./law.ts"
import { type Cadence, type Command, programs } from "./programs.ts"

const id = "nightly"
const lateWithin = 3 * minute

interface Declared {
  readonly cadence: Cadence | null
  readonly failuresInARow: number
}

const declaring = ({ cadence, failuresInARow }: Declared): ReadonlyArray<ScheduleJournal.Schedule> => {
  if (cadence === null) return []
  const when = typeof cadence === "number" ? { everySeconds: cadence } : cadence
  return [{ workflowId: id, ...when, lateWithin, failuresInARow }]
}

// -----------------------------------------------------------------------------
// running a program
// -----------------------------------------------------------------------------

/** A process over a disk and a host that outlive it. Its loop runs when it is told to. */
const makeLife = Effect.fnUntraced(function* (clock: WallClock.WallClock, first: Declared) {
  const disk = yield* makeDisk
  const host = ScriptedWorkflows.make()
  const begin = (declared: Declared) => start(disk, host, declaring(declared), { hostTimeout: "3 seconds" })
  const hasCrashed = Effect.suspend(() => Deferred.isDone(disk.crashed))
  let declared = first
  let process = yield* begin(declared)
  let loop: Fiber.Fiber<unknown> | undefined

  const stopLoop = Effect.suspend(() => (loop === undefined ? Effect.void : Fiber.interrupt(loop)))
  const startLoop = Effect.map(
    Effect.suspend(() => Effect.forkChild(Effect.exit(process.journal.run))),
    (fiber) => {
      loop = fiber
    }
  )

  /** Lets time pass until it ends or the process dies: a host that hangs is waited for. */
  const endOf = Effect.fnUntraced(function* (fiber: Fiber.Fiber<unknown>) {
    for (let second = 0; second < 120; second++) {
      yield* clock.pass(0)
      if (fiber.pollUnsafe() !== undefined || (yield* hasCrashed)) return yield* Fiber.interrupt(fiber)
      yield* clock.pass("1 second")
    }
    throw new Error("a request did not come to an end")
  })

  const restart = Effect.fnUntraced(function* (next: Declared = declared) {
    disk.fault = undefined
    yield* stopLoop
    yield* revive(disk)
    yield* endOf(yield* Effect.forkChild(process.stop))
    declared = next
    process = yield* begin(declared)
    if (loop !== undefined) yield* startLoop
  })

  return {
    disk,
    host,
    restart,
    get journal() {
      return process.journal
    },
    get isDeclared() {
      return declared.cadence !== null
    },
    get isLooping() {
      return loop !== undefined
    },
    toggleLoop: Effect.suspend(() =>
      loop === undefined
        ? startLoop
        : Effect.andThen(
            stopLoop,
            Effect.sync(() => (loop = undefined))
          )
    ),
    /** Makes a request, which may be cut off, and starts the next process when this one dies. */
    request: Effect.fnUntraced(function* (effect: Effect.Effect<unknown, unknown>, cutAfter?: number) {
      const fiber = yield* Effect.forkChild(Effect.exit(effect))
      for (let turn = 0; turn < (cutAfter ?? 0); turn++) yield* Effect.yieldNow
      if (cutAfter !== undefined) yield* Fiber.interrupt(fiber)
      yield* endOf(fiber)
      if (yield* hasCrashed) yield* restart()
    })
  }
})

type Life = Effect.Success<ReturnType<typeof makeLife>>

/** Moves what the journal does not decide. */
const prepare = Effect.fnUntraced(function* (clock: WallClock.WallClock, life: Life, command: Command) {
  const { host, disk } = life
  switch (command.do) {
    case "pass":
      // A loop looks at the clock every half minute: years of it would be too many looks for a test.
      return yield* life.isLooping && command.millis > 5 * hour
        ? clock.suspend(command.millis)
        : clock.pass(command.millis)
    case "suspend":
      return yield* clock.suspend(command.millis)
    case "set":
      return yield* clock.set((yield* clock.currentTimeMillis) + command.millis)
    case "host":
      host.manner = command.manner
      return
    case "end":
      return host.end(command.ending)
    case "runFails":
      host.endsAtOnce = host.endsAtOnce === undefined ? "failed" : undefined
      return
    case "fault":
      disk.fault = command.fault
      return
    case "loop":
      return yield* life.toggleLoop
    case "restart":
      return yield* life.restart(command)
  }
})

const requestOf = ({ journal }: Life, command: Command): Effect.Effect<unknown, unknown> => {
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

// -----------------------------------------------------------------------------
// what has to hold
// -----------------------------------------------------------------------------

const isProgress = Schema.is(ScheduleJournal.ScheduleProgress)

const outcomeOf = (explanation: ScheduleJournal.Explanation) => {
  if (explanation._tag === "Skipped") return `skipped: ${explanation.reason}`
  return explanation._tag === "Ran" ? `ran: ${explanation.ending}` : explanation._tag.toLowerCase()
}

/** Absent once the journal was compacted, as it is after hundreds of slots: the law is read off each entry there was. */
const readAccount = ({ disk }: Life) =>
  Effect.map(disk.entries(), (entries) =>
    entries.some(({ _tag }) => _tag === "ScheduleSaved")
      ? undefined
      : new Account(
          entries.filter((entry) => entry.workflowId === id),
          lateWithin
        )
  )

/** What the journal says is what its entries say, and no state is one that its own schema refuses. */
const checkAgreement = Effect.fnUntraced(function* (life: Life) {
  const { journal, host } = life
  const account = yield* readAccount(life)
  if (account === undefined) return
  const all = yield* journal.list
  assert.deepStrictEqual(all, account.generation === 0 ? [] : [account.summary(id)])
  for (const summary of all) assert.isTrue(isProgress({ ...summary, nextAt: summary.nextAt ?? 0, recent: [] }))
  for (const [runId, ending] of account.endings) assert.strictEqual(host.outcomes.get(runId), ending)
  // One that is pending is removed only when that is settled, and cannot be asked about until then.
  if (!life.isDeclared) return
  const next = account.slots.size + 1
  const upcoming = account.isFiring ? [0, 1, 2].map((further) => account.dueAt(next + further)) : []
  assert.deepStrictEqual(yield* journal.preview(id, 3), upcoming)
  for (let slot = Math.max(1, next - 5); slot <= next; slot++) {
    assert.strictEqual(outcomeOf(yield* journal.explain(id, slot)), account.outcomeOf(slot))
  }
})

const checkHost = ({ host }: Life) => {
  const ids = host.submitted.map(({ runId }) => runId)
  assert.strictEqual(new Set(ids).size, ids.length, "the host saw a run twice")
}

/** At rest, with a host that answers, nothing is pending and no slot that was due is left. */
const checkAtRest = Effect.fnUntraced(function* (clock: WallClock.WallClock, life: Life) {
  life.host.manner = "accepting"
  yield* life.restart()
  for (const _ of [1, 2]) {
    yield* life.request(life.journal.tick)
    yield* clock.pass("1 minute")
  }
  yield* life.request(life.journal.tick)
  yield* checkAgreement(life)
  checkHost(life)
  const account = yield* readAccount(life)
  if (account === undefined) return
  assert.isUndefined(account.pending)
  if (account.isFiring) assert.isAbove(account.nextAt, yield* clock.currentTimeMillis)
  const started = life.host.submitted.flatMap(({ slot, runId }) => (slot === null ? [] : [runId]))
  const ran = [...account.slots].flatMap(([slot, outcome]) => (outcome === "ran" ? [account.runIds.get(slot)] : []))
  assert.sameMembers(started, ran)
})

const runProgram = Effect.fnUntraced(function* (first: Cadence, program: ReadonlyArray<Command>) {
  const clock = yield* WallClock.make({ start: 40_000 * day })
  const run = Effect.gen(function* () {
    const life = yield* makeLife(clock, { cadence: first, failuresInARow: 3 })
    for (const command of program) {
      yield* prepare(clock, life, command)
      yield* life.request(requestOf(life, command), command.cutAfter)
      checkHost(life)
      if (life.disk.fault !== undefined) continue
      yield* life.request(life.journal.tick)
      yield* checkAgreement(life)
    }
    yield* checkAtRest(clock, life)
  })
  yield* Effect.provide(run, clock.layer)
})

describe("every slot is exactly one of ran, skipped and pending", () => {
  it("whatever happens to the host, the clock, the storage and the process", { timeout: 600_000 }, async () => {
    const found = await fc.check(
      fc.asyncProperty(programs, ({ first, commands }) => Effect.runPromise(runProgram(first, commands))),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 120), ...JSON.parse(process.env["PROPERTY"] ?? "{}") }
    )
    assert.isFalse(found.failed, `${String(found.errorInstance)}\n${fc.defaultReportMessage(found)}`)
  })
})
