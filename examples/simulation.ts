/**
 * A loop whose host has a bug of one unlucky moment: two seats look for the next ticket at once, and both take the same one.
 * It runs well for months. The simulation finds the moment, and says how to see it again.
 *
 *     node examples/simulation.ts
 */
import { Console, Effect, Layer } from "effect"
import { Case, Dispatcher, Storage } from "shiftboss"
import { Simulation } from "shiftboss/testing"

/** A tracker that is asked for its open tickets, and then told who works on one. */
const makeTracker = (tickets: ReadonlyArray<string>) => {
  const open = new Set(tickets)
  return {
    next: Effect.sync(() => [...open][0]),
    /** False when somebody else has it: the careless host does not look. */
    take: (ticket: string) => Effect.sync(() => open.delete(ticket))
  }
}

const loop = (isCareful: boolean) =>
  Effect.gen(function* () {
    const tracker = makeTracker(["#1", "#2", "#3"]) // the world is made anew for each seed
    const worked: Array<string> = []
    const claim: Effect.Effect<string | undefined> = Effect.gen(function* () {
      const ticket = yield* tracker.next
      if (ticket === undefined) return undefined
      const taken = yield* tracker.take(ticket)
      return taken || !isCareful ? ticket : yield* claim
    })
    yield* Dispatcher.run(
      {
        cases: Effect.succeed([{ id: "a" }, { id: "b" }, { id: "c" }]),
        train: (_, seat) =>
          Effect.gen(function* () {
            const ticket = yield* seat.step(
              "claim",
              Effect.map(claim, (ticket) => ticket ?? null)
            )
            if (ticket !== null) yield* Effect.sync(() => worked.push(ticket))
            yield* seat.step("work", Effect.sleep("20 minutes"))
            return Case.completed()
          })
      },
      { seats: 3 }
    )
    if (new Set(worked).size < worked.length) return yield* Effect.fail(`dispatched twice: ${worked.join(" ")}`)
  }).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provide(Storage.layerMemory))))

const program = Effect.gen(function* () {
  const report = yield* Simulation.check(loop(true), { seeds: 300 })
  const hours = Math.round(report.millis / 3_600_000)
  yield* Console.log(`the careful host: ${report.seeds} seeds, ${hours} simulated hours, all well`)
  const error = yield* Effect.flip(Simulation.check(loop(false), { seeds: 5000 }))
  yield* Console.log(`the careless host: ${error.message}`)
})

// Nothing in it waits for anything real: it can be run synchronously.
Effect.runSync(program)
