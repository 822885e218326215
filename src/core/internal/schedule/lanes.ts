/**
 * Takes looks up, so many at a time. One that takes long, as when its host does not answer, is not waited for: it goes on
 * beside the others. And schedules whose host was silent have a lane of their own: however many they are, those that
 * are answered never stand behind them.
 */
import { Duration, Effect, Fiber, FiberSet, Queue } from "effect"

/** A look that takes longer than this makes room for the next one. */
const patience = Duration.seconds(1)

export interface Look<A> {
  readonly isSilent: boolean
  readonly effect: Effect.Effect<A>
}

const begin =
  <A>(under: FiberSet.FiberSet) =>
  ({ effect }: Look<A>) =>
    Effect.tap(FiberSet.run(under, effect), (fiber) =>
      // It begins at once, and most have ended by now: a timer for each would cost more than the look.
      fiber.pollUnsafe() === undefined ? Effect.timeoutOption(Fiber.await(fiber), patience) : Effect.void
    )

/** Takes all of them up, and waits for the last. */
export const takeAll = Effect.fnUntraced(function* <A>(looks: ReadonlyArray<Look<A>>, concurrency: number) {
  const under = yield* FiberSet.make()
  const lanes = [looks.filter(({ isSilent }) => !isSilent), looks.filter(({ isSilent }) => isSilent)]
  const fibers = yield* Effect.forEach(lanes, (lane) => Effect.forEach(lane, begin<A>(under), { concurrency }), {
    concurrency: "unbounded"
  })
  return yield* Fiber.joinAll(fibers.flat())
}, Effect.scoped)

/** Takes up what is added, until the scope closes, which ends every look. */
export const make = Effect.fnUntraced(function* <A>(concurrency: number) {
  const under = yield* FiberSet.make()
  const makeLane = Effect.gen(function* () {
    const waiting = yield* Queue.unbounded<Look<A>>()
    const worker = Effect.forever(Effect.flatMap(Queue.take(waiting), begin<A>(under)))
    for (let i = 0; i < concurrency; i++) yield* Effect.forkScoped(worker)
    return waiting
  })
  const answered = yield* makeLane
  const silent = yield* makeLane
  return { add: (look: Look<A>) => Queue.offer(look.isSilent ? silent : answered, look) }
})
