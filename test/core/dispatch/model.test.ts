/**
 * Random programs of cases, steps, parks, holds, applies, failures, stops and crashes, watched from outside, beside a
 * model that is slow and obvious: what each case comes to when nothing ever goes wrong.
 */
import { assert, it } from "@effect/vitest"
import { TestClock } from "effect/testing"
import { Clock, Effect, Schema, Stream } from "effect"
import * as fc from "fast-check"
import { Case, Dispatcher, type DispatcherEvent, Improvements } from "shiftboss"
import { FaultyStorage } from "shiftboss/testing"
import * as lives from "./lives.ts"
import { type Blow, blow } from "./lives.ts"

// -----------------------------------------------------------------------------
// programs
// -----------------------------------------------------------------------------

type Action =
  | { readonly do: "step"; readonly seconds: number; readonly reads: boolean }
  | { readonly do: "park" }
  | { readonly do: "hold"; readonly seconds: number }
  /** Fails the case, the first so many times it comes here. */
  | { readonly do: "fail"; readonly times: number }

interface Script {
  readonly actions: ReadonlyArray<Action>
  readonly difficult: boolean
}

interface Program {
  readonly scripts: ReadonlyArray<Script>
  readonly seats: number
  readonly applyAt: number
  readonly applySeconds: number
  /** Applies that fail, by the number of the call. */
  readonly failing: ReadonlyArray<number>
  readonly blows: ReadonlyArray<Blow>
}

const seconds = fc.integer({ min: 0, max: 90 })
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("step" as const), seconds, reads: fc.boolean() }) },
  { weight: 2, arbitrary: fc.constant({ do: "park" as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("hold" as const), seconds }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail" as const), times: fc.integer({ min: 1, max: 2 }) }) }
)
const programs: fc.Arbitrary<Program> = fc.record({
  scripts: fc.array(fc.record({ actions: fc.array(action, { maxLength: 6 }), difficult: fc.boolean() }), {
    minLength: 1,
    maxLength: 6
  }),
  seats: fc.integer({ min: 1, max: 3 }),
  applyAt: fc.integer({ min: 1, max: 3 }),
  applySeconds: seconds,
  failing: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 2 }),
  blows: fc.array(blow, { maxLength: 4 })
})

/** What the case comes to: its value counts its steps, and is known without running anything. */
const expected = (script: Script): string => {
  const steps = script.actions.filter((a) => a.do === "step").length
  return script.difficult ? `difficult ${steps}` : `completed ${steps}`
}

// -----------------------------------------------------------------------------
// watching
// -----------------------------------------------------------------------------

/** What is seen of a program over all its lives. */
class Watch {
  readonly broken: Array<string> = []
  /** Steps whose result the case was given: from then on they have ended. */
  readonly ended = new Set<string>()
  readonly failures = new Map<string, number>()
  applies = 0
  alive = new Set<string>()
  reading = 0
  applying = false

  /** A process died: what it had in memory is gone. */
  bury() {
    this.alive = new Set()
    this.reading = 0
    this.applying = false
  }
  expect(holds: boolean, rule: string) {
    if (!holds) this.broken.push(rule)
  }
}

const Payload = Schema.Struct({ case: Schema.String })

const workload = (program: Program, watch: Watch, isDead: () => boolean) => {
  const cases = program.scripts.map((script, index) => ({ id: `c${index}`, script }))
  /** Finalizers of a dead process run in this one all the same, and are not looked at. */
  const unlessDead = (f: () => void) => Effect.sync(() => (isDead() ? undefined : f()))
  const step = (id: string, name: string, { seconds, reads }: Extract<Action, { readonly do: "step" }>) =>
    Effect.acquireUseRelease(
      unlessDead(() => {
        watch.expect(!watch.ended.has(`${id}/${name}`), `step ${id}/${name} ran again after it had ended`)
        if (!reads) return
        watch.reading++
        watch.expect(!watch.applying, `step ${id}/${name} reads during an apply`)
      }),
      () => Effect.as(Effect.sleep(`${seconds} seconds`), 1),
      () => unlessDead(() => void (reads && watch.reading--))
    )
  const enter = (id: string, seats: number) =>
    Effect.acquireRelease(
      unlessDead(() => {
        watch.expect(!watch.alive.has(id), `case ${id} runs twice at once`)
        watch.alive.add(id)
        watch.expect(watch.alive.size <= seats, `${watch.alive.size} cases run on ${seats} seats`)
        watch.expect(!watch.applying, `case ${id} was claimed during an apply`)
      }),
      () => unlessDead(() => void watch.alive.delete(id))
    )
  return {
    cases: Effect.succeed(cases),
    train: (c: (typeof cases)[number], seat: Dispatcher.Seat<typeof Payload.Type>) =>
      Effect.gen(function* () {
        const before = yield* Dispatcher.snapshot
        const { cases: known } = yield* phases
        const woken = known.get(c.id) === "woken" || known.get(c.id) === "held"
        watch.expect(woken || before.waiting.woken === 0, `new case ${c.id} was seated before a woken one`)
        yield* enter(c.id, program.seats)
        let sum = 0
        for (const [index, action] of c.script.actions.entries()) {
          const name = `${index}`
          switch (action.do) {
            case "step":
              sum += yield* seat.step(name, { reads: action.reads }, step(c.id, name, action))
              watch.ended.add(`${c.id}/${name}`)
              break
            case "park":
              yield* seat.park(name, { case: c.id })
              break
            case "hold":
              yield* seat.hold(name, (yield* Clock.currentTimeMillis) + action.seconds * 1000)
              break
            case "fail": {
              const failures = watch.failures.get(`${c.id}/${name}`) ?? 0
              if (failures >= action.times) break
              watch.failures.set(`${c.id}/${name}`, failures + 1)
              return yield* Effect.fail("broke")
            }
          }
        }
        return c.script.difficult ? Case.difficult(`${sum}`) : Case.completed(sum)
      }),
    improve: {
      request: Payload,
      apply: (batch: Improvements.Batch<typeof Payload.Type>) =>
        Effect.acquireUseRelease(
          unlessDead(() => {
            watch.applies++
            watch.applying = true
            watch.expect(watch.reading === 0, `apply ${batch.name} overlaps a reading step`)
          }),
          () =>
            Effect.delay(
              program.failing.includes(watch.applies)
                ? Effect.fail("the edit failed")
                : Effect.succeed(Improvements.changed("v", batch.name)),
              `${program.applySeconds} seconds`
            ),
          () => unlessDead(() => void (watch.applying = false))
        )
    }
  }
}

/** Where the log says that each case is, by a fold of its own: the last event of a case decides. */
const phases = Effect.gen(function* () {
  const { history } = yield* Dispatcher.Dispatcher
  const cases = new Map<string, string>()
  const parked = new Map<string, string>()
  let batch: ReadonlyArray<string> = []
  yield* Stream.runForEach(history(), ({ event }) =>
    Effect.sync(() => {
      if (event._tag === "CaseParked") {
        parked.set(event.request, event.case)
        cases.set(event.case, "parked")
      } else if (event._tag === "CaseHeld") cases.set(event.case, "held")
      else if (event._tag === "CaseFailed") cases.set(event.case, "failed")
      else if (event._tag === "ApplyStarted") batch = event.requests
      else if (event._tag === "ApplyEnded") {
        for (const request of batch) cases.set(parked.get(request)!, "woken")
      }
    })
  )
  return { cases }
})

// -----------------------------------------------------------------------------
// running
// -----------------------------------------------------------------------------

/** After every event but for the moment of leaving: seats in use are the runs alive. */
const checkSeats = (watch: Watch) =>
  Effect.gen(function* () {
    const { seats } = yield* Dispatcher.snapshot
    const used = seats.flatMap((seat) => (seat === null ? [] : [seat.case]))
    watch.expect(
      used.toSorted().join() === [...watch.alive].toSorted().join(),
      `seats are taken by ${used}, but ${[...watch.alive]} run`
    )
  })

const live = (program: Program, watch: Watch, blow: Blow | undefined, disk: FaultyStorage.FaultyStorage) =>
  lives.live({
    disk,
    blow,
    run: (isDead) =>
      Dispatcher.run(workload(program, watch, isDead), {
        seats: program.seats,
        applyAt: program.applyAt,
        failuresInARow: Infinity,
        maxParks: Infinity
      }),
    look: checkSeats(watch),
    expect: (holds, rule) => watch.expect(holds, rule),
    ended: () => watch.bury()
  })

/** Each request is taken by exactly one apply that succeeded. */
const checkRequests = (events: ReadonlyArray<DispatcherEvent.DispatcherEvent>, watch: Watch) => {
  const taken = new Map<string, number>()
  const batches = new Map<string, ReadonlyArray<string>>()
  for (const event of events) {
    if (event._tag === "ApplyStarted") {
      watch.expect(!batches.has(event.apply), `apply ${event.apply} was begun twice under one name`)
      batches.set(event.apply, event.requests)
    }
    if (event._tag !== "ApplyEnded") continue
    for (const request of batches.get(event.apply) ?? []) taken.set(request, (taken.get(request) ?? 0) + 1)
  }
  for (const event of events) {
    if (event._tag === "CaseParked") {
      watch.expect(taken.get(event.request) === 1, `${event.request} was taken ${taken.get(event.request) ?? 0} times`)
    }
  }
}

const check = Effect.fnUntraced(function* (program: Program) {
  const watch = new Watch()
  const disk = FaultyStorage.make()
  for (const blow of program.blows) yield* live(program, watch, blow, disk)
  let summary: Dispatcher.Summary | undefined
  // Failed cases and failed applies are taken again at each start; there are only so many of them.
  for (let quiet = 0; quiet < 24; quiet++) {
    summary = yield* live(program, watch, undefined, disk)
    if (summary !== undefined && summary.failed.length === 0) break
  }
  assert.isDefined(summary, "the quiet runs end")
  assert.deepStrictEqual([summary.end._tag, summary.waiting], ["Finished", []])
  const outcomes = new Map<string, string>()
  for (const c of summary.completed) outcomes.set(c.case, `completed ${String(c.value)}`)
  for (const c of summary.difficult) outcomes.set(c.case, `difficult ${c.reason}`)
  const wanted = new Map(program.scripts.map((script, index) => [`c${index}`, expected(script)]))
  assert.deepStrictEqual(Object.fromEntries([...outcomes].toSorted()), Object.fromEntries([...wanted].toSorted()))
  checkRequests(yield* lives.eventsOn(disk), watch)
  assert.deepStrictEqual(watch.broken, [])
})

it("whatever stops, fails or crashes: nothing runs twice, nothing is lost, and it ends as if nothing had happened", async () => {
  const property = fc.asyncProperty(programs, (program) =>
    Effect.runPromise(Effect.provide(check(program), TestClock.layer()))
  )
  const report = await fc.check(property, { numRuns: Number(process.env["MODEL_RUNS"] ?? 100) })
  assert.isFalse(report.failed, fc.defaultReportMessage(report))
}, 120_000)
