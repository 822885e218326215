/**
 * What a turn that waits costs in memory, and what a decision about a turn costs in time. After a build:
 *
 *     node test/bench/turns.bench.ts [turns]
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Clock, Effect, Layer, Stream } from "effect"
import { AgentLauncher, Failure, RetryPolicy, Storage, type Turn } from "shiftboss"
import { count as shown, figure, table } from "./measure.ts"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void
/** Some of what is garbage is only found to be so by the second or third look. */
const heap = Effect.gen(function* () {
  for (let look = 0; look < 4; look++) {
    collect()
    yield* Effect.sleep(100)
  }
  return process.memoryUsage().heapUsed
})

const count = Number(process.argv[2] ?? 10_000)
const hour = 3_600_000

/** A log on a disk takes no memory: what is written is gone. */
const disk = Storage.Storage.of({
  shared: false,
  open: (name) => Effect.succeed({ name, replay: Stream.empty, append: () => Effect.void, replace: () => Effect.void }),
  read: () => Stream.empty,
  list: () => Stream.empty,
  remove: () => Effect.void
})

/** An agent that tells its session, and then meets a limit of an hour that is nobody else's. */
const agent = AgentLauncher.layer((attempt, emit) =>
  Effect.gen(function* () {
    yield* emit({ _tag: "SessionSeen", id: attempt.session.id })
    const resetAt = (yield* Clock.currentTimeMillis) + hour
    return yield* Effect.fail(Failure.make("RateLimited", "You've hit your limit", { scope: "request", resetAt }))
  })
)

const policy = Layer.fresh(RetryPolicy.layerWith({ firstLaunchAlone: 0 })).pipe(
  Layer.provide([agent, Layer.succeed(Storage.Storage, disk)])
)

/** As many as are started at once, so that what they need to start is not taken for what they keep. */
const atOnce = 50
const warmUp = 2000

/** Bytes of the heap for each turn, its fiber counted, the host's own `Turn` not. */
const bytesEach = (
  rules: Turn.Turn["rules"],
  run: (turn: Turn.Turn) => Effect.Effect<unknown, unknown, RetryPolicy.RetryPolicy>
): Promise<number> => {
  const turns = Array.from({ length: count + warmUp }, (_, index) => ({
    ...{ id: `case-${index}/implement`, prompt: "Do it.", rules }
  }))
  const start = (some: ReadonlyArray<Turn.Turn>) =>
    Effect.forEach(
      some,
      (turn, index) =>
        Effect.andThen(Effect.forkChild(run(turn)), index % atOnce === 0 ? Effect.sleep(5) : Effect.void),
      { discard: true }
    )
  return Effect.gen(function* () {
    yield* start(turns.slice(0, warmUp))
    const before = yield* heap
    yield* start(turns.slice(warmUp))
    return Math.round(((yield* heap) - before) / count)
  }).pipe(Effect.provide(policy), Effect.runPromise)
}

/** A turn that has met capacity twice and then a limit: what is decided about it, in microseconds. */
const decision = (): number => {
  const turn: Turn.Turn = { id: "t", prompt: "Do it.", budgetUsd: 10 }
  const turnId = turn.id
  const events = (number: number, kind: Failure.FailureKind): ReadonlyArray<Turn.Event> => [
    {
      ...{ _tag: "AttemptStarted", turnId, at: number, number, purpose: "retry", rule: "r", model: null },
      session: { _tag: "New", id: `s${number}` }
    },
    {
      ...{ _tag: "AttemptEnded", turnId },
      ending: {
        ...{ at: number, failure: Failure.make(kind, kind), estimatedCostUsd: null, ran: true },
        result: AgentLauncher.result("", { costUsd: 1 })
      }
    }
  ]
  const state = [
    { _tag: "TurnStarted", turnId, at: 0, head: null, account: null } as const,
    ...events(1, "Capacity"),
    ...events(2, "RateLimited")
  ].reduce<Turn.State | undefined>(RetryPolicy.evolve, undefined)
  if (state === undefined) throw new Error("nothing has started")
  const rounds = 200_000
  let waits = 0
  const from = performance.now()
  for (let round = 0; round < rounds; round++) {
    if (RetryPolicy.decide(turn, state, { now: round % 1000, jitter: 0.5 })._tag === "Wait") waits += 1
  }
  const micros = ((performance.now() - from) * 1000) / rounds
  if (waits !== rounds) throw new Error("it should wait")
  return micros
}

const waiting = await bytesEach({}, RetryPolicy.run)
const held = await bytesEach({ inlineWait: 0 }, RetryPolicy.run)
const bare = await bytesEach({}, () => Effect.never)
table(
  "Turns of 10,000 at once, their fibers included, and a decision about one",
  ["", "measured", "goal"],
  [
    ["memory of one that waits in its call, bytes", shown(waiting), "less than 4,096"],
    ["memory of one that is held, bytes", shown(held), ""],
    ["memory of a fiber that does nothing, for comparison, bytes", shown(bare), ""],
    ["a decision, µs", figure(decision()), ""]
  ]
)
process.exit(0)
