/** For docs/dispatcher.md: stopping, failing, seeing and mending. */
import { Console, Effect, Fiber, Stream } from "effect"
import { type Case, Dispatcher, Improvements, type Storage } from "shiftboss"

export const until = <A, E, R>(run: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const running = yield* Effect.forkChild(run)
    yield* Effect.raceFirst(Fiber.await(running), Effect.sleep("8 hours"))
    yield* Dispatcher.stop
    return yield* Fiber.join(running)
  })

export const reported = <A, E, R>(run: Effect.Effect<A, E | Dispatcher.RunError, R>) =>
  Effect.tapError(run, (error) =>
    error instanceof Dispatcher.BreakerTripped
      ? Console.error(error.failures.map((failure) => `${failure.case}: ${failure.reason}`).join("\n"))
      : Effect.void
  )

/** `after` is the cursor of the last event this program has dealt with. */
export const follow = (after: number, tell: (event: Dispatcher.Entry) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const dispatcher = yield* Dispatcher.Dispatcher
    yield* Stream.runForEach(dispatcher.events(after), (seen) =>
      seen._tag === "Entry"
        ? tell(seen)
        : dispatcher.history(seen.after).pipe(
            Stream.takeWhile((entry) => entry.cursor < seen.next),
            Stream.runForEach(tell)
          )
    )
  })

export const progress = Effect.gen(function* () {
  const dispatcher = yield* Dispatcher.Dispatcher
  yield* Stream.runForEach(dispatcher.changes, ({ counts, seats, waiting }) =>
    Console.log(
      `${counts.completed} completed, ${seats.filter((seat) => seat !== null).length} on seats, ${waiting.parked} parked`
    )
  )
})

export const retryAll = <A>(summary: Dispatcher.Summary<A>) =>
  Effect.gen(function* () {
    const dispatcher = yield* Dispatcher.Dispatcher
    yield* Effect.forEach(summary.difficult, (one) => dispatcher.retry(one.case))
  })

export const withdraw = (case_: Case.Case) =>
  Effect.gen(function* () {
    const improvements = yield* Improvements.Improvements
    const pending = yield* improvements.pending
    const own = pending.filter((request) => request.case === case_.id)
    yield* Effect.forEach(own, (request) => improvements.cancel(request.id))
  })

export const both = <A, E, B, F>(
  parsers: Effect.Effect<A, E, Dispatcher.Dispatcher>,
  prompts: Effect.Effect<B, F, Dispatcher.Dispatcher>
): Effect.Effect<[A, B], E | F, Storage.Storage> =>
  Effect.all(
    [
      Effect.provide(parsers, Dispatcher.layerNamed("parsers")),
      Effect.provide(prompts, Dispatcher.layerNamed("prompts"))
    ],
    { concurrency: "unbounded" }
  )
