import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import { AgentLauncher, Failure, Silence } from "shiftboss"
import { ScriptedLauncher } from "shiftboss/testing"

const attempt: AgentLauncher.Attempt = {
  turnId: "turn",
  number: 1,
  prompt: "go",
  session: { _tag: "New", id: "s" },
  limits: { silence: Duration.minutes(10), wallClock: Duration.hours(2) }
}

const text = (said: string): AgentLauncher.Activity => ({ _tag: "Text", text: said })
const usage: AgentLauncher.Activity = {
  _tag: "AgentRetry",
  failure: Failure.make("Network", "refused"),
  delayMillis: null
}

type Agent = (
  attempt: AgentLauncher.Attempt,
  emit: (activity: AgentLauncher.Activity) => Effect.Effect<void>
) => Effect.Effect<AgentLauncher.Ending, Failure.Failure>

const launching = (agent: Agent) =>
  Effect.flatMap(AgentLauncher.makeLauncher(agent), (launcher) => launcher.launch(attempt, () => Effect.void))

const endingOf = (run: AgentLauncher.AgentRun) =>
  Effect.map(run.ended, (ending) => (ending._tag === "Failed" ? ending.failure : ending.result.text))

describe("AgentLauncher.layer", () => {
  it.effect("makes a launcher of an effect and gives it what it requires", () => {
    class Greeting extends Context.Service<Greeting, string>()("Greeting") {}
    const agent = ({ prompt }: AgentLauncher.Attempt) =>
      Effect.map(Greeting, (greeting) => AgentLauncher.result(`${greeting}, ${prompt}`, { costUsd: 1 }))
    const layer = AgentLauncher.layer(agent).pipe(Layer.provide(Layer.succeed(Greeting, "hello")))
    return Effect.gen(function* () {
      const launcher = yield* AgentLauncher.AgentLauncher
      const run = yield* launcher.launch(attempt, () => Effect.void)
      assert.deepStrictEqual(yield* run.ended, AgentLauncher.succeeded("hello, go", { costUsd: 1 }))
      assert.match(
        yield* launcher.newSessionId,
        /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("ends with its failure, and a defect as LauncherFailed", () =>
    Effect.gen(function* () {
      const failed = yield* launching(() => Effect.fail(Failure.make("Capacity", "529")))
      assert.deepStrictEqual(yield* endingOf(failed), Failure.make("Capacity", "529"))
      const died = yield* launching(() => Effect.die("a bug"))
      assert.deepStrictEqual(yield* endingOf(died), Failure.make("LauncherFailed", "The agent died: a bug"))
      const threw = yield* launching(() => {
        throw new Error("another")
      })
      assert.deepInclude(yield* endingOf(threw), { kind: "LauncherFailed" })
    })
  )

  it.effect("ends a silent agent after exactly its limit", () =>
    Effect.gen(function* () {
      const run = yield* launching((_, emit) => Effect.andThen(Effect.delay(emit(text("x")), "1 minute"), Effect.never))
      const ended = yield* Effect.forkChild(run.ended)
      yield* TestClock.adjust(Duration.millis(11 * 60_000 - 1))
      assert.isUndefined(ended.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepInclude(yield* endingOf(run), { kind: "Hung", detail: "There was no activity for 10m" })
    })
  )

  it.effect("gives an agent whose tool runs three times as long", () =>
    Effect.gen(function* () {
      const tool = { _tag: "ToolStarted", id: "t", tool: "Bash" } as const
      const run = yield* launching((_, emit) => Effect.andThen(emit(tool), Effect.never))
      const ended = yield* Effect.forkChild(run.ended)
      yield* TestClock.adjust("29 minutes")
      assert.isUndefined(ended.pollUnsafe())
      yield* TestClock.adjust("1 minute")
      assert.deepInclude(yield* endingOf(run), { kind: "Hung" })
    })
  )

  it.effect("ends a busy agent when its time is over", () =>
    Effect.gen(function* () {
      const run = yield* launching((_, emit) => Effect.forever(Effect.delay(emit(text("x")), "5 minutes")))
      yield* TestClock.adjust("2 hours")
      assert.deepInclude(yield* endingOf(run), { kind: "Hung", detail: "It was not done after 2h" })
    })
  )

  it.effect("waits for an agent that cannot be interrupted just now", () =>
    Effect.gen(function* () {
      let saved = false
      const saving = Effect.uninterruptible(
        Effect.delay(
          Effect.sync(() => (saved = true)),
          "1 minute"
        )
      )
      const run = yield* launching(() => Effect.as(saving, AgentLauncher.succeeded("x")))
      const stopping = yield* Effect.forkChild(run.stop(0), { startImmediately: true })
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(stopping.pollUnsafe())
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stopping)
      assert.isTrue(saved)
    })
  )
})

describe("Feed", () => {
  it.effect("begins with the session, however late one comes", () =>
    Effect.gen(function* () {
      const feed = yield* AgentLauncher.makeFeed
      const session = { _tag: "SessionSeen", id: "s" } as const
      feed.publish(session)
      for (let n = 0; n < 1000; n++) feed.publish(text(String(n)))
      feed.end()
      feed.publish(text("after the end"))
      const seen = yield* Stream.runCollect(feed.stream)
      assert.strictEqual(seen.length, 65)
      assert.deepStrictEqual([seen[0], seen[1], seen.at(-1)], [session, text("936"), text("999")])
    })
  )

  it.effect("never waits for one that watches slowly, who misses the oldest", () =>
    Effect.gen(function* () {
      const feed = yield* AgentLauncher.makeFeed
      feed.publish(text("first"))
      const slow = yield* Effect.forkChild(Stream.runCollect(Stream.tap(feed.stream, () => Effect.sleep("1 second"))), {
        startImmediately: true
      })
      yield* Effect.yieldNow
      for (let n = 0; n < 5000; n++) feed.publish(text(String(n)))
      feed.end()
      yield* TestClock.adjust("2 hours")
      const seen = yield* Fiber.join(slow)
      assert.isBelow(seen.length, 2000)
      assert.deepStrictEqual(seen.at(-1), text("4999"))
    })
  )
})

describe("Silence", () => {
  const after = (...steps: ReadonlyArray<readonly [number, AgentLauncher.Activity?]>) =>
    steps.reduce((silence, [at, activity]) => Silence.seen(silence, at, activity), Silence.begin(0))
  const retry = (delayMillis: number | null): AgentLauncher.Activity => ({ ...usage, delayMillis })
  const tool = (id: string): AgentLauncher.Activity => ({ _tag: "ToolStarted", id, tool: "t" })
  const toolEnded = (id: string): AgentLauncher.Activity => ({ _tag: "ToolEnded", id, tool: "t" })

  it("counts from the launch, then from what was seen last", () => {
    assert.strictEqual(Silence.dueAt(after(), 100), 100)
    assert.strictEqual(Silence.dueAt(after([40]), 100), 140)
  })

  it("is patient while any tool runs", () => {
    assert.strictEqual(Silence.dueAt(after([10, tool("a")], [20, tool("b")], [30, toolEnded("a")]), 100), 330)
    assert.strictEqual(Silence.dueAt(after([10, tool("a")], [30, toolEnded("a")]), 100), 130)
  })

  it("gives an agent the wait it has announced", () => {
    assert.strictEqual(Silence.dueAt(after([10, retry(50)]), 100), 160)
    assert.strictEqual(Silence.dueAt(after([10, retry(7_200_000)]), 100), 7_200_110)
  })

  it("does not wait for ever for one that tries for ever", () => {
    const forever = after(...Array.from({ length: 100 }, (_, n) => [10 + n * 5, retry(null)] as const))
    assert.strictEqual(Silence.dueAt(forever, 100), 310)
  })

  it("begins anew with anything that is no retry", () => {
    assert.strictEqual(Silence.dueAt(after([10, retry(null)], [200, text("x")], [250, retry(null)]), 100), 350)
  })
})

describe("ScriptedLauncher", () => {
  const launch = (number: number) =>
    Effect.flatMap(AgentLauncher.AgentLauncher, (launcher) =>
      launcher.launch({ ...attempt, number }, () => Effect.void)
    )

  it.effect("plays its script by launch and remembers what it was asked", () =>
    Effect.gen(function* () {
      const first = yield* launch(1)
      assert.deepInclude(yield* endingOf(first), { kind: "Capacity" })
      const second = yield* launch(2)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* endingOf(second), "done")
      assert.deepStrictEqual(yield* Stream.runCollect(second.activity), [text("working")])
      const refused = yield* Effect.flip(launch(3))
      assert.strictEqual(refused.message, "no such program")
      const launches = yield* ScriptedLauncher.Launches
      assert.deepStrictEqual(
        (yield* launches.all).map((asked) => asked.number),
        [1, 2, 3]
      )
    }).pipe(
      Effect.provide(
        ScriptedLauncher.layer((_, { launch: n, emit }) => {
          if (n === 1) return AgentLauncher.failed(Failure.make("Capacity", "529"))
          if (n === 3) {
            return new AgentLauncher.LaunchError({ failure: Failure.make("LauncherFailed", "no such program") })
          }
          return Effect.delay(Effect.as(emit(text("working")), AgentLauncher.succeeded("done")), "1 minute")
        })
      )
    )
  )

  it.effect("is who its script says, and answers for what was left", () =>
    Effect.gen(function* () {
      const run = yield* launch(1)
      assert.deepStrictEqual(run.identity, { _tag: "Remote", id: "1" })
      const launcher = yield* AgentLauncher.AgentLauncher
      assert.strictEqual(yield* launcher.reap(run.identity), "stopped")
      const launches = yield* ScriptedLauncher.Launches
      assert.deepStrictEqual(yield* launches.reaped, [run.identity])
      assert.deepStrictEqual([yield* launcher.newSessionId, yield* launcher.newSessionId], ["session-1", "session-2"])
    }).pipe(
      Effect.provide(
        ScriptedLauncher.layer(() => AgentLauncher.succeeded("x"), {
          identity: (n) => ({ _tag: "Remote", id: String(n) }),
          reap: () => "stopped"
        })
      )
    )
  )
})
