/**
 * Runs of a dispatcher, one after the other on one log, until there is an event of every kind in it and a run has ended in
 * every way. One seat, so that the order is always the same.
 */
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Case, Dispatcher, Failure, Improvements } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { cases, Missing } from "../../core/dispatch/support.ts"
import { beginning, type Scenario } from "../scenario.ts"
import { start } from "./process.ts"

const changed = (batch: Improvements.Batch<unknown>) =>
  Effect.succeed(Improvements.changed(batch.version ?? "v0", `v${batch.name}`, `+ ${batch.requests.length} rules`))
const skipped = () => Effect.succeed(Improvements.skipped("there was nothing to add"))
const refused = () => Effect.fail(Failure.make("Network", "the editor is away"))

type Seat = Dispatcher.Seat<typeof Missing.Type>

/** Works on a case as its name says. */
const train = (case_: Case.Case, seat: Seat) =>
  Effect.gen(function* () {
    const { id } = case_
    const answer = yield* seat.step("look", Effect.succeed({ looked: `at ${id}`, rev: case_.rev ?? 1 }))
    yield* seat.step("note", Effect.void)
    if (id === "gives up") return Case.difficult("nobody can tell")
    if (id === "waits") yield* seat.hold("until ten", beginning + 10 * 60_000)
    if (id.startsWith("asks")) yield* seat.park("missing", { missing: `what ${id}` })
    return Case.completed(answer)
  })

const run = (selection: ReadonlyArray<Case.Case>, apply: typeof changed | typeof skipped | typeof refused) =>
  Dispatcher.run(
    {
      cases: Effect.succeed(selection),
      train: (case_, seat) => train(case_, seat),
      version: Effect.succeed("v0"),
      improve: { request: Missing, apply }
    },
    { seats: 1, applyAt: 2 }
  )

const failing = (...ids: ReadonlyArray<string>) =>
  Dispatcher.run({ cases: cases(...ids), train: (c) => Effect.fail(`${c.id} broke`) }, { seats: 1, failuresInARow: 2 })

const costly = Dispatcher.run(
  {
    cases: cases("costs", "costs too"),
    train: (c, seat) => Effect.as(seat.turn("ask", { prompt: `do ${c.id}` }), Case.completed())
  },
  { seats: 1, budgetUsd: 1 }
)

const down = Dispatcher.run(
  { cases: cases("meets the end"), train: () => Effect.fail(new Case.SystemDown({ reason: "no disk" })) },
  { seats: 1 }
)

const unreadable = Dispatcher.run({
  cases: Effect.fail("the list is away"),
  train: () => Effect.succeed(Case.completed())
})

/** Stops itself in the middle of a step, which it lets end. */
const stopped = Dispatcher.run(
  {
    cases: cases("stops all"),
    train: (_, seat) =>
      Effect.as(seat.step("stop", Effect.asVoid(Effect.forkDetach(Dispatcher.stop))), Case.completed())
  },
  { seats: 1 }
)

/** The case parks, ignores that it lost its seat, and is the last that is left. */
const stuck = Effect.gen(function* () {
  const free = yield* Deferred.make<void>()
  const run = Dispatcher.run(
    {
      cases: cases("is stuck"),
      improve: { request: Missing, apply: skipped },
      train: (_, seat) =>
        Effect.uninterruptible(
          Effect.as(
            Effect.andThen(Effect.ignoreCause(seat.park("missing", { missing: "an end" })), Deferred.await(free)),
            Case.completed()
          )
        )
    },
    { seats: 1 }
  )
  const running = yield* Effect.forkChild(Effect.exit(run))
  yield* Fiber.join(running)
  yield* Deferred.succeed(free, undefined)
  yield* Advance.advance("1 second")
})

const byHand = Effect.gen(function* () {
  const dispatcher = yield* Dispatcher.Dispatcher
  const improvements = yield* Improvements.Improvements
  yield* improvements.cancel("asks in vain/1/missing")
  yield* dispatcher.retry("gives up")
  yield* dispatcher.forget("costs")
})

const first = ["completes", "gives up", "asks", "asks too", "waits"]

export const dispatcher: Scenario = {
  name: "dispatcher",
  logs: { dispatch: "dispatcher", turns: "turns" },
  play: Effect.gen(function* () {
    yield* start(
      run(
        first.map((id) => ({ id })),
        changed
      )
    )
    yield* start(Effect.exit(failing("breaks", "breaks too", "comes too late")))
    // The failed ones are taken again; one has changed since.
    yield* start(run([{ id: "breaks" }, { id: "breaks too" }, { id: "completes", rev: 2 }], changed))
    yield* start(Effect.exit(run([{ id: "asks in vain" }], refused)))
    yield* start(costly)
    yield* start(byHand)
    yield* start(run([{ id: "asks for nothing" }], skipped))
    yield* start(Effect.exit(down))
    yield* start(Effect.exit(unreadable))
    yield* start(stopped)
    yield* start(stuck)
    // One is left parked, and its apply under way.
    yield* start(Effect.exit(run([{ id: "asks again" }], refused)))
  })
}

export const stops: Scenario = {
  name: "stops",
  logs: { "dispatch.control": "stops" },
  play: Effect.provide(Dispatcher.requestStop, Layer.fresh(Dispatcher.layer))
}
