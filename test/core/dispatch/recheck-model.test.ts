/**
 * Random programs of applies and rechecks under stops and crashes, watched from outside, beside a model that is slow and
 * obvious: it judges every recheck again from nothing but the events of the log.
 */
import { assert, it } from "@effect/vitest"
import { TestClock } from "effect/testing"
import { Clock, Effect, Schema } from "effect"
import * as fc from "fast-check"
import { Case, Dispatcher, type DispatcherEvent, Improvements, RecheckRule, type Rechecks, Verdict } from "shiftboss"
import { FaultyStorage } from "shiftboss/testing"
import { seeded } from "../recheck/support.ts"
import { type Blow, blow, eventsOn, live } from "./lives.ts"

// -----------------------------------------------------------------------------
// programs
// -----------------------------------------------------------------------------

interface Program {
  readonly cases: number
  /** Cases that park, each so often: every park makes an apply sooner or later. */
  readonly askers: ReadonlyArray<number>
  readonly seats: number
  readonly applyAt: number
  readonly rechecks: number
  readonly requestsPerCase: number
  readonly rule: "allFail" | "controlled"
  /** How often a try passes, with the environment up. */
  readonly rate: number
  /** Applies that break everything, and those during which everything fails. */
  readonly broken: ReadonlyArray<string>
  readonly down: ReadonlyArray<string>
  readonly seed: number
  readonly blows: ReadonlyArray<Blow>
}

const applies = fc.array(fc.constantFrom("001", "002", "003"), { maxLength: 1 })
const programs: fc.Arbitrary<Program> = fc.record({
  cases: fc.integer({ min: 1, max: 6 }),
  askers: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 3 }),
  seats: fc.integer({ min: 1, max: 3 }),
  applyAt: fc.integer({ min: 1, max: 2 }),
  rechecks: fc.integer({ min: 1, max: 6 }),
  requestsPerCase: fc.integer({ min: 0, max: 2 }),
  rule: fc.constantFrom("allFail" as const, "controlled" as const),
  rate: fc.constantFrom(0.5, 0.8, 1),
  broken: applies,
  down: applies,
  seed: fc.integer(),
  blows: fc.array(blow, { maxLength: 4 })
})

const ruleOf = (program: Program) => (program.rule === "allFail" ? RecheckRule.allFail(2) : RecheckRule.controlled())

// -----------------------------------------------------------------------------
// watching
// -----------------------------------------------------------------------------

const Payload = Schema.Struct({ case: Schema.String })
type Payload = typeof Payload.Type

class Watch {
  readonly brokenRules: Array<string> = []
  /** Steps whose result the try was given, by the key of the try. */
  readonly ended = new Set<string>()
  alive = new Set<string>()
  expect(holds: boolean, rule: string) {
    if (!holds) this.brokenRules.push(rule)
  }
}

/** What a try says depends on what it is and nothing else, so that a run after a crash finds the same world. */
const saidBy = (program: Program, one: Rechecks.Try, key: string): Verdict.Verdict<Payload> | "error" => {
  let mixed = program.seed
  for (const char of key) mixed = (Math.imul(mixed, 31) + char.charCodeAt(0)) | 0
  const chance = seeded(mixed)
  const noise = chance()
  if (noise < 0.04) return "error"
  if (noise < 0.08) return Verdict.void("nothing to grade by")
  if (noise < 0.14) return Verdict.unread("no JSON")
  const fails = program.down.includes(one.apply) || (one.arm === "new" && program.broken.includes(one.apply))
  return fails || chance() > program.rate ? Verdict.wrong({ case: one.case.id }) : Verdict.right()
}

const workload = (program: Program, watch: Watch, isDead: () => boolean) => {
  const cases = [
    ...Array.from({ length: program.cases }, (_, index) => ({ id: `c${index}`, parks: 0 })),
    ...program.askers.map((parks, index) => ({ id: `ask${index}`, parks }))
  ]
  const unlessDead = (f: () => void) => Effect.sync(() => (isDead() ? undefined : f()))
  const alone = (id: string) =>
    Effect.acquireRelease(
      unlessDead(() => {
        watch.expect(!watch.alive.has(id), `${id} has two seats`)
        watch.alive.add(id)
        watch.expect(watch.alive.size <= program.seats, `${watch.alive.size} run on ${program.seats} seats`)
      }),
      () => unlessDead(() => void watch.alive.delete(id))
    )
  const step = (key: string, name: string) =>
    Effect.andThen(
      unlessDead(() => watch.expect(!watch.ended.has(`${key} ${name}`), `${key} ${name} ran again after it had ended`)),
      Effect.sleep("5 seconds")
    )
  return {
    cases: Effect.succeed(cases),
    train: (c: (typeof cases)[number], seat: Dispatcher.Seat<Payload>) =>
      Effect.gen(function* () {
        yield* alone(c.id)
        for (let n = 1; n <= c.parks; n++) yield* seat.park(`p${n}`, { case: c.id })
        yield* seat.step("work", Effect.sleep("20 seconds"))
        return Case.completed()
      }),
    improve: {
      request: Payload,
      controls: program.rule === "controlled",
      apply: (batch: Improvements.Batch<Payload>) =>
        Effect.delay(Effect.succeed(Improvements.changed(batch.version ?? "v0", `v${batch.name}`)), "5 seconds"),
      recheck: (one: Rechecks.Try, seat: Dispatcher.Seat) =>
        Effect.gen(function* () {
          const { waiting } = yield* Dispatcher.snapshot
          watch.expect(waiting.woken === 0, `a recheck of ${one.case.id} was seated before a woken case`)
          yield* alone(one.case.id)
          const { key } = seat.info
          // A grading done again is of the same run.
          const run = key.replace(/\.\d+$/, "")
          yield* seat.step("run", step(run, "run"))
          watch.ended.add(`${run} run`)
          if (one.try % 2 === 0) yield* seat.hold("quota", (yield* Clock.currentTimeMillis) + 20_000)
          const graded = yield* seat.step("grade", Effect.as(step(key, "grade"), key))
          watch.expect(graded === key, `the grading of ${graded} was taken for that of ${key}`)
          watch.ended.add(`${key} grade`)
          const said = saidBy(program, one, key)
          return said === "error" ? yield* Effect.fail("the sandbox broke") : said
        })
    }
  }
}

// -----------------------------------------------------------------------------
// the model
// -----------------------------------------------------------------------------

type Event = DispatcherEvent.DispatcherEvent
type Ended = Extract<Event, { readonly _tag: "RecheckEnded" }>

/** All tries of a recheck that ended. Those of before it moved to another apply did not count. */
const triesOf = (events: ReadonlyArray<Event>, ended: Ended) =>
  events
    .filter((event) => event._tag === "TryEnded")
    .filter((event) => event.case === ended.case && event.apply === ended.apply)

/** What is known of the case before: what it passed and failed in rechecks that were not void, as the reference says. */
const historyBefore = (events: ReadonlyArray<Event>, ended: Ended) => {
  const known = { passed: 1, failed: 0 }
  for (const event of events.slice(0, events.indexOf(ended))) {
    if (event._tag !== "RecheckEnded" || event.case !== ended.case || event.outcome._tag === "Void") continue
    for (const { arm, outcome } of triesOf(events, event)) {
      if (arm === "new" && event.outcome._tag === "Regressed") continue
      if (outcome === "pass") known.passed++
      if (outcome === "failure") known.failed++
    }
  }
  return known
}

const judgedAgain = (events: ReadonlyArray<Event>, ended: Ended, rule: RecheckRule.RecheckRule) => {
  const tries = triesOf(events, ended)
  const count = (arm: RecheckRule.Arm, outcome: string) =>
    tries.filter((one) => one.arm === arm && one.outcome === outcome).length
  const { passed, failed } = historyBefore(events, ended)
  const lastCounted = tries.findLastIndex(({ outcome }) => outcome === "pass" || outcome === "failure")
  return RecheckRule.verdict(
    {
      earlierPassed: passed,
      earlierFailed: failed,
      newPassed: count("new", "pass"),
      newFailed: count("new", "failure"),
      controlPassed: count("control", "pass"),
      controlFailed: count("control", "failure"),
      voids: tries.length - 1 - lastCounted
    },
    rule
  )
}

const checkOutcomes = (program: Program, events: ReadonlyArray<Event>, watch: Watch) => {
  const rule = ruleOf(program)
  const sent = new Map<string, number>()
  for (const event of events) {
    if (event._tag !== "RecheckEnded") continue
    const { outcome } = event
    const name = `${event.case} of ${event.apply}`
    const again = judgedAgain(events, event, rule)
    const together = events.some((other) => other._tag === "BatchJudged" && other.apply === event.apply)
    const isAgreed = outcome._tag === "Void" && outcome.why === "case-changed" ? true : again._tag === outcome._tag
    watch.expect(together || isAgreed, `${name} is ${outcome._tag}, but by its tries ${again._tag}`)
    if (triesOf(events, event).some((one) => one.arm === "new" && one.outcome === "pass")) {
      watch.expect(outcome._tag === "Passed", `${name} passed a try on the new version and is ${outcome._tag}`)
    }
    if (outcome._tag !== "Regressed" || outcome.request === null) continue
    sent.set(event.case, (sent.get(event.case) ?? 0) + 1)
    watch.expect(sent.get(event.case)! <= program.requestsPerCase, `${name} asked once too often`)
  }
}

/** Queued once, ended once, each request taken once, nothing of a recheck after its end, and none begun during an apply. */
const checkLives = (events: ReadonlyArray<Event>, watch: Watch) => {
  const open = new Map<string, string>()
  const requested = new Set<string>()
  const taken = new Map<string, number>()
  let batch: ReadonlyArray<string> = []
  let applying: string | undefined
  for (const event of events) {
    switch (event._tag) {
      case "RecheckStarted":
        watch.expect(applying === undefined, `a recheck of ${event.case} was begun during apply ${applying}`)
        break
      case "RechecksQueued":
        for (const one of event.cases) {
          watch.expect(!open.has(one.case), `${one.case} was queued with a recheck open`)
          open.set(one.case, event.apply)
        }
        break
      case "RecheckMoved":
        watch.expect(open.get(event.case) === event.apply, `${event.case} moved from where it was not`)
        open.set(event.case, event.to)
        break
      case "TryEnded":
        watch.expect(open.get(event.case) === event.apply, `${event.case} was tried after its end`)
        break
      case "RecheckEnded":
        watch.expect(open.get(event.case) === event.apply, `${event.case} of ${event.apply} ended twice`)
        open.delete(event.case)
        if (event.outcome._tag === "Regressed" && event.outcome.request !== null) requested.add(event.outcome.request)
        break
      case "ApplyStarted":
        batch = event.requests
        applying = event.apply
        break
      case "ApplyEnded":
        applying = undefined
        for (const request of batch) taken.set(request, (taken.get(request) ?? 0) + 1)
    }
  }
  watch.expect(open.size === 0, `${[...open.keys()]} are left open`)
  for (const request of requested)
    watch.expect(taken.get(request) === 1, `${request} was taken ${taken.get(request)} times`)
}

const check = Effect.fnUntraced(function* (program: Program) {
  const watch = new Watch()
  const disk = FaultyStorage.make()
  const life = (blow: Blow | undefined) =>
    live({
      disk,
      blow,
      run: (isDead) =>
        Dispatcher.run(workload(program, watch, isDead), {
          seats: program.seats,
          applyAt: program.applyAt,
          rechecks: program.rechecks,
          requestsPerCase: program.requestsPerCase,
          seed: program.seed,
          failuresInARow: Infinity
        }),
      expect: (holds, rule) => watch.expect(holds, rule),
      ended: () => {
        watch.alive = new Set()
      }
    })
  for (const blow of program.blows) yield* life(blow)
  const summary = yield* life(undefined)
  assert.deepStrictEqual([summary?.end._tag, summary?.waiting, summary?.failed], ["Finished", [], []])
  const events = yield* eventsOn(disk)
  checkLives(events, watch)
  checkOutcomes(program, events, watch)
  assert.deepStrictEqual(watch.brokenRules, [])
})

it("whatever stops or crashes: every recheck is judged by its tries, once, and no step of it is run again", async () => {
  const property = fc.asyncProperty(programs, (program) =>
    Effect.runPromise(Effect.provide(check(program), TestClock.layer()))
  )
  const report = await fc.check(property, { numRuns: Number(process.env["MODEL_RUNS"] ?? 60) })
  assert.isFalse(report.failed, fc.defaultReportMessage(report))
}, 120_000)
