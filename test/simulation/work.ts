/**
 * The scenario of everything together: cases with steps, parks, holds and turns, applies and rechecks, and schedules beside
 * them, through crashes and faults; then in quiet, where all of it has to come to its end.
 */
import assert from "node:assert/strict"
import { Clock, Effect, Exit, Layer, Schema, Stream } from "effect"
import {
  AgentLauncher,
  Case,
  Dispatcher,
  Failure,
  RecheckRule,
  type Rechecks,
  RetryPolicy,
  RetryRules,
  ScheduleJournal
} from "shiftboss"
import { ScriptedLauncher, Simulation } from "shiftboss/testing"
import { Host, type Payload, type Script } from "./host.ts"
import { type Mutant, persistently, Room } from "./lives.ts"
import * as schedules from "./schedules.ts"

export const marks = [
  "apply called again",
  "case resumed",
  "hold released",
  "turn answered after a restart",
  "agent hung",
  "regression repaired",
  "recheck regressed",
  "control run",
  "run stopped",
  "run stopped by another process",
  "log lost in mid-run",
  "crash in recovery",
  "torn end cut off",
  ...schedules.marks
] as const

const Payload = Schema.Struct({ case: Schema.String })
/** What one life of the program knows of its world. */
interface World {
  readonly host: Host
  readonly room: Room
  readonly options: Dispatcher.Options & { readonly seats: number }
}

// -----------------------------------------------------------------------------
// the workload
// -----------------------------------------------------------------------------

const act = Effect.fnUntraced(function* (
  { host }: World,
  life: number,
  seat: Dispatcher.Seat<Payload>,
  name: string,
  action: Script["actions"][number]
) {
  const key = `${seat.info.key} ${name}`
  switch (action.do) {
    case "step": {
      if (action.fails && host.fails("step.fails", 0.5)) return yield* Effect.fail("the step broke")
      yield* seat.step(name, { reads: action.reads }, host.step(life, key, action.seconds, action.reads))
      host.stepEnded(key)
      return 1
    }
    case "park": {
      host.woken(yield* seat.park(name, { case: seat.info.case }))
      return 0
    }
    case "hold": {
      const until = (yield* Clock.currentTimeMillis) + action.seconds * 1000
      yield* seat.hold(name, until)
      yield* Simulation.mark("hold released")
      return 0
    }
    case "turn": {
      const done = yield* seat.turn(name, { prompt: `do ${key}` })
      host.turnAnswered(done.turnId)
      if (life > 1) yield* Simulation.mark("turn answered after a restart")
      return 0
    }
  }
})

const workload = (world: World, life: number) => {
  const { host, options } = world
  return {
    cases: Effect.succeed(host.scripts),
    version: Effect.sync(() => host.version),
    train: (script: Script, seat: Dispatcher.Seat<Payload>) =>
      Effect.gen(function* () {
        yield* host.enter(life, script.id, options.seats)
        let steps = 0
        for (const [index, action] of script.actions.entries())
          steps += yield* act(world, life, seat, `${index}`, action)
        return Case.completed(steps)
      }),
    improve: {
      request: Payload,
      apply: (batch: Parameters<Host["apply"]>[1]) => host.apply(life, batch),
      recheck: (one: Rechecks.Try<Script>, seat: Dispatcher.Seat) =>
        Effect.gen(function* () {
          yield* host.enter(life, one.case.id, options.seats)
          const key = `${seat.info.key} run`
          yield* seat.step("run", host.step(life, key, 30, false))
          host.stepEnded(key)
          return host.grade(one)
        }),
      controls: true
    }
  }
}

// -----------------------------------------------------------------------------
// agents
// -----------------------------------------------------------------------------

const kinds = [
  "ServerError",
  "Network",
  "RateLimited",
  "StreamCut",
  "Interrupted",
  "SessionLost",
  "Throttled",
  "Unknown"
] as const satisfies ReadonlyArray<Failure.FailureKind>

/** An agent that answers, fails, dies or hangs, as the seed says. */
const agent = ({ host }: World) => {
  const { simulator } = host
  return ScriptedLauncher.layer((attempt) =>
    Effect.gen(function* () {
      host.launched(attempt)
      // Silent for so long, now and then, that it counts as hung; but not in quiet.
      yield* Effect.sleep(simulator.pickUnsafe("agent.seconds", host.isCalm ? 60 : 120) * 1000)
      if (host.fails("agent.hangs", 0.1)) {
        simulator.markUnsafe("agent hung")
        return yield* Effect.never
      }
      if (host.fails("agent.dies", 0.05)) return yield* Effect.die("the agent crashed")
      if (!host.fails("agent.fails", 0.3)) return AgentLauncher.succeeded(`done: ${attempt.prompt}`)
      const kind = kinds[simulator.pickUnsafe("agent.kind", kinds.length)] ?? "Unknown"
      const resetAt = kind === "RateLimited" ? (yield* Clock.currentTimeMillis) + 120_000 : null
      return AgentLauncher.failed(Failure.make(kind, `it was ${kind}`, { resetAt }))
    })
  )
}

// -----------------------------------------------------------------------------
// one life
// -----------------------------------------------------------------------------

/** The usual ones in less time: a dispatcher looks once a second whether it is to stop, and each look is simulated. */
const rules: RetryRules.RetryRules = {
  remedies: { Network: RetryRules.retry("1 minute", "4 minutes"), Throttled: RetryRules.retry("1 minute") },
  silence: "90 seconds",
  unknownReset: ["2 minutes", "5 minutes"],
  resetOutlived: ["1 minute", "3 minutes"],
  resetBuffer: "10 seconds",
  resetJitter: "20 seconds"
}

const layerOf = (world: World, mutant: WorkMutant) => {
  const log = mutant.turns?.(world.room.lives) ?? "turns"
  const policy = RetryPolicy.layerWith({ log, keepTurns: 5, rules, probeSilence: "20 seconds" })
  return Layer.mergeAll(
    Dispatcher.layer,
    schedules.layer(world.host, mutant.workflows),
    policy.pipe(Layer.provide(agent(world)))
  )
}

/** One process: it works until all is done, is stopped now and then, and lets the schedules go on for a while. */
const live = (world: World, mutant: WorkMutant, life: number) =>
  Effect.gen(function* () {
    const { host } = world
    if (life > 1) yield* schedules.noteSlotPending
    const journal = yield* ScheduleJournal.ScheduleJournal
    yield* Effect.forkScoped(journal.run)
    yield* Effect.forkScoped(schedules.hostOfRuns(host))
    yield* Effect.forkScoped(schedules.person(host))
    yield* Effect.forkScoped(schedules.runInProcess(host, life))
    const stops = host.fails("stop", 0.2)
    if (stops) {
      const seconds = host.simulator.pickUnsafe("stop.seconds", 300)
      yield* Effect.forkScoped(Effect.andThen(Effect.sleep(seconds * 1000), Dispatcher.stop))
    }
    const summary = yield* Dispatcher.run(workload(world, life), world.options)
    if (summary.end._tag === "Stopped") yield* Simulation.mark(stops ? "run stopped" : "run stopped by another process")
    yield* Effect.sleep((yield* Simulation.pick("idle.seconds", 1800)) * 1000)
    return summary
  }).pipe(
    Effect.provide(layerOf(world, mutant)),
    Effect.scoped,
    // What a stop did not wait for ends once the disk has answered, and only then nothing is left running. In short sleeps,
    // of which a process that stands still for ten minutes sleeps through one only.
    Effect.ensuring(Effect.repeat(Effect.sleep("1 minute"), { times: 10 }))
  )

// -----------------------------------------------------------------------------
// the end
// -----------------------------------------------------------------------------

const isWhole = (host: Host, summary: Dispatcher.Summary<number>) =>
  summary.end._tag === "Finished" &&
  summary.completed.length === host.scripts.length &&
  summary.failed.length + summary.waiting.length === 0

/** What each case comes to when nothing ever goes wrong: its value counts its steps. */
const expected = ({ actions }: Script) => actions.filter((action) => action.do === "step").length

/** Reads all that is left, and holds it against what was seen. */
const checkLogs = Effect.fnUntraced(function* ({ host }: World) {
  const dispatcher = yield* Dispatcher.Dispatcher
  const events = yield* Stream.runCollect(Stream.map(dispatcher.history(), (entry) => entry.event))
  host.checkApplies(events)
  const { counts } = yield* dispatcher.snapshot
  assert.strictEqual(counts.completed, host.scripts.length)
  assert.strictEqual(
    new Set(events.flatMap((e) => (e._tag === "CaseCompleted" ? [e.case] : []))).size,
    counts.completed
  )
  const steps = events.flatMap((event) => (event._tag === "StepEnded" ? [`${event.case} ${event.step}`] : []))
  assert.strictEqual(new Set(steps).size, steps.length, "no step ended twice")
  if (events.some(({ _tag }) => _tag === "CaseResumed")) yield* Simulation.mark("case resumed")
  if (events.some((event) => event._tag === "RecheckEnded" && event.outcome._tag === "Regressed")) {
    yield* Simulation.mark("recheck regressed")
  }
  yield* schedules.check(host)
})

// -----------------------------------------------------------------------------
// the scenario
// -----------------------------------------------------------------------------

/** What is put between the parts of one life from outside, besides what is put under its logs. */
export interface WorkMutant extends Mutant {
  readonly turns?: (life: number) => string
  readonly workflows?: (workflows: ScheduleJournal.Workflows["Service"]) => ScheduleJournal.Workflows["Service"]
}

const optionsOf = Effect.gen(function* () {
  return {
    seats: 1 + (yield* Simulation.pick("seats", 3)),
    applyAt: 1 + (yield* Simulation.pick("applyAt", 3)),
    rechecks: yield* Simulation.pick("rechecks", 3),
    recheckRule: (yield* Simulation.chance("controls", 0.5)) ? RecheckRule.controlled() : RecheckRule.allFail(2),
    failuresInARow: Infinity,
    maxParks: Infinity
  }
})

/** Everything together, through faults and then in quiet. */
export const work = (mutant: WorkMutant = {}) =>
  Effect.gen(function* () {
    const simulator = yield* Simulation.Simulator
    const room = new Room(simulator, mutant)
    const host = new Host(simulator)
    host.mayPause = room.mayPause
    const world: World = { host, room, options: yield* optionsOf }
    room.onEnd.push((life) => host.bury(life))
    for (let lives = yield* Simulation.pick("lives", 8); lives > 0; lives--) {
      const contended = yield* Simulation.chance("contended", 0.25)
      if (contended) host.mayOverlap = true
      const processes = [spend(world, mutant, "this host")]
      if (contended) processes.push(spend(world, mutant, "another host"))
      if (host.fails("stop.outside", 0.2)) processes.push(stopFromOutside(world))
      yield* Effect.all(processes, { concurrency: "unbounded" })
      checkWorld(world)
      yield* Effect.sleep((yield* Simulation.pick("down.seconds", 3600)) * 1000)
    }
    room.calm()
    host.isCalm = true
    host.workflows.manner = "accepting"
    const summary = yield* quiet(world, mutant)
    for (const { id, actions } of host.scripts) {
      const completed = summary.completed.find((one) => one.case === id)
      assert.strictEqual(completed?.value, expected({ id, actions }), id)
    }
    checkWorld(world)
  })

const checkWorld = ({ host, room }: World) => {
  host.checkRuns()
  assert.deepStrictEqual([...host.broken, ...room.logs.broken], [])
}

const spend = (world: World, mutant: WorkMutant, name: string) =>
  Effect.gen(function* () {
    const life = yield* world.room.start(name, (id) => persistently(live(world, mutant, id)))
    yield* world.room.attend(life, "10 minutes")
  })

/** Another process asks for the stop of whatever runs then. */
const stopFromOutside = ({ host, room }: World) =>
  Effect.gen(function* () {
    yield* Effect.sleep(host.simulator.pickUnsafe("stop.outside.seconds", 300) * 1000)
    const life = yield* room.start("this host", () => Effect.provide(Dispatcher.requestStop, Dispatcher.layer))
    yield* room.attend(life, "1 minute")
  })

/** So many starts have to be enough when nothing goes wrong any more: a case that failed is taken up once in each. */
const starts = 3

const quiet = Effect.fnUntraced(function* (world: World, mutant: WorkMutant) {
  const { host, room } = world
  let last: unknown
  for (let start = 0; start < starts; start++) {
    const life = yield* room.start("this host", (id) =>
      Effect.tap(persistently(live(world, mutant, id)), () => Effect.provide(checkWhenWhole(world), Dispatcher.layer))
    )
    const exit = yield* room.attend(life, "2 days")
    if (exit !== undefined && Exit.isSuccess(exit) && isWhole(host, exit.value)) return exit.value
    last = exit
  }
  return assert.fail(`in quiet it does not come to its end: ${JSON.stringify(last)}`)
})

const checkWhenWhole = (world: World) =>
  Effect.gen(function* () {
    const { counts, waiting } = yield* Dispatcher.snapshot
    if (counts.failed + waiting.parked + waiting.held === 0 && counts.completed === world.host.scripts.length) {
      yield* checkLogs(world)
    }
  })
