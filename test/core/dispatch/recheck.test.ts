import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import { Case, Dispatcher, Improvements, RecheckRule, Rechecks, Verdict } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { outcomes, rechecks, right, type Try, workload, wrong } from "./recheck-support.ts"
import {
  changes,
  completedIds,
  history,
  layer,
  minutes,
  type Missing,
  notes,
  passing,
  restart,
  onSlowLogs
} from "./support.ts"

describe("rechecks", () => {
  it.effect("run completed cases again on the version an apply made, as many as are asked for", () =>
    Effect.gen(function* () {
      const seen: Array<Omit<Try, "case"> & { readonly case: string; readonly key: string }> = []
      const summary = yield* Dispatcher.run(
        workload({
          recheck: (one, seat) =>
            Effect.sync(() => {
              seen.push({ ...one, case: one.case.id, key: seat.info.key })
              return right
            }),
          ids: ["a", "b", "c", "ask"],
          apply: (batch) => Effect.succeed(Improvements.changed("v0", `v${batch.name}`, "+ a rule"))
        }),
        { rechecks: 2 }
      )
      const common = { apply: "001", arm: "new" as const, version: "v001", patch: "+ a rule", try: 1 }
      assert.deepStrictEqual(
        seen.toSorted((one, other) => (one.case < other.case ? -1 : 1)),
        outcomes(summary)
          .map((line) => line.split(" ")[0]!)
          .toSorted()
          .map((id) => ({ ...common, case: id, key: `${id}/1@recheck-001/new-1` }) as const)
      )
      assert.strictEqual(seen.length, 2)
      assert.deepStrictEqual(
        summary.rechecks.map(({ outcome }) => outcome),
        [
          { _tag: "Passed", unstable: false },
          { _tag: "Passed", unstable: false }
        ]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("come after woken cases and before new ones, on one seat", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      yield* Dispatcher.run(
        workload({
          ids: ["a", "ask", "new"],
          recheck: (one) => Effect.as(note(`recheck ${one.case.id}`), right),
          train: (case_, seat) =>
            Effect.gen(function* () {
              yield* note(case_.id)
              if (case_.id === "ask") yield* seat.park("p", { missing: "x" })
              return Case.completed()
            })
        }),
        { seats: 1, rechecks: 4, applyAt: 1 }
      )
      assert.deepStrictEqual(log, ["a", "ask", "ask", "recheck a", "new"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that were given their seats begin before an apply that comes due meanwhile, not during it", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const run = Dispatcher.run(
        workload({
          ids: ["a", "b", "c", "ask", "late", "x"],
          apply: (batch) =>
            note(`apply ${batch.name}`).pipe(
              Effect.andThen(Effect.delay(changes(batch), batch.name === "001" ? 0 : "5 minutes")),
              Effect.tap(note(`applied ${batch.name}`))
            ),
          recheck: (one) => Effect.as(note(`recheck ${one.apply}`), right),
          train: (case_, seat) =>
            Effect.gen(function* () {
              // Its end is written when the rechecks are claimed: the first of them goes into one flush with the last park.
              if (case_.id === "x") yield* seat.step("s", Effect.sleep("210 seconds"))
              if (case_.id === "late") yield* Effect.sleep("270 seconds")
              if (case_.id === "ask" || case_.id === "late") yield* seat.park("p", { missing: "x" })
              return Case.completed()
            })
        }),
        { seats: 7, applyAt: 1, rechecks: 3 }
      )
      const events = yield* Effect.andThen(passing(run, "15 seconds"), history).pipe(Effect.provide(onSlowLogs))
      const first = ["apply 001", "applied 001", ...Array.from({ length: 3 }, () => "recheck 001")]
      assert.deepStrictEqual(log.slice(0, 7), [...first, "apply 002", "applied 002"])
      const flow = events.flatMap(({ _tag }) => (/^(RecheckStarted|Apply)/.test(_tag) ? [_tag] : []))
      assert.deepStrictEqual(flow.slice(0, 6), [
        "ApplyStarted",
        "ApplyEnded",
        "RecheckStarted",
        "RecheckStarted",
        "RecheckStarted",
        "ApplyStarted"
      ])
    })
  )

  it.effect("of an apply that changed nothing, or with none asked for, there are none", () =>
    Effect.gen(function* () {
      const never = () => Effect.die("it was rechecked")
      const skips = () => Effect.succeed(Improvements.skipped("nothing"))
      const first = yield* Dispatcher.run(workload({ recheck: never, apply: skips }), { rechecks: 4 })
      const second = yield* Dispatcher.run(workload({ recheck: never, ids: ["c", "ask 2"] }), { rechecks: 0 })
      const stays = () => Effect.succeed(Improvements.changed("v1", "v1"))
      const third = yield* Dispatcher.run(workload({ recheck: never, ids: ["c", "ask 3"], apply: stays }), {
        rechecks: 4
      })
      assert.deepStrictEqual([first.rechecks, second.rechecks, third.rechecks, yield* rechecks], [[], [], [], []])
      assert.isFalse((yield* history).some(({ _tag }) => _tag === "RechecksQueued"))
    }).pipe(Effect.provide(layer))
  )

  it.effect("send one repair when all tries fail; the apply that takes it is told why, with the last feedback", () =>
    Effect.gen(function* () {
      const batches: Array<Improvements.Batch<typeof Missing.Type>> = []
      const summary = yield* Dispatcher.run(
        workload({
          ids: ["a", "ask"],
          recheck: (one) => Effect.succeed(one.apply === "001" ? wrong(one) : right),
          apply: (batch) => {
            batches.push(batch)
            return changes(batch)
          }
        }),
        { rechecks: 1 }
      )
      assert.deepStrictEqual(outcomes(summary), ["a 001 Regressed", "a 002 Passed"])
      assert.deepStrictEqual(batches[1]?.requests, [
        {
          id: "a@recheck-001",
          case: "a",
          rev: 1,
          name: "recheck-001",
          why: "repair",
          payload: { missing: "a on v001" }
        }
      ])
      assert.deepStrictEqual(completedIds(summary).toSorted(), ["a", "ask"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("stop asking for repairs of a case at its limit, restarts or not, and only report it", () =>
    Effect.gen(function* () {
      const broken = workload({ ids: ["a", "ask"], recheck: (one) => Effect.succeed(wrong(one)) })
      const first = yield* Dispatcher.run(broken, { rechecks: 1, requestsPerCase: 1 })
      assert.deepStrictEqual(first.applies, ["001", "002"])
      const asked = first.rechecks.map(({ outcome }) => outcome._tag === "Regressed" && outcome.request)
      assert.deepStrictEqual(asked, ["a@recheck-001", null])
      const again = workload({ ids: ["a", "ask 2"], recheck: (one) => Effect.succeed(wrong(one)) })
      const second = yield* restart(Dispatcher.run(again, { rechecks: 1, requestsPerCase: 1 }))
      assert.deepStrictEqual(
        second.rechecks.map(({ outcome }) => outcome._tag === "Regressed" && outcome.request),
        [null]
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("count a right answer with a failed rubric item as a failure, and tell the score", () =>
    Effect.gen(function* () {
      const rubric = [
        { name: "says where", passed: true },
        { name: "says why", passed: false }
      ]
      yield* Dispatcher.run(
        workload({
          ids: ["a", "ask"],
          recheck: (one) =>
            Effect.succeed(
              one.apply === "001" ? Verdict.right({ rubric, repair: { missing: "why" } }) : Verdict.right<never>()
            )
        }),
        { rechecks: 1 }
      )
      const [first] = yield* rechecks
      assert.deepStrictEqual(
        first?.tries.map(({ outcome, score }) => [outcome, score]),
        [
          ["failure", 0.5],
          ["failure", 0.5]
        ]
      )
      assert.strictEqual(first?.state, "regressed")
    }).pipe(Effect.provide(layer))
  )

  it.effect("run the previous version too when the workload can, and believe its failures", () =>
    Effect.gen(function* () {
      const arms: Array<string> = []
      const summary = yield* Dispatcher.run(
        workload({
          ids: ["a", "ask"],
          controls: true,
          recheck: (one) =>
            Effect.sync(() => {
              arms.push(`${one.arm} ${one.try} on ${one.version}`)
              return wrong(one)
            })
        }),
        { rechecks: 1 }
      )
      assert.deepStrictEqual(arms, [
        "new 1 on v001",
        "new 2 on v001",
        "control 1 on v0",
        "new 3 on v001",
        "control 2 on v0"
      ])
      const [only] = summary.rechecks
      assert.strictEqual(only?.outcome._tag === "Void" && only.outcome.why, "baseline")
    }).pipe(Effect.provide(layer))
  )
})

describe("a try", () => {
  it.effect("that a stop cut off between steps goes on where it was: no step of it is run again", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const slow = workload({
        ids: ["a", "ask"],
        recheck: (_, seat) =>
          Effect.gen(function* () {
            yield* seat.step("run", note("run"))
            yield* Effect.sleep("10 minutes")
            yield* seat.step("grade", note("grade"))
            return right
          })
      })
      const run = yield* Effect.forkChild(Dispatcher.run(slow, { rechecks: 1 }))
      yield* minutes(5)
      yield* Effect.flatMap(Dispatcher.Dispatcher, ({ stop }) => stop)
      assert.deepStrictEqual((yield* Fiber.join(run)).rechecks, [])
      assert.strictEqual((yield* rechecks)[0]?.state, "running")
      const summary = yield* restart(passing(Dispatcher.run(slow, { rechecks: 1 })))
      assert.deepStrictEqual([outcomes(summary), log], [["a 001 Passed"], ["run", "grade"]])
    }).pipe(Effect.provide(layer))
  )

  it.effect("whose grading cannot be read is only graded again, and under another key", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const summary = yield* Dispatcher.run(
        workload({
          ids: ["a", "ask"],
          controls: true,
          recheck: (_, seat) =>
            Effect.gen(function* () {
              yield* seat.step(
                "run",
                Effect.sync(() => void log.push(`run ${seat.info.key}`))
              )
              yield* seat.step(
                "grade",
                Effect.sync(() => void log.push(`grade ${seat.info.key}`))
              )
              return log.length < 4 ? Verdict.unread("no JSON") : right
            })
        }),
        { rechecks: 1 }
      )
      assert.deepStrictEqual(log, [
        "run a/1@recheck-001/new-1",
        "grade a/1@recheck-001/new-1",
        "grade a/1@recheck-001/new-1.2",
        "grade a/1@recheck-001/new-1.3"
      ])
      assert.deepStrictEqual(outcomes(summary), ["a 001 Passed"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that waits gives its seat back, and comes back when the wait is over", () =>
    Effect.gen(function* () {
      const { log, note } = notes()
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          workload({
            ids: ["a", "ask", "new"],
            recheck: (_, seat) =>
              Effect.gen(function* () {
                yield* note("asked")
                yield* seat.hold("quota", 600_000)
                yield* note("rechecked")
                return right
              }),
            train: (case_, seat) =>
              Effect.gen(function* () {
                if (case_.id === "ask") yield* seat.park("p", { missing: "x" })
                yield* note(case_.id)
                return Case.completed()
              })
          }),
          { seats: 1, rechecks: 1, applyAt: 1 }
        )
      )
      yield* minutes(9)
      const { waiting, seats } = yield* Dispatcher.snapshot
      assert.deepStrictEqual([waiting.rechecks, seats], [1, [null]])
      assert.deepStrictEqual(log, ["a", "ask", "asked", "new"])
      yield* minutes(1)
      assert.deepStrictEqual(outcomes(yield* Fiber.join(run)), ["a 001 Passed"])
      assert.deepStrictEqual(log.slice(4), ["asked", "rechecked"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("dies of a park and of an answer that is no verdict: the recheck is void as broken", () =>
    Effect.gen(function* () {
      const parks = (seat: Dispatcher.Seat) => seat.park("p", undefined as never)
      const summary = yield* Dispatcher.run(
        workload({
          ids: ["a", "b", "ask"],
          recheck: (one, seat) => (one.case.id === "a" ? Effect.as(parks(seat), right) : Effect.succeed("ok" as never))
        }),
        { rechecks: 2 }
      )
      const reasons = new Map(
        summary.rechecks.map(({ case: id, outcome }) => [id, outcome._tag === "Void" ? outcome : undefined])
      )
      assert.deepStrictEqual([reasons.get("a")?.why, reasons.get("b")?.why], ["broke", "broke"])
      assert.include(reasons.get("a")?.reason, "Verdict.wrong")
      assert.include(reasons.get("b")?.reason, "no verdict")
    }).pipe(Effect.provide(layer))
  )

  it.effect("that ignores interruption loses its seat, and its case has no other until it is gone", () =>
    Effect.gen(function* () {
      const release = yield* Deferred.make<void>()
      let calls = 0
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          workload({
            ids: ["a", "ask", "long"],
            train: (case_, seat) =>
              Effect.gen(function* () {
                if (case_.id === "ask") yield* seat.park("p", { missing: "x" })
                if (case_.id === "long") yield* Effect.sleep("1 hour")
                return Case.completed()
              }),
            recheck: (_, seat) =>
              Effect.suspend(() => {
                calls++
                const stubborn = Effect.andThen(Effect.forkChild(seat.hold("h", 1_000)), Deferred.await(release))
                return Effect.as(calls === 1 ? Effect.uninterruptible(stubborn) : Effect.void, right)
              })
          }),
          { seats: 2, applyAt: 1, rechecks: 1, grace: "10 seconds" }
        )
      )
      yield* minutes(2)
      const { seats } = yield* Dispatcher.snapshot
      assert.deepStrictEqual([seats.map((seat) => seat?.case ?? null).toSorted(), calls], [["long", null], 1])
      yield* Deferred.succeed(release, undefined)
      yield* minutes(1)
      assert.strictEqual(calls, 2)
      yield* minutes(60)
      assert.deepStrictEqual(outcomes(yield* Fiber.join(run)), ["a 001 Passed"])
    }).pipe(Effect.provide(layer))
  )
})

describe("a recheck that breaks", () => {
  const breaking = (ids: ReadonlyArray<string>, controls = false) =>
    workload({ ids, controls, recheck: () => Effect.fail("the sandbox is gone") })

  it.effect("is void with the reason, made again twice by the controlled rule", () =>
    Effect.gen(function* () {
      yield* Dispatcher.run(breaking(["a", "ask"]), { rechecks: 1 })
      yield* Dispatcher.run(breaking(["a", "ask 2"], true), { rechecks: 1 })
      const all = yield* rechecks
      assert.deepStrictEqual(
        all.map(({ tries, outcome }) => [tries.length, outcome?._tag === "Void" && outcome.why]),
        [
          [1, "broke"],
          [3, "broke"]
        ]
      )
      assert.include(all[0]?.outcome?._tag === "Void" ? all[0].outcome.reason : "", "the sandbox is gone")
    }).pipe(Effect.provide(layer))
  )

  it.effect("counts for the breaker, one that is judged does not", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Dispatcher.run(breaking(["a", "b", "c", "ask"]), { rechecks: 3 }))
      const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
      assert.instanceOf(error, Dispatcher.BreakerTripped)
      assert.strictEqual(error.failures.length, 3)
      const judged = workload({ ids: ["a", "b", "c", "ask 2"], recheck: (one) => Effect.succeed(wrong(one)) })
      const summary = yield* Dispatcher.run(judged, { rechecks: 3, failuresInARow: 1, requestsPerCase: 0 })
      assert.strictEqual(summary.rechecks.length, 3)
    }).pipe(Effect.provide(layer))
  )

  it.effect("because the system is down ends the run, and is taken up by the next start", () =>
    Effect.gen(function* () {
      let isDown = true
      const shaky = workload({
        ids: ["a", "ask"],
        recheck: () =>
          Effect.suspend(() =>
            isDown ? Effect.fail(new Case.SystemDown({ reason: "no network" })) : Effect.succeed(right)
          )
      })
      const exit = yield* Effect.exit(Dispatcher.run(shaky, { rechecks: 1 }))
      assert.instanceOf(Exit.isFailure(exit) && Cause.squash(exit.cause), Case.SystemDown)
      assert.strictEqual((yield* rechecks)[0]?.state, "running")
      isDown = false
      assert.deepStrictEqual(outcomes(yield* restart(Dispatcher.run(shaky))), ["a 001 Passed"])
    }).pipe(Effect.provide(layer))
  )
})

describe("a newer apply", () => {
  it.effect("takes over a recheck that has not counted yet; one that has ends as it began and asks for nothing", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const summary = yield* passing(
        Dispatcher.run(
          workload({
            ids: ["a", "b", "ask 1", "ask 2"],
            train: (case_, seat) =>
              Effect.gen(function* () {
                if (case_.id === "ask 2") yield* Effect.sleep("3 minutes")
                if (case_.id.startsWith("ask")) yield* seat.park("p", { missing: case_.id })
                return Case.completed()
              }),
            recheck: (one) =>
              Effect.gen(function* () {
                log.push(`${one.case.id} ${one.apply} ${one.try}`)
                yield* Effect.sleep("2 minutes")
                return wrong(one)
              })
          }),
          { seats: 2, applyAt: 1, rechecks: 1, requestsPerCase: 1 }
        )
      )
      const first = summary.rechecks.find(({ apply }) => apply === "001")
      assert.deepStrictEqual(first?.outcome, { _tag: "Regressed", confirmed: false, request: null })
      assert.include(log, `${first?.case} 001 2`)
    }).pipe(Effect.provide(layer))
  )
})

describe("a recheck of a case", () => {
  it.effect("that is no longer selected, or has another rev, is void with the reason", () =>
    Effect.gen(function* () {
      const stuck = workload({ ids: ["a", "b", "ask"], recheck: () => Effect.never })
      const run = yield* Effect.forkChild(Dispatcher.run(stuck, { rechecks: 2, stopWithin: 0 }))
      yield* Advance.settle
      yield* Effect.flatMap(Dispatcher.Dispatcher, ({ stop }) => stop)
      yield* Fiber.join(run)
      const revised = {
        ...workload({ recheck: () => Effect.succeed(right) }),
        cases: Effect.succeed([{ id: "b", rev: 2 }, { id: "ask" }])
      }
      const summary = yield* restart(Dispatcher.run(revised, { rechecks: 2 }))
      const reasons = summary.rechecks.map(({ case: id, outcome }) => [id, outcome._tag === "Void" && outcome.reason])
      assert.deepStrictEqual(Object.fromEntries(reasons), {
        a: "the case is no longer selected",
        b: "the case changed: rev 1 is now 2"
      })
      assert.deepStrictEqual(completedIds(summary).toSorted(), ["a", "ask", "b"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("that is forgotten takes back the repair it asked for", () =>
    Effect.gen(function* () {
      const { Improvements: service } = Improvements
      yield* Dispatcher.run(workload({ ids: ["a", "ask"], recheck: (one) => Effect.succeed(wrong(one)) }), {
        rechecks: 1,
        requestsPerCase: 1
      }).pipe(Effect.ignore)
      const stopped = workload({
        ids: ["b", "ask 2"],
        recheck: (one) => Effect.succeed(wrong(one)),
        apply: (batch) => (batch.requests.some(({ why }) => why === "repair") ? Effect.die("not now") : changes(batch))
      })
      yield* Effect.exit(restart(Dispatcher.run(stopped, { rechecks: 1 })))
      const pending = yield* Effect.flatMap(service, (improvements) => improvements.pending)
      assert.deepStrictEqual(
        pending.map(({ id, why }) => [id, why]),
        [["b@recheck-003", "repair"]]
      )
      yield* Effect.flatMap(Dispatcher.Dispatcher, ({ forget }) => forget("b"))
      assert.deepStrictEqual(yield* Effect.flatMap(service, (improvements) => improvements.pending), [])
    }).pipe(Effect.provide(layer))
  )

  it.effect("is seen while it runs: in the seats, in its explanation, in the counts", () =>
    Effect.gen(function* () {
      const run = yield* Effect.forkChild(
        Dispatcher.run(workload({ ids: ["a", "ask"], recheck: () => Effect.as(Effect.sleep("1 hour"), right) }), {
          rechecks: 1
        })
      )
      yield* minutes(1)
      const seen = yield* Dispatcher.snapshot
      assert.deepStrictEqual(
        seen.seats.find((seat) => seat !== null),
        {
          case: "a",
          recheck: { apply: "001", arm: "new", try: 1 },
          step: null,
          since: 0
        }
      )
      assert.deepStrictEqual([seen.waiting.rechecks, seen.counts.completed], [0, 2])
      assert.strictEqual((yield* Dispatcher.explain("a"))._tag, "Running")
      yield* Effect.flatMap(Dispatcher.Dispatcher, ({ stop }) => stop)
      yield* Fiber.join(run)
      const explained = yield* Dispatcher.explain("a")
      assert.strictEqual(
        explained._tag === "Ended" && explained.because,
        "it completed; its recheck of apply 001 is running"
      )
      yield* restart(passing(Dispatcher.run(workload({ ids: ["a", "ask"], recheck: () => Effect.succeed(right) }))))
      assert.deepStrictEqual((yield* Dispatcher.snapshot).rechecks, { passed: 1, regressed: 0, void: 0 })
    }).pipe(Effect.provide(layer))
  )

  it.effect("is listed while it is open, and its case among the unstable ones when it failed before it passed", () =>
    Effect.gen(function* () {
      const service = yield* Rechecks.Rechecks
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          workload({
            ids: ["a", "ask"],
            recheck: (one) => Effect.as(Effect.sleep("1 minute"), one.try === 1 ? wrong(one) : right)
          }),
          { rechecks: 1 }
        )
      )
      yield* Advance.advance("90 seconds", "30 seconds")
      const open = yield* service.open
      assert.deepStrictEqual(
        open.map(({ case: id, apply, state, tries }) => [id, apply, state, tries.map(({ outcome }) => outcome)]),
        [["a", "001", "running", ["failure"]]]
      )
      assert.deepStrictEqual(yield* service.unstable, [])
      yield* minutes(2)
      yield* Fiber.join(run)
      assert.deepStrictEqual([yield* service.open, yield* service.unstable], [[], ["a"]])
      assert.deepStrictEqual((yield* service.all)[0]?.outcome, { _tag: "Passed", unstable: true })
    }).pipe(Effect.provide(layer))
  )

  it.effect("does not keep a run open whose workload cannot recheck", () =>
    Effect.gen(function* () {
      const stuck = workload({ ids: ["a", "ask"], recheck: () => Effect.never })
      const run = yield* Effect.forkChild(Dispatcher.run(stuck, { rechecks: 1, stopWithin: 0 }))
      yield* Advance.settle
      yield* Effect.flatMap(Dispatcher.Dispatcher, ({ stop }) => stop)
      yield* Fiber.join(run)
      const { improve: _, ...without } = workload({ ids: ["a", "ask"], recheck: () => Effect.never })
      const summary = yield* restart(
        Dispatcher.run({ cases: without.cases, train: () => Effect.succeed(Case.completed()) })
      )
      assert.deepStrictEqual(summary.end, { _tag: "Finished" })
      assert.strictEqual((yield* rechecks)[0]?.state, "queued")
    }).pipe(Effect.provide(layer))
  )
})

describe("all rechecks of one apply", () => {
  const ids = ["a", "b", "c", "d", "ask"]

  it.effect(
    "are void when the previous version fails as well: the environment is down, and it costs two controls",
    () =>
      Effect.gen(function* () {
        const summary = yield* Dispatcher.run(
          workload({ ids, controls: true, recheck: (one) => Effect.succeed(wrong(one)) }),
          { rechecks: 4 }
        )
        assert.deepStrictEqual(
          summary.rechecks.map(({ outcome }) => outcome._tag === "Void" && outcome.why),
          ["environment", "environment", "environment", "environment"]
        )
        const events = yield* history
        assert.deepStrictEqual(
          events.flatMap((event) => (event._tag === "BatchJudged" ? [event.finding] : [])),
          ["environment"]
        )
        const arms = events.flatMap((event) => (event._tag === "TryEnded" ? [event.arm] : []))
        assert.strictEqual(arms.filter((arm) => arm === "control").length, 2)
        assert.deepStrictEqual(summary.applies, ["001"])
      }).pipe(Effect.provide(layer))
  )

  it.effect("ask for one repair together when the edit is broken at large, and none of a repair", () =>
    Effect.gen(function* () {
      const known = [...ids.slice(0, 4), "e", "f"]
      const summary = yield* Dispatcher.run(
        workload({
          ids: [...known, "ask 1"],
          controls: true,
          recheck: () => Effect.succeed(right)
        }),
        { rechecks: 6 }
      )
      assert.strictEqual(summary.rechecks.length, 6)
      const broken = yield* restart(
        Dispatcher.run(
          workload({
            ids: [...known, "ask 1", "ask 2"],
            controls: true,
            recheck: (one) => Effect.succeed(one.arm === "new" ? wrong(one) : right)
          }),
          { rechecks: 6, seats: 1 }
        )
      )
      const [apply, repair] = ["002", "003"].map((name) => broken.rechecks.filter(({ apply }) => apply === name))
      const requests = apply!.flatMap(({ outcome }) =>
        outcome._tag === "Regressed" && outcome.request !== null ? [outcome.request] : []
      )
      assert.strictEqual(requests.length, 1)
      assert.isTrue(repair!.length > 0)
      assert.isTrue(repair!.every(({ outcome }) => outcome._tag !== "Regressed" || outcome.request === null))
      assert.deepStrictEqual(broken.applies, ["002", "003"])
    }).pipe(Effect.provide(layer))
  )
})

describe("the options of rechecks", () => {
  const run = (options: Dispatcher.Options) =>
    Effect.flip(Dispatcher.run(workload({ recheck: () => Effect.succeed(right) }), options))

  it.effect("are checked before anything is opened", () =>
    Effect.gen(function* () {
      for (const options of [
        { rechecks: -1 },
        { rechecks: 1.5 },
        { seed: Number.NaN },
        { requestsPerCase: -1 },
        { recheckRule: RecheckRule.controlled() }
      ]) {
        const error = yield* run(options)
        assert.instanceOf(error, Dispatcher.InvalidOption)
        assert.strictEqual(error.option, Object.keys(options)[0])
      }
    }).pipe(Effect.provide(layer))
  )
})
