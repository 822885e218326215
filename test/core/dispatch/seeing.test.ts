import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream, Tracer } from "effect"
import { Case, Dispatcher, Storage, Verdict } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { cases, changes, layer, minutes, Missing, passing, restart } from "./support.ts"

const dispatcher = Dispatcher.Dispatcher

const step = (c: Case.Case, seat: Dispatcher.Seat) =>
  Effect.as(seat.step("s", Effect.sleep("1 minute")), Case.completed(c.id))

const collect = <A, E>(stream: Stream.Stream<A, E>) => Effect.forkChild(Stream.runCollect(stream))

describe("events", () => {
  it.effect("are those of the next run when none is under way, in order, and end with it", () =>
    Effect.gen(function* () {
      const { events } = yield* dispatcher
      const seen = yield* collect(events())
      yield* Advance.settle
      yield* passing(Dispatcher.run({ cases: cases("a", "b"), train: step }, { seats: 1 }))
      const entries = yield* Fiber.join(seen)
      assert.deepStrictEqual(
        entries.map((e) => (e._tag === "Entry" ? [e.cursor, e.event._tag] : e)),
        [
          [1, "RunStarted"],
          [2, "StepEnded"],
          [3, "CaseCompleted"],
          [4, "StepEnded"],
          [5, "CaseCompleted"],
          [6, "RunEnded"]
        ]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("after a cursor come from the log first, then live, each once", () =>
    Effect.gen(function* () {
      const { events, history } = yield* dispatcher
      yield* passing(Dispatcher.run({ cases: cases("a"), train: step }))
      const run = yield* Effect.forkChild(Dispatcher.run({ cases: cases("a", "b"), train: step }))
      yield* Advance.settle
      const seen = yield* collect(events(2))
      yield* minutes(1)
      yield* Fiber.join(run)
      const cursors = (yield* Fiber.join(seen)).map((e) => (e._tag === "Entry" ? e.cursor : -1))
      assert.deepStrictEqual(cursors, [3, 4, 5, 6, 7, 8])
      assert.deepStrictEqual(
        (yield* Stream.runCollect(history(6))).map((e) => e.cursor),
        [7, 8]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("that happen while the log is being read come once all the same", () =>
    Effect.gen(function* () {
      const memory = yield* Storage.Storage
      const slow = Storage.Storage.of({
        ...memory,
        read: (log) => Stream.unwrap(Effect.delay(Effect.succeed(memory.read(log)), "90 seconds"))
      })
      yield* Effect.gen(function* () {
        const { events } = yield* dispatcher
        const run = yield* Effect.forkChild(Dispatcher.run({ cases: cases("a", "b", "c"), train: step }, { seats: 1 }))
        yield* minutes(1)
        const seen = yield* collect(events(1))
        yield* minutes(20)
        yield* Fiber.join(run)
        const cursors = (yield* Fiber.join(seen)).map((e) => (e._tag === "Entry" ? e.cursor : e._tag))
        assert.deepStrictEqual(cursors, [2, 3, 4, 5, 6, 7, 8])
      }).pipe(Effect.provide(Dispatcher.layer), Effect.provideService(Storage.Storage, slow))
    }).pipe(Effect.provide(Storage.layerMemory))
  )

  it.effect("tell a slow subscriber what it missed, and never slow the run", () =>
    Effect.gen(function* () {
      const { events } = yield* dispatcher
      const many = Array.from({ length: 6_000 }, (_, i) => `${i}`)
      const seen: Array<Dispatcher.Entry | Dispatcher.Gap> = []
      const goOn = yield* Deferred.make<void>()
      const slow = yield* Effect.forkChild(
        Stream.runForEach(events(), (e) =>
          Effect.suspend(() => {
            seen.push(e)
            return Deferred.await(goOn)
          })
        )
      )
      yield* Advance.settle
      const summary = yield* Dispatcher.run({
        cases: cases(...many),
        train: (_, seat) => Effect.as(seat.step("s", Effect.void), Case.completed())
      })
      assert.deepStrictEqual([summary.completed.length, seen.length], [6_000, 1])
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(slow)
      let last = 0
      for (const e of seen) {
        if (e._tag === "Gap") assert.deepStrictEqual([e.after, e.next > last + 1], [last, true])
        else assert.strictEqual(e.cursor, last + 1)
        last = e._tag === "Gap" ? e.next - 1 : e.cursor
      }
      assert.strictEqual(last, 12_002) // two for each case, the start and the end
      assert.isTrue(seen.some((e) => e._tag === "Gap"))
    }).pipe(Effect.provide(layer))
  )
})

describe("a snapshot", () => {
  it.effect("shows seats, queues and counts, also after the run and after a restart", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases("hold", "park", "a", "b", "c"),
            version: Effect.succeed("r7"),
            improve: { request: Missing, apply: changes },
            train: (c, seat) =>
              Effect.gen(function* () {
                if (c.id === "hold") yield* seat.hold("h", 600_000)
                if (c.id === "park") yield* seat.park("p", { missing: "x" })
                yield* seat.step("s", Effect.sleep("5 minutes"))
                return Case.completed()
              })
          },
          { seats: 2, applyAt: 2 }
        )
      )
      yield* minutes(1)
      const now = yield* Dispatcher.snapshot
      assert.deepStrictEqual(now, {
        run: "running",
        seats: [
          { case: "a", recheck: null, step: "s", since: 0 },
          { case: "b", recheck: null, step: "s", since: 0 }
        ],
        waiting: { woken: 0, fresh: 1, parked: 1, held: 1, rechecks: 0, requests: 1 },
        oldestWaiting: { woken: null, rechecks: null, fresh: 0, parked: 0, held: 0 },
        applying: null,
        counts: { completed: 0, difficult: 0, failed: 0 },
        rechecks: { passed: 0, regressed: 0, void: 0 },
        usage: [],
        version: "r7",
        spentUsd: 0,
        end: null
      })
      const elsewhere = yield* restart(Dispatcher.snapshot)
      assert.deepStrictEqual(elsewhere, {
        ...now,
        run: "none",
        seats: [],
        waiting: { ...now.waiting, fresh: 0 },
        oldestWaiting: { ...now.oldestWaiting, fresh: null }
      })
      yield* passing(Fiber.join(run))
      assert.deepStrictEqual(yield* Dispatcher.snapshot, {
        run: "none",
        seats: [],
        waiting: { woken: 0, fresh: 0, parked: 0, held: 0, rechecks: 0, requests: 0 },
        oldestWaiting: { woken: null, rechecks: null, fresh: null, parked: null, held: null },
        applying: null,
        counts: { completed: 5, difficult: 0, failed: 0 },
        rechecks: { passed: 0, regressed: 0, void: 0 },
        usage: [],
        version: "v001",
        spentUsd: 0,
        end: { _tag: "Finished" }
      })
    }).pipe(Effect.provide(layer))
  )

  it.effect("comes with every change, as often as it is asked for, and the last one is of the end", () =>
    Effect.gen(function* () {
      const { changes: seen } = yield* dispatcher
      const fiber = yield* collect(seen)
      yield* Advance.settle
      yield* passing(Dispatcher.run({ cases: cases("a", "b", "c"), train: step }, { seats: 1 }))
      const counts = (yield* Fiber.join(fiber)).map((s) => s.counts.completed)
      assert.deepStrictEqual([...new Set(counts)], [0, 1, 2, 3])
      assert.deepStrictEqual(counts.toSorted(), counts)
    }).pipe(Effect.provide(layer))
  )
})

describe("explain", () => {
  it.effect("says why each case is not running, by the function that decides it", () =>
    Effect.gen(function* () {
      const explained = (id: string) =>
        Effect.map(Dispatcher.explain(id), (e) => (e._tag === "Waiting" ? e.for : e._tag))
      const all = (...ids: ReadonlyArray<string>) => Effect.forEach(ids, explained)
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases("done", "difficult", "failed", "park", "a", "b"),
            improve: { request: Missing, apply: (batch) => Effect.delay(changes(batch), "10 minutes") },
            train: (c, seat) =>
              Effect.gen(function* () {
                if (c.id === "done") return Case.completed()
                if (c.id === "difficult") return Case.difficult("too hard")
                if (c.id === "failed") return yield* Effect.fail("broke")
                if (c.id === "park") yield* seat.park("p", { missing: "x" })
                yield* seat.step("s", Effect.sleep("5 minutes"))
                return Case.completed()
              })
          },
          { seats: 1, applyAt: 2, stopWithin: "1 hour" }
        )
      )
      yield* minutes(1)
      assert.deepStrictEqual(yield* all("done", "difficult", "failed", "park", "a", "b"), [
        "Ended",
        "Ended",
        "Ended",
        "apply",
        "Running",
        "seat"
      ])
      assert.deepStrictEqual(yield* Dispatcher.explain("a"), { _tag: "Running", seat: 1, step: "s" })
      assert.deepStrictEqual(yield* Dispatcher.explain("difficult"), {
        _tag: "Ended",
        as: "difficult",
        because: "too hard"
      })
      yield* minutes(11) // a and b are done, the apply runs
      assert.deepStrictEqual(yield* all("park"), ["apply"])
      const stopping = yield* Effect.forkChild(Dispatcher.stop)
      yield* minutes(10)
      yield* Fiber.join(stopping)
      yield* Fiber.join(run)
      assert.deepStrictEqual(yield* all("park", "a", "failed"), ["run", "Ended", "Ended"])
      const unknown = yield* Effect.flip(Dispatcher.explain("nobody"))
      assert.match(unknown.message, /no case "nobody" is in the log or in the selection/)
    }).pipe(Effect.provide(layer))
  )

  it.effect("names an apply, a selection and a stop as what a case waits for", () =>
    Effect.gen(function* () {
      const explained = (id: string) =>
        Effect.map(Dispatcher.explain(id), (e) => (e._tag === "Waiting" ? e.for : e._tag))
      const run = (...ids: ReadonlyArray<string>) =>
        Dispatcher.run(
          {
            cases: cases(...ids),
            improve: { request: Missing, apply: (batch) => Effect.delay(changes(batch), "10 minutes") },
            train: (c, seat) =>
              Effect.gen(function* () {
                if (c.id === "park") yield* seat.park("p", { missing: "x" })
                yield* seat.step("s", Effect.sleep("5 minutes"))
                return Case.completed()
              })
          },
          { seats: 2, applyAt: 1, stopWithin: "1 hour" }
        )
      const first = yield* Effect.forkChild(run("park", "a", "b"))
      yield* minutes(1)
      assert.strictEqual(yield* explained("b"), "apply")
      const stopping = yield* Effect.forkChild(Dispatcher.stop)
      yield* Advance.settle
      assert.strictEqual(yield* explained("b"), "stop")
      yield* minutes(10)
      yield* Fiber.join(stopping)
      yield* Fiber.join(first)
      const second = yield* Effect.forkChild(run("b"))
      yield* minutes(1)
      assert.strictEqual(yield* explained("park"), "selection")
      yield* passing(Fiber.join(second))
    }).pipe(Effect.provide(layer))
  )
})

describe("spans", () => {
  const traced = (names: Array<string>) =>
    Tracer.make({
      span: (options) => {
        names.push(options.name)
        return new Tracer.NativeSpan(options)
      }
    })

  it.effect("of a case and its steps are made where a tracer sees them", () =>
    Effect.gen(function* () {
      const names: Array<string> = []
      const workload = {
        cases: cases("a", "b"),
        train: (case_: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
          Effect.gen(function* () {
            yield* seat.step("s", Effect.void)
            if (case_.id === "b") yield* seat.park("p", { missing: "x" })
            return Case.completed()
          }),
        improve: { request: Missing, apply: changes, recheck: () => Effect.succeed(Verdict.right<never>()) }
      }
      yield* Dispatcher.run(workload, { rechecks: 1 }).pipe(Effect.provideService(Tracer.Tracer, traced(names)))
      assert.deepStrictEqual(names.filter((name) => name.startsWith("shiftboss.")).toSorted(), [
        ...["shiftboss.apply", "shiftboss.case", "shiftboss.case", "shiftboss.case"],
        ...["shiftboss.recheck", "shiftboss.step", "shiftboss.step"]
      ])
    }).pipe(Effect.provide(layer))
  )
})
