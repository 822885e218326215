import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Stream } from "effect"
import { Case, Dispatcher, DispatcherEvent, Improvements, Storage } from "shiftboss"
import { CrashEverywhere, FaultyStorage } from "shiftboss/testing"
import { Missing } from "./support.ts"

interface Run {
  readonly work: string
  readonly start: number
}

/** What the processes did to the world outside the store; it survives them. */
interface World {
  readonly runs: Array<Run>
  /** Steps whose result `train` was given. */
  readonly acknowledged: Array<Run>
  readonly calls: Array<Improvements.Batch<unknown>>
  readonly edits: Set<string>
}

const hour = 3_600_000
/** Where the clock of a trial begins. */
const beginning = 20_000 * 24 * hour

/** A case that goes through all a case can go through. Each step's body can be cut off before and after it. */
const train = (world: World) => (case_: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
  Effect.gen(function* () {
    const step = Effect.fnUntraced(function* (name: string, minutes: number) {
      const run: Run = { work: `${case_.id} ${name}`, start: seat.info.start }
      const body = Effect.sync(() => {
        world.runs.push(run)
        return `${name} of ${case_.id}`
      })
      // The late one may park while an apply is at work.
      const reads = name === "try" && case_.id !== "parking late"
      const work = Effect.delay(FaultyStorage.outside(body), `${minutes} minutes`)
      const result = yield* seat.step(name, { reads }, work)
      world.acknowledged.push(run)
      return result
    })
    const said = [yield* step("try", case_.id === "parking late" ? 18 : case_.id.length)]
    if (case_.id === "failing") return yield* Effect.fail("the account is gone")
    if (case_.id === "difficult") return Case.difficult("no one knows")
    if (case_.id === "holding") yield* seat.hold("quota", beginning + hour)
    if (case_.id.startsWith("parking")) {
      yield* seat.park("first", { missing: case_.id })
      if (case_.id === "parking only") return Case.completed(said.join(", "))
      said.push(yield* step("again", 5))
    }
    if (case_.id === "parking twice") yield* seat.park("second", { missing: "more" })
    said.push(yield* step("last", 1))
    return Case.completed(said.join(", "))
  })

const apply = (world: World) => (batch: Improvements.Batch<unknown>) =>
  Effect.gen(function* () {
    world.calls.push(batch)
    yield* Effect.sleep("10 minutes")
    yield* FaultyStorage.outside(Effect.sync(() => world.edits.add(batch.name)))
    return Improvements.changed(batch.version ?? "v0", `v${batch.name}`)
  })

const programOf = (world: World, ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const dispatcher = yield* Dispatcher.Dispatcher
    const summary = yield* dispatcher.run(
      {
        cases: Effect.succeed(ids.map((id) => ({ id }))),
        train: train(world),
        improve: { request: Missing, apply: apply(world) }
      },
      { seats: 3, applyAt: 2 }
    )
    return { ...summary, over: yield* Clock.currentTimeMillis }
  }).pipe(Effect.provide(Dispatcher.layer))

type Result = Effect.Success<ReturnType<typeof programOf>>

const eventsIn = (storage: Storage.Storage["Service"]) =>
  Stream.runCollect(
    Storage.readTyped(storage, "dispatch", {
      entry: DispatcherEvent.DispatcherEvent,
      version: DispatcherEvent.version
    })
  )

/** A step that ended in one start is in no later one run again, and was run once in that one. */
const checkSteps = (events: ReadonlyArray<DispatcherEvent.DispatcherEvent>, world: World) => {
  let start = 0
  for (const event of events) {
    if (event._tag === "RunStarted") start = event.start
    if (event._tag !== "StepEnded") continue
    const work = `${event.case} ${event.step}`
    const during = world.runs.filter((run) => run.work === work)
    assert.isTrue(
      during.every((run) => run.start <= start),
      `${work} was run again after it had ended`
    )
    assert.strictEqual(during.filter((run) => run.start === start).length, 1, work)
  }
  for (const { work, start } of world.acknowledged) {
    const isRepeated = world.runs.some((run) => run.work === work && run.start > start)
    assert.isFalse(isRepeated, `${work} was run again after its result had been given`)
  }
  const ended = events.flatMap((event) => (event._tag === "StepEnded" ? [`${event.case} ${event.step}`] : []))
  assert.strictEqual(new Set(ended).size, ended.length, "a step ended twice")
}

/** Each request sent is taken by one apply that succeeded; one that was cut off is called again as it was. */
const checkApplies = (events: ReadonlyArray<DispatcherEvent.DispatcherEvent>, world: World) => {
  const sent = events.flatMap((event) => (event._tag === "CaseParked" ? [event.request] : []))
  const begun = new Map(events.flatMap((event) => (event._tag === "ApplyStarted" ? [[event.apply, event]] : [])))
  const succeeded = events.flatMap((event) => (event._tag === "ApplyEnded" ? [event.apply] : []))
  const taken = succeeded.flatMap((name) => begun.get(name)?.requests ?? [])
  assert.deepStrictEqual(taken.toSorted(), sent.toSorted())
  assert.deepStrictEqual([...world.edits], succeeded)
  assert.deepStrictEqual(new Set(world.calls.map(({ name }) => name)), new Set(succeeded))
  const called = new Set<string>()
  for (const { name, again, requests } of world.calls) {
    assert.deepStrictEqual(
      requests.map(({ id }) => id),
      begun.get(name)?.requests
    )
    assert.isTrue(again || !called.has(name), `apply ${name} was called twice without a word`)
    called.add(name)
  }
}

const byCase = (one: { readonly case: string }, other: { readonly case: string }) => (one.case < other.case ? -1 : 1)

const resultsOf = ({ completed, difficult, failed, waiting, end }: Result) => ({
  completed: completed.toSorted(byCase),
  difficult: difficult.toSorted(byCase),
  failed: failed.map((one) => one.case),
  waiting,
  end
})

const trialOf = (ids: ReadonlyArray<string>, results: ReturnType<typeof resultsOf>) =>
  Effect.sync(() => {
    const world: World = { runs: [], acknowledged: [], calls: [], edits: new Set() }
    return {
      program: programOf(world, ids),
      check: ({ exit, storage, lives }: CrashEverywhere.Ended<Result, unknown>) =>
        Effect.gen(function* () {
          assert(Exit.isSuccess(exit), String(exit))
          assert.deepStrictEqual(resultsOf(exit.value), results)
          const events = yield* eventsIn(storage)
          checkSteps(events, world)
          checkApplies(events, world)
          assert.isAtMost(events.filter((event) => event._tag === "RunStarted").length, lives)
          if (ids.includes("holding")) assert.isAtLeast(exit.value.over, beginning + hour)
        })
    }
  })

describe("a run that is cut off anywhere", () => {
  it.live("is finished by the next start with the same results, and nothing is done twice or lost", () =>
    Effect.gen(function* () {
      const report = yield* CrashEverywhere.crashEverywhere(
        trialOf(["parking", "parking twice", "parking late", "holding", "failing", "difficult", "plain"], {
          completed: [
            { case: "holding", value: "try of holding, last of holding" },
            { case: "parking", value: "try of parking, again of parking, last of parking" },
            { case: "parking late", value: "try of parking late, again of parking late, last of parking late" },
            { case: "parking twice", value: "try of parking twice, again of parking twice, last of parking twice" },
            { case: "plain", value: "try of plain, last of plain" }
          ],
          difficult: [{ case: "difficult", reason: "no one knows" }],
          failed: ["failing"],
          waiting: [],
          end: { _tag: "Finished" }
        })
      )
      assert.isAbove(report.points, 80)
    })
  )

  it.live("is finished also when the next start is cut off anywhere", () =>
    Effect.gen(function* () {
      const trial = trialOf(["parking only"], {
        completed: [{ case: "parking only", value: "try of parking only" }],
        difficult: [],
        failed: [],
        waiting: [],
        end: { _tag: "Finished" }
      })
      const report = yield* CrashEverywhere.crashEverywhere(trial, { inARow: 2 })
      assert.isAbove(report.trials, 300)
    })
  )
})
