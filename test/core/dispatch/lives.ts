/** Lives of a program that end as they should not: by a stop, an interruption, or a crash of the process at some append. */
import { Effect, Exit, Fiber, Layer, Stream } from "effect"
import * as fc from "fast-check"
import { Dispatcher, Storage } from "shiftboss"
import { Advance, type FaultyStorage } from "shiftboss/testing"

/** How a life ends before the work is done. */
export type Blow =
  | { readonly blow: "stop" | "interrupt"; readonly afterSeconds: number }
  | { readonly blow: "crash" | "crash-after" | "tear" | "fail"; readonly append: number }

export const blow: fc.Arbitrary<Blow> = fc.oneof(
  fc.record({
    blow: fc.constantFrom("stop" as const, "interrupt" as const),
    afterSeconds: fc.integer({ min: 0, max: 90 })
  }),
  fc.record({
    blow: fc.constantFrom("crash" as const, "crash-after" as const, "tear" as const, "fail" as const),
    append: fc.integer({ min: 1, max: 14 })
  })
)

export interface Life<A, E> {
  readonly disk: FaultyStorage.FaultyStorage
  readonly blow: Blow | undefined
  /** What the process does. Finalizers of a dead process run in this one all the same: `isDead` tells them apart. */
  readonly run: (isDead: () => boolean) => Effect.Effect<A, E, Dispatcher.Dispatcher>
  /** Asked every five seconds before a stop or an interruption. */
  readonly look?: Effect.Effect<void, unknown, Dispatcher.Dispatcher>
  readonly expect: (holds: boolean, rule: string) => void
  readonly ended: () => void
}

/** A stop takes no longer: `stopWithin`, and `grace` three times. */
const bound = 15 + 3 * 5

/** Virtual time until the effect has ended, in seconds. */
const passUntil = Effect.fnUntraced(function* <A, E>(fiber: Fiber.Fiber<A, E>, most: number) {
  let seconds = 0
  for (; fiber.pollUnsafe() === undefined && seconds < most; seconds += 5) yield* Advance.advance("5 seconds")
  return seconds
})

/** Lives it, and answers with what came of it when it was not cut off. */
export const live = Effect.fnUntraced(function* <A, E>({ disk, blow, run, look, expect, ended }: Life<A, E>) {
  const appends = blow !== undefined && "append" in blow
  const life = disk.restart(appends ? [{ on: "append", at: blow.append, wrong: blow.blow }] : [])
  let dead = false
  const process = Effect.gen(function* () {
    const dispatcher = yield* Dispatcher.Dispatcher
    const running = yield* Effect.forkChild(
      Effect.onExit(
        run(() => dead),
        () => Effect.sync(() => (dead ||= appends))
      )
    )
    if (blow !== undefined && "afterSeconds" in blow) {
      for (let s = 0; s < blow.afterSeconds && running.pollUnsafe() === undefined; s += 5) {
        yield* Advance.advance("5 seconds")
        if (look !== undefined) yield* look
      }
      const ending = yield* Effect.forkChild(blow.blow === "stop" ? dispatcher.stop : Fiber.interrupt(running))
      const took = yield* passUntil(ending, 600)
      expect(took <= bound, `a ${blow.blow} took ${took} seconds`)
    } else yield* passUntil(running, 100_000)
    return yield* Effect.exit(Fiber.join(running))
  }).pipe(Effect.provide(Layer.fresh(Dispatcher.layer)))
  const lived = yield* Effect.forkChild(life.run(process))
  yield* passUntil(lived, 100_000)
  const exit = yield* Fiber.join(lived)
  dead = true
  ended()
  return exit !== undefined && Exit.isSuccess(exit) && Exit.isSuccess(exit.value) ? exit.value.value : undefined
})

/** All events that survived. */
export const eventsOn = (disk: FaultyStorage.FaultyStorage) =>
  Effect.gen(function* () {
    const { history } = yield* Dispatcher.Dispatcher
    return (yield* Stream.runCollect(history())).map((entry) => entry.event)
  }).pipe(Effect.provide(Layer.fresh(Dispatcher.layer)), Effect.provideService(Storage.Storage, disk.restart().storage))
