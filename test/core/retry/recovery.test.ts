import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { RetryPolicy, Storage, type Turn } from "shiftboss"
import { type Act, advance, type Agent, eventOf, makeAgent, policy, seen, settle, turn } from "./agent.ts"
import { type Crash, crashing } from "./crash.ts"
import { minute, second } from "./play.ts"

/** Each attempt does what its number says, whichever host launches it. */
const byNumber = (...acts: ReadonlyArray<Act>) => {
  const overlaps: Array<number> = []
  const agent: Agent = makeAgent((attempt) => {
    if (agent.alive.size > 0) overlaps.push(attempt.number)
    return acts[attempt.number - 1] ?? { text: "done" }
  })
  agent.reaps = "stopped"
  return { agent, overlaps }
}

/** Runs the turn on a host that dies as told. */
const killed = Effect.fnUntraced(function* (
  agent: Agent,
  entries: Array<Storage.Json>,
  crash: Crash,
  asked: Turn.Turn = turn()
) {
  const host = crashing(entries, crash)
  yield* Effect.forkDetach(Effect.provide(RetryPolicy.run(asked), policy(agent, host.layer)))
  const dead = yield* Effect.forkChild(host.crashed)
  for (let tries = 0; tries < 300 && dead.pollUnsafe() === undefined; tries++) yield* advance(second)
  if (dead.pollUnsafe() === undefined) return yield* Effect.die(new Error("the host did not die"))
})

/** Runs the turn on a host that dies as told, then on one that does not. */
const overCrash = Effect.fnUntraced(function* (
  agent: Agent,
  crash: Crash,
  options: { readonly down?: number; readonly turn?: Turn.Turn } = {}
) {
  const entries: Array<Storage.Json> = []
  const asked = options.turn ?? turn()
  yield* killed(agent, entries, crash, asked)
  yield* advance(options.down ?? 0)
  const successor = crashing(entries, undefined)
  const host = yield* Effect.forkChild(Effect.provide(RetryPolicy.run(asked), policy(agent, successor.layer)))
  yield* advance(15 * minute)
  return { outcome: yield* Fiber.join(host), entries }
})

const busy = { after: 10 * second, activity: [seen("session-1")] }

describe("a host that dies", () => {
  it.effect("at any append leaves a turn that its successor takes to its end, without two agents at once", () =>
    Effect.gen(function* () {
      const acts: ReadonlyArray<Act> = [{ ...busy, fails: "StreamCut" }, { ...busy, fails: "Capacity" }, busy]
      const whole = crashing([], undefined)
      const host = yield* Effect.forkChild(
        Effect.provide(RetryPolicy.run(turn()), policy(byNumber(...acts).agent, whole.layer))
      )
      yield* advance(3 * minute)
      yield* Fiber.join(host)
      assert.isAbove(whole.appends(), 12)

      for (let at = 1; at <= whole.appends(); at++) {
        for (const written of [false, true]) {
          const { agent, overlaps } = byNumber(...acts)
          const { outcome, entries } = yield* overCrash(agent, { at, written })
          const where = `append ${at}, ${written ? "written" : "not written"}`
          assert.strictEqual(outcome.status, "succeeded", where)
          assert.deepStrictEqual(overlaps, [], where)
          const numbers = outcome.attempts.map((attempt) => attempt.number)
          assert.deepStrictEqual(
            numbers,
            numbers.map((_, index) => index + 1),
            where
          )
          const count = (tag: string) => entries.filter((entry) => eventOf(entry)._tag === tag).length
          assert.strictEqual(count("TurnStarted"), 1, where)
          assert.strictEqual(count("AttemptStarted"), count("AttemptEnded"), where)
          assert.isAtMost(agent.launches.length, 4, where)
        }
      }
    })
  )

  it.effect("before the launch: nothing ran, and the attempt is made again without being counted", () =>
    Effect.gen(function* () {
      const { agent } = byNumber(busy, { ...busy, result: { costUsd: 1, turns: 2 } })
      const { outcome } = yield* overCrash(agent, { at: 3, written: false })
      const { costUsd, turns } = outcome.totals
      assert.deepStrictEqual([costUsd.total, turns.total], [1, 2])
      assert.deepStrictEqual(
        outcome.attempts.map((attempt) => attempt.rule),
        ["first-attempt", "never-ran"]
      )
      assert.deepStrictEqual(agent.launches.length, 1)
      assert.deepStrictEqual(agent.reaped, [])
    })
  )

  it.effect("while the agent runs: it is stopped first, then its session is resumed", () =>
    Effect.gen(function* () {
      const tool = { _tag: "ToolStarted", id: "1", tool: "git push" } as const
      const running = makeAgent((attempt) =>
        attempt.number === 1 ? { after: 100 * minute, activity: [seen("s"), tool] } : {}
      )
      running.reaps = "stopped"
      // 1 TurnStarted, 2 AttemptStarted, 3 AgentIdentified, 4 SessionSeen, 5 ToolStarted
      const { outcome } = yield* overCrash(running, { at: 5, written: true })
      assert.deepStrictEqual(
        running.reaped.map((identity) => identity._tag === "Process" && identity.pid),
        [100]
      )
      assert.deepStrictEqual(running.launches[1]?.attempt.session, { _tag: "Resume", id: "s" })
      assert.include(running.launches[1]?.attempt.prompt ?? "", "git push")
      assert.strictEqual(outcome.attempts[0]?.failure?.kind, "Interrupted")
    })
  )

  it.effect("while the agent runs, and nobody can say whether it still does: nothing is launched", () =>
    Effect.gen(function* () {
      const agent = makeAgent(() => ({ after: 100 * minute }))
      agent.reaps = "unknown"
      const { outcome } = yield* overCrash(agent, { at: 4, written: true })
      assert.strictEqual(outcome.rule, "old-agent-not-proven-gone")
      assert.include(outcome.detail, "100")
      assert.strictEqual(agent.launches.length, 1)
    })
  )

  it.effect(
    "each time before the agent names a session: ten times is no fault of the agent, the eleventh ends the turn",
    () =>
      Effect.gen(function* () {
        const agent = makeAgent(() => ({ after: 100 * minute, activity: [] }))
        agent.reaps = "stopped"
        const entries: Array<Storage.Json> = []
        // 1 TurnStarted or AttemptEnded, 2 AttemptStarted, 3 AgentIdentified
        for (let life = 1; life <= 11; life++) yield* killed(agent, entries, { at: 3, written: true })
        const outcome = yield* Effect.provide(
          RetryPolicy.run(turn()),
          policy(agent, crashing(entries, undefined).layer)
        )
        assert.deepStrictEqual([outcome.status, outcome.rule], ["failed", "host-deaths-used"])
        assert.deepStrictEqual(
          outcome.attempts.map(({ rule }) => rule),
          ["first-attempt", ...Array.from({ length: 10 }, (_, index) => `host-died-fresh-${index + 1}`)]
        )
        assert.strictEqual(agent.reaped.length, 11)
      })
  )

  it.effect("after the ending was journaled: the attempt is not repeated", () =>
    Effect.gen(function* () {
      const { agent } = byNumber({ text: "the result" })
      // 1 TurnStarted, 2 AttemptStarted, 3 AgentIdentified, 4 SessionSeen, 5 AttemptEnded
      const { outcome } = yield* overCrash(agent, { at: 5, written: true })
      assert.strictEqual(outcome.text, "the result")
      assert.strictEqual(agent.launches.length, 1)
    })
  )

  it.effect("in a wait: it goes on with what is left of it", () =>
    Effect.gen(function* () {
      const { agent } = byNumber({ fails: "Network" })
      // 6 WaitStarted
      yield* overCrash(agent, { at: 6, written: true }, { down: 2 * minute })
      assert.deepStrictEqual(
        agent.launches.map(({ at }) => at),
        [0, 10 * minute]
      )
    })
  )

  it.effect("in a wait that is over when its successor comes: nothing more is waited", () =>
    Effect.gen(function* () {
      const { agent } = byNumber({ fails: "Network" })
      yield* overCrash(agent, { at: 6, written: true }, { down: 20 * minute })
      assert.deepStrictEqual(
        agent.launches.map(({ at }) => at),
        [0, 20 * minute + second]
      )
    })
  )

  it.effect("in a hold: its end does not move", () =>
    Effect.gen(function* () {
      const { agent } = byNumber({ fails: { kind: "RateLimited", resetIn: 8 * minute } })
      const rules = { resetJitter: 0 }
      yield* overCrash(agent, { at: 6, written: true }, { turn: turn({ rules }) })
      assert.deepStrictEqual(
        agent.launches.map(({ at }) => at),
        [0, 10 * minute]
      )
      assert.strictEqual(agent.launches[1]?.attempt.session._tag, "Resume")
    })
  )
})

describe("a storage that takes its time", () => {
  it.effect("keeps what was being written when its turn is interrupted, and fails nobody for it", () =>
    Effect.gen(function* () {
      const entries: Array<Storage.Json> = []
      const storage = yield* Storage.Storage.pipe(Effect.provide(crashing(entries, undefined).layer))
      const open = (log: string) =>
        Effect.map(storage.open(log), (inner) => ({
          ...inner,
          append: (added: ReadonlyArray<Storage.Json>) => Effect.andThen(Effect.sleep(second), inner.append(added))
        }))
      const agent = makeAgent(() => ({ after: second }))
      yield* Effect.gen(function* () {
        const cut = yield* Effect.forkChild(RetryPolicy.run(turn()))
        const other = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "other" })))
        yield* settle
        yield* Fiber.interrupt(cut)
        const again = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* advance(minute)
        const outcomes = [yield* Fiber.join(other), yield* Fiber.join(again)]
        assert.deepStrictEqual(
          outcomes.map(({ status }) => status),
          ["succeeded", "succeeded"]
        )
        const begun = entries.map(eventOf).filter((event) => event._tag === "TurnStarted")
        assert.strictEqual(begun.length, 2)
      }).pipe(Effect.provide(policy(agent, Layer.succeed(Storage.Storage, Storage.Storage.of({ ...storage, open })))))
    })
  )
})

describe("a storage that fails", () => {
  it.effect("before the agent's identity is kept: the agent does nothing, and the next call begins", () =>
    Effect.gen(function* () {
      const entries: Array<Storage.Json> = []
      const agent = makeAgent(() => ({}))
      let failing = true
      const storage = yield* Storage.Storage.pipe(Effect.provide(crashing(entries, undefined).layer))
      const open = (log: string) =>
        Effect.map(storage.open(log), (inner) => ({
          ...inner,
          append: (added: ReadonlyArray<Storage.Json>) =>
            failing && JSON.stringify(added).includes("AgentIdentified")
              ? Effect.fail(
                  new Storage.StorageError({ operation: "append", log, remedy: "Make room.", cause: new Error("full") })
                )
              : inner.append(added)
        }))
      const layer = policy(agent, Layer.succeed(Storage.Storage, Storage.Storage.of({ ...storage, open })))
      yield* Effect.gen(function* () {
        const error = yield* Effect.flip(RetryPolicy.run(turn()))
        assert.strictEqual(error._tag, "StorageError")
        assert.strictEqual(agent.launches.length, 0)
        failing = false
        assert.strictEqual((yield* RetryPolicy.run(turn())).status, "succeeded")
        yield* settle
      }).pipe(Effect.provide(layer))
    })
  )

  it.effect("by having been taken over stops every agent of this host at once", () =>
    Effect.gen(function* () {
      const agent = makeAgent((attempt) => ({ after: attempt.turnId === "a" ? minute : 2 * minute }))
      const storage = yield* Storage.Storage.pipe(Effect.provide(crashing([], undefined).layer))
      const open = (log: string) =>
        Effect.map(storage.open(log), (inner) => ({
          ...inner,
          append: (added: ReadonlyArray<Storage.Json>) =>
            JSON.stringify(added).includes("AttemptEnded") && JSON.stringify(added).includes('"a"')
              ? Effect.fail(new Storage.LogFenced({ log }))
              : inner.append(added)
        }))
      yield* Effect.gen(function* () {
        const hosts = yield* Effect.forEach(["a", "b"], (id) => Effect.forkChild(RetryPolicy.run(turn({ id }))))
        yield* advance(minute)
        const errors = yield* Effect.forEach(hosts, (host) => Effect.flip(Fiber.join(host)))
        assert.deepStrictEqual(
          errors.map((error) => error._tag),
          ["LogFenced", "LogFenced"]
        )
        assert.strictEqual(agent.alive.size, 0)
      }).pipe(Effect.provide(policy(agent, Layer.succeed(Storage.Storage, Storage.Storage.of({ ...storage, open })))))
    })
  )
})
