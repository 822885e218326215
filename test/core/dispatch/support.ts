import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Dispatcher, Improvements, Storage } from "shiftboss"
import { Advance } from "shiftboss/testing"

/** A dispatcher on logs in memory. */
export const layer = Dispatcher.layer.pipe(Layer.provideMerge(Storage.layerMemory))

/** The next start: another dispatcher on the same logs. */
export const restart = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, Layer.fresh(Dispatcher.layer))

export const Missing = Schema.Struct({ missing: Schema.String })

export const cases = (...ids: ReadonlyArray<string>) => Effect.succeed(ids.map((id) => ({ id })))

/** A dispatcher on logs in memory that take a minute for each flush. */
export const onSlowLogs = Layer.unwrap(
  Effect.sync(() => {
    const memory = Storage.makeMemory()
    const slow = Storage.fromEncoded(
      { ...memory, append: (...args) => Effect.delay(memory.append(...args), "1 minute") },
      { alive: () => Effect.succeed(false) }
    )
    return Layer.provideMerge(Dispatcher.layer, Layer.succeed(Storage.Storage, slow))
  })
)

/** What happened, in order. */
export const notes = () => {
  const log: Array<string> = []
  return { log, note: (line: string) => Effect.sync(() => void log.push(line)) }
}

/** Lets so many minutes pass, one by one. */
export const minutes = (n: number) => Advance.advance(`${n} minutes`, "1 minute")

export const changes = (batch: Improvements.Batch<unknown>) =>
  Effect.succeed(Improvements.changed(batch.version ?? "v0", `v${batch.name}`))

export const nothing = () => Effect.succeed(Improvements.skipped("nothing to do"))

/** Runs the effect while virtual time passes, until it ends. */
export const passing = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  by: `${number} ${"seconds" | "minutes" | "hours"}` = "1 minutes"
) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    for (let i = 0; fiber.pollUnsafe() === undefined && i < 1_000; i++) yield* Advance.advance(by)
    return yield* Fiber.join(fiber)
  })

export const completedIds = (summary: Dispatcher.Summary) => summary.completed.map((c) => c.case)

/** All events in the log, oldest first. */
export const history = Effect.gen(function* () {
  const dispatcher = yield* Dispatcher.Dispatcher
  return (yield* Stream.runCollect(dispatcher.history())).map((entry) => entry.event)
})
