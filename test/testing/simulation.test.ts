import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Layer, Random, Ref } from "effect"
import { Case, Dispatcher, Storage } from "shiftboss"
import { Simulation } from "shiftboss/testing"

/** Where a fiber can be pre-empted. Not at `Effect.void`: what is there already takes no operation. */
const operation = Effect.sync(() => undefined)

/** Two that read, wait for nobody, and write: an update is lost only when one is pre-empted in between. */
const racy = Effect.gen(function* () {
  const count = yield* Ref.make(0)
  const worker = Effect.gen(function* () {
    for (let round = 0; round < 5; round++) {
      const seen = yield* Ref.get(count)
      yield* operation
      yield* Ref.set(count, seen + 1)
    }
  })
  yield* Effect.all([worker, worker], { concurrency: "unbounded" })
  assert.strictEqual(yield* Ref.get(count), 10)
})

/** A lease that two check before either takes it, behind a lot of other work. */
const leased = Effect.gen(function* () {
  let holder: string | undefined
  const taken: Array<string> = []
  const worker = Effect.fnUntraced(function* (id: string) {
    yield* Effect.sleep(`${yield* Random.nextIntBetween(1, 4)} seconds`)
    for (let noise = 0; noise < 40; noise++) yield* operation
    if (holder === undefined) {
      yield* operation
      holder = id
      taken.push(id)
    }
  })
  yield* Effect.forEach(["a", "b", "c"], worker, { concurrency: "unbounded" })
  assert.strictEqual(taken.length, 1)
})

const failureOf = <A, E>(exit: Exit.Exit<A, E>) => (Exit.isFailure(exit) ? exit.cause.reasons.map(String).join() : "")

describe("a simulation", () => {
  it("runs a program of years synchronously, each sleeper at its time", () => {
    const program = Effect.gen(function* () {
      const start = yield* Clock.currentTimeMillis
      const fiber = yield* Effect.forkChild(Effect.sleep("400 days"))
      yield* Effect.sleep("365 days")
      assert.isUndefined(fiber.pollUnsafe())
      return (yield* Clock.currentTimeMillis) - start
    })
    const run = Effect.runSync(Simulation.run(program, 1))
    assert.deepStrictEqual(run.exit, Exit.succeed(365 * 86_400_000))
  })

  it("does the same under the same seed, and something else under others", () => {
    const program = Effect.andThen(Effect.exit(leased), Random.next)
    const runs = [1, 2, 3, 4, 5].map((seed) => Effect.runSync(Simulation.run(program, seed)))
    for (const run of runs) {
      const again = Effect.runSync(Simulation.run(program, run.seed))
      assert.deepStrictEqual([again.trace, again.steps, again.replay], [run.trace, run.steps, run.replay])
      assert.deepStrictEqual(again.exit, run.exit)
    }
    assert.strictEqual(new Set(runs.map((run) => run.trace)).size, 5)
  })

  it("finds what only an unlucky order shows, and says how to see just that again", () => {
    for (const program of [racy, leased]) {
      const error = Effect.runSync(Effect.flip(Simulation.check(program, { seeds: 300 })))
      assert(error._tag === "Falsified")
      assert.include(error.message, `seed ${error.seed} fails: expected`)
      assert.include(error.message, `{ replay: ${JSON.stringify(error.replay)} }`)
      assert.isAtMost(error.decisions.left, 3, error.replay)
      const replayed = Effect.runSync(Effect.flip(Simulation.check(program, { replay: error.replay })))
      assert(replayed._tag === "Falsified")
      assert.strictEqual(replayed.replay, error.replay)
      assert.strictEqual(String(replayed.cause), String(error.cause))
    }
  })

  it("passes a program that keeps to one order, with the sum of what its runs did", () => {
    const program = Effect.andThen(Effect.sleep("2 seconds"), Simulation.mark("slept"))
    const report = Effect.runSync(Simulation.check(program, { seeds: 7, sometimes: ["slept"] }))
    assert.deepStrictEqual([report.seeds, report.millis, report.processes], [7, 14_000, 7])
    assert.deepStrictEqual([...report.marks], [["slept", 7]])
  })

  it("begins the fibers of one parent in the order in which it forked them, as Effect promises", () => {
    const program = Effect.gen(function* () {
      const begun: Array<number> = []
      yield* Effect.forEach([1, 2, 3, 4], (n) => Effect.sync(() => void begun.push(n)), { concurrency: "unbounded" })
      assert.deepStrictEqual(begun, [1, 2, 3, 4])
    })
    Effect.runSync(Simulation.check(program))
  })

  it("runs a dispatcher", () => {
    const program = Dispatcher.run({
      cases: Effect.succeed([{ id: "a" }, { id: "b" }]),
      train: (_, seat) => Effect.as(seat.step("work", Effect.sleep("3 hours")), Case.completed())
    }).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provide(Storage.layerMemory))))
    const report = Effect.runSync(Simulation.check(program, { seeds: 20 }))
    assert.strictEqual(report.millis, 20 * 3 * 3_600_000)
  })
})

describe("a program that a simulation cannot run", () => {
  it("is told that it waits for a promise", () => {
    const { exit } = Effect.runSync(
      Simulation.run(
        Effect.promise(() => Promise.resolve(1)),
        1
      )
    )
    assert.include(failureOf(exit), "or for a promise: a simulation does not wait for those")
  })

  it.live("may wait for promises that settle by themselves, when it says so", () =>
    Effect.gen(function* () {
      const deep = async (n: number): Promise<number> => (n === 0 ? 0 : 1 + (await deep(n - 1)))
      const settings = { promises: true }
      const settled = yield* Simulation.run(
        Effect.promise(() => deep(50)),
        1,
        settings
      )
      assert.deepStrictEqual(settled.exit, Exit.succeed(50))
      const outside = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
      const { exit } = yield* Simulation.run(outside, 1, settings)
      assert.include(failureOf(exit), "something outside the simulation, such as a timer")
    })
  )

  it("is told that it waits for what never comes, and when", () => {
    const waiting = Effect.andThen(Effect.sleep("3 seconds"), Effect.never)
    assert.include(failureOf(Effect.runSync(Simulation.run(waiting, 1)).exit), "after 3000 ms of its time")
  })

  it("is told that it never ends", () => {
    const { exit } = Effect.runSync(Simulation.run(Effect.forever(Effect.sleep(1)), 1, { mostSteps: 1000 }))
    assert.include(failureOf(exit), "has not ended after 1000 turns of its fibers")
  })

  it("is told which fibers it left running", () => {
    const forgotten = Effect.fn("forgotten")(() => Effect.sleep("1 hour"))
    const { exit } = Effect.runSync(Simulation.run(Effect.forkDetach(forgotten()), 1))
    assert.include(failureOf(exit), "left 1 of its fibers running (forgotten)")
    Effect.runSync(Simulation.check(Effect.scoped(Effect.forkScoped(forgotten()))))
  })

  it("is told that it does not do the same twice", () => {
    let runs = 0
    const error = Effect.runSync(Effect.flip(Simulation.check(Effect.suspend(() => Effect.sleep(++runs)))))
    assert.strictEqual(error._tag, "NotRepeatable")
  })

  it("is told what it never came to", () => {
    const error = Effect.runSync(Effect.flip(Simulation.check(Effect.void, { seeds: 3, sometimes: ["a crash"] })))
    assert.strictEqual(error.message.split(". ")[0], "3 seeds never came to: a crash")
  })

  it("is not said to be well by no seed at all", () => {
    const exit = Effect.runSync(Effect.exit(Simulation.check(Effect.void, { seeds: [] })))
    assert.include(failureOf(exit), "nothing was checked")
  })

  it("is not run by a text that says nothing", () => {
    for (const replay of ["", "x", "1: order", "1: order@1=", "1; order@1"]) {
      const error = Effect.runSync(Effect.flip(Simulation.run(Effect.void, replay)))
      assert.strictEqual(error._tag, "InvalidReplay")
    }
  })
})

describe("decisions of the program's own", () => {
  const picking = Effect.gen(function* () {
    const picks: Array<number> = []
    for (let n = 0; n < 20; n++) picks.push(yield* Simulation.pick("number", 10))
    const chances: Array<boolean> = []
    for (let n = 0; n < 20; n++) chances.push(yield* Simulation.chance("fault", 0.2))
    return { picks, chances }
  })

  it("are drawn by the seed, and plain without it", () => {
    const drawn = Effect.runSync(Simulation.run(picking, 3)).exit
    assert(Exit.isSuccess(drawn))
    assert.isAbove(new Set(drawn.value.picks).size, 4)
    assert.include(drawn.value.chances, true)
    const plain = Effect.runSync(Simulation.run(picking, "3: number@2=7")).exit
    assert(Exit.isSuccess(plain))
    assert.deepStrictEqual(plain.value.picks, [0, 7, ...Array.from({ length: 18 }, () => 0)])
    assert.notInclude(plain.value.chances, true)
  })

  it("leave other decisions as they were", () => {
    const chances = (before: Effect.Effect<unknown, never, Simulation.Simulator>) => {
      const program = Effect.andThen(before, Effect.replicateEffect(Simulation.chance("fault", 0.5), 50))
      return Effect.runSync(Simulation.run(program, 5)).exit
    }
    assert.deepStrictEqual(chances(Effect.void), chances(Simulation.pick("another", 7)))
  })

  it("are what a failure is shrunk to", () => {
    const unlucky = Effect.gen(function* () {
      let faults = 0
      for (let n = 0; n < 100; n++) if (yield* Simulation.chance("fault", 0.3)) faults++
      if (faults > 2) return yield* Effect.fail("too many faults")
    })
    const error = Effect.runSync(Effect.flip(Simulation.check(unlucky)))
    assert(error._tag === "Falsified")
    assert.match(error.replay, /^1: fault@\d+ fault@\d+ fault@\d+$/)
  })
})

describe("a process of a simulation", () => {
  it("that is killed does nothing any more, not even its finalizers, between any two operations", () => {
    const program = Effect.gen(function* () {
      const done: Array<string> = []
      const note = (line: string) => Effect.sync(() => void done.push(line))
      const process = yield* Simulation.start(
        Effect.gen(function* () {
          yield* Effect.forkChild(Effect.ensuring(Effect.sleep("2 seconds"), note("a finalizer")))
          for (let n = 1; n <= 1000; n++) yield* Effect.andThen(note("an operation"), Effect.yieldNow)
        }).pipe(Effect.ensuring(note("a finalizer")))
      )
      for (let n = yield* Simulation.pick("patience", 200); n > 0; n--) yield* Effect.yieldNow
      yield* process.kill
      const { length } = done
      yield* Effect.sleep("1 hour")
      assert.strictEqual(done.length, length)
      assert.notInclude(done, "a finalizer")
      assert.isUndefined(yield* process.exit)
      if (length > 0) yield* Simulation.mark("killed in the middle")
    })
    Effect.runSync(Simulation.check(program, { sometimes: ["killed in the middle"] }))
  })

  it("answers how it ended", () => {
    const program = Effect.gen(function* () {
      const one = yield* Simulation.start(Effect.as(Effect.sleep("1 second"), "done"))
      const other = yield* Simulation.start(Effect.fail("broken"))
      assert.deepStrictEqual(yield* one.exit, Exit.succeed("done"))
      const exit = yield* other.exit
      assert.strictEqual(exit && failureOf(exit), `Fail("broken")`)
    })
    Effect.runSync(Simulation.check(program))
  })

  it("that is paused stands still with its timers, while others go on, and goes on late", () => {
    const program = Effect.gen(function* () {
      const start = yield* Clock.currentTimeMillis
      const since = Effect.map(Clock.currentTimeMillis, (now) => now - start)
      const slept = yield* Deferred.make<number>()
      const process = yield* Simulation.start(
        Effect.gen(function* () {
          yield* Effect.sleep("1 minute")
          yield* Deferred.succeed(slept, yield* since)
        })
      )
      yield* Effect.sleep("10 seconds")
      yield* process.pause("10 minutes")
      yield* Effect.sleep("2 minutes")
      assert.strictEqual(yield* since, 130_000)
      assert.strictEqual(yield* Deferred.await(slept), 610_000)
      yield* process.exit
    })
    Effect.runSync(Simulation.check(program))
  })

  it("has layers of its own", () => {
    const program = Effect.gen(function* () {
      let built = 0
      const layer = Layer.effectDiscard(Effect.sync(() => void built++))
      const once = Effect.provide(Effect.void, layer)
      for (let life = 0; life < 3; life++) yield* (yield* Simulation.start(once)).exit
      assert.strictEqual(built, 3)
    })
    Effect.runSync(Simulation.check(program, { seeds: 5 }))
  })

  it("leaves nothing running when it has ended", () => {
    const leak = Effect.asVoid(Effect.forkDetach(Effect.sleep("1 hour")))
    const program = Effect.flatMap(Simulation.start(leak), (process) => process.exit)
    assert.include(failureOf(Effect.runSync(Simulation.run(program, 1)).exit), "left 1 of its fibers running")
  })

  it("sees the wall clock moved, and sleeps on", () => {
    const program = Effect.gen(function* () {
      const start = yield* Clock.currentTimeMillis
      const monotonic = yield* Clock.monotonicTimeNanos
      yield* Simulation.shiftClock("-1 hour")
      yield* Effect.sleep("1 minute")
      assert.strictEqual((yield* Clock.currentTimeMillis) - start, -59 * 60_000)
      assert.strictEqual((yield* Clock.monotonicTimeNanos) - monotonic, 60_000_000_000n)
    })
    Effect.runSync(Simulation.check(program))
  })
})
