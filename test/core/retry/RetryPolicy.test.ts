import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Random, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { RetryPolicy, Storage, Workspace } from "shiftboss"
import { advance, type Act, type Agent, eventOf, journaled, makeAgent, policy, seen, settle, turn } from "./agent.ts"
import { minute, second } from "./play.ts"

const scripted = (...acts: ReadonlyArray<Act>) => makeAgent((_, index) => acts[index] ?? {})

const launchTimes = (agent: Agent) => agent.launches.map(({ at }) => at)

const fails = (kind: NonNullable<Act["fails"]>, more: Act = {}): Act => ({ fails: kind, ...more })

describe("a turn", () => {
  it.effect("waits exactly as the ladder says, and answers what the last attempt gave", () => {
    const agent = scripted(fails("Capacity"), fails("Network"), { text: "at last" })
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance("41 minutes")
      const outcome = yield* Fiber.join(fiber)
      assert.strictEqual(outcome.status, "succeeded")
      assert.strictEqual(outcome.text, "at last")
      assert.deepStrictEqual(launchTimes(agent), [0, minute, 41 * minute])
      assert.deepStrictEqual(
        outcome.attempts.map((attempt) => attempt.rule),
        ["first-attempt", "capacity-retry-1", "network-retry-2"]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("that has succeeded is not done again", () => {
    const agent = scripted()
    return Effect.gen(function* () {
      const first = yield* RetryPolicy.run(turn())
      assert.deepStrictEqual(yield* RetryPolicy.run(turn()), first)
      assert.strictEqual(agent.launches.length, 1)
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("that had failed begins another round in its session, and its totals go on", () => {
    const agent = scripted(fails("Auth", { result: { costUsd: 1, text: "" } }), { result: { costUsd: 2 } })
    return Effect.gen(function* () {
      assert.strictEqual((yield* RetryPolicy.run(turn())).rule, "auth-stop")
      const outcome = yield* RetryPolicy.run(turn())
      assert.strictEqual(outcome.rounds, 2)
      assert.deepStrictEqual(outcome.totals.costUsd, { total: 3, known: 3 })
      assert.deepStrictEqual(agent.launches[1]?.attempt.session, { _tag: "Resume", id: "session-1" })
      assert.strictEqual(agent.launches[1]?.attempt.number, 2)
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("cannot be run twice at once", () => {
    const agent = scripted({ after: minute })
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* settle
      assert.strictEqual((yield* Effect.flip(RetryPolicy.run(turn())))._tag, "TurnRunning")
      yield* advance(minute)
      assert.strictEqual((yield* Fiber.join(fiber)).status, "succeeded")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("keeps what is unknown unknown, with the known part beside it", () => {
    const usage = { input: 10, output: 5, cacheRead: null, cacheWrite: 0, reasoning: null }
    const agent = scripted(fails("StreamCut", { result: { usage, costUsd: 0.5, turns: 2 } }), fails("StreamCut"), {
      text: "ok",
      result: { usage, costUsd: 0.25, turns: 1 }
    })
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn({ budgetUsd: 10 })))
      yield* advance(minute)
      const { totals, budgetVerified } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(totals.usage.input, { total: null, known: 20 })
      assert.deepStrictEqual(totals.usage.cacheRead, { total: null, known: null })
      assert.deepStrictEqual(totals.costUsd, { total: null, known: 0.75 })
      assert.deepStrictEqual(totals.turns, { total: null, known: 3 })
      assert.isFalse(budgetVerified)
      assert.deepStrictEqual(
        agent.launches.map(({ attempt }) => attempt.budgetUsd),
        [10, 9.5, 9.5]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("takes counters that go on over a session apart before it adds them up", () => {
    const counters = { usage: "session", cost: "session" } as const
    const total = (input: number, costUsd: number) => ({
      ...{ usage: { input, output: input, cacheRead: 0, cacheWrite: 0, reasoning: null }, costUsd },
      ...{ counters, sessionId: "session-1" }
    })
    const agent = scripted(
      fails("StreamCut", { result: total(100, 1) }),
      fails("StreamCut", { result: total(150, 1.5) }),
      { result: total(400, 4) }
    )
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn({ budgetUsd: 10 })))
      yield* advance(minute)
      const { attempts, totals } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        attempts.map(({ costUsd }) => costUsd),
        [1, 0.5, 2.5]
      )
      assert.deepStrictEqual([totals.costUsd.total, totals.usage.input.total], [4, 400])
      assert.deepStrictEqual(
        agent.launches.map(({ attempt }) => attempt.budgetUsd),
        [10, 9, 8.5]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("counts an estimate against the budget, apart from the cost", () => {
    const usage = { input: 1_000_000, output: 100_000, cacheRead: 0, cacheWrite: 0, reasoning: null }
    const agent = scripted(fails("Capacity", { result: { usage, model: "m" } }), {})
    const prices = { m: { input: 2, output: 10 } }
    return Effect.gen(function* () {
      const outcome = yield* RetryPolicy.run(turn({ budgetUsd: 3 }))
      assert.strictEqual(outcome.rule, "budget-exhausted")
      assert.strictEqual(outcome.totals.estimatedCostUsd, 3)
      assert.deepStrictEqual(outcome.totals.costUsd, { total: null, known: null })
      assert.isTrue(outcome.budgetVerified)
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory, { prices })))
  })

  it.effect("keeps the metadata of the last result when later attempts print none", () => {
    const agent = scripted(fails("Capacity", { result: { text: "half", sessionId: "s", model: "m" } }), fails("Auth"))
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(minute)
      const outcome = yield* Fiber.join(fiber)
      assert.strictEqual(outcome.status, "failed")
      assert.strictEqual(outcome.text, "")
      assert.deepStrictEqual([outcome.result?.model, outcome.result?.text], ["m", ""])
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("records a model that the command cannot take, and uses the original", () => {
    const agent = makeAgent((attempt, index) =>
      attempt.model === "other" ? { unlaunched: true, fails: "ModelUnavailable" } : index < 2 ? fails("Capacity") : {}
    )
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(
        RetryPolicy.run(turn({ model: "mine", rules: { fallbackModels: ["other"] } }))
      )
      yield* advance("4 minutes")
      const outcome = yield* Fiber.join(fiber)
      assert.deepStrictEqual(outcome.attempts.map(({ rule, model }) => `${rule} ${model}`).slice(2), [
        "capacity-retry-2 other",
        "fallback-model-unavailable mine"
      ])
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })
})

describe("a wait", () => {
  const held = { rules: { inlineWait: 0 } }

  it.effect("ends the call with the time it is due when it is longer than the call may wait, and goes on", () => {
    const agent = scripted(fails("Capacity"), {})
    return Effect.gen(function* () {
      const error = yield* Effect.flip(RetryPolicy.run(turn(held)))
      assert.isTrue(error._tag === "Held" && error.until === minute && error.rule === "capacity-retry-1")
      yield* advance(30 * second)
      assert.strictEqual((yield* Effect.flip(RetryPolicy.run(turn(held))))._tag, "Held")
      yield* advance(30 * second)
      assert.strictEqual((yield* RetryPolicy.run(turn(held))).status, "succeeded")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("for the network ends early when the probe gets through", () => {
    const agent = scripted(fails("Network"), {})
    let back = false
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(minute)
      back = true
      yield* advance(30 * second)
      assert.strictEqual((yield* Fiber.join(fiber)).status, "succeeded")
      assert.deepStrictEqual(launchTimes(agent), [0, 90 * second])
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory, { networkProbe: Effect.sync(() => back) })))
  })

  it.effect("is not stretched by a clock that steps back", () => {
    const agent = scripted(fails("Capacity"), {})
    return Effect.gen(function* () {
      yield* TestClock.setTime(100 * minute)
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* settle
      assert.strictEqual(agent.launches.length, 1)
      yield* Fiber.interrupt(fiber)
      yield* TestClock.setTime(10 * minute)
      const again = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(minute)
      assert.strictEqual((yield* Fiber.join(again)).status, "succeeded")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("for good is an outcome until its time, and another round after it", () => {
    const agent = scripted(fails({ kind: "RateLimited", resetIn: 24 * 60 * minute }), {})
    return Effect.gen(function* () {
      const outcome = yield* RetryPolicy.run(turn())
      assert.strictEqual(outcome.status, "held")
      assert.deepStrictEqual(yield* RetryPolicy.run(turn()), outcome)
      assert.strictEqual(agent.launches.length, 1)
      yield* TestClock.setTime(outcome.until ?? 0)
      assert.strictEqual((yield* RetryPolicy.run(turn())).status, "succeeded")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)), Random.withSeed("reset"))
  })

  it.effect("for good ends when the turn is run on another account", () => {
    const agent = scripted(fails({ kind: "RateLimited", resetIn: 24 * 60 * minute }), {})
    return Effect.gen(function* () {
      assert.strictEqual((yield* RetryPolicy.run(turn({ account: "one" }))).status, "held")
      assert.strictEqual((yield* RetryPolicy.run(turn({ account: "one" }))).status, "held")
      assert.strictEqual((yield* RetryPolicy.run(turn({ account: "two" }))).status, "succeeded")
      assert.strictEqual(agent.launches[1]?.attempt.session._tag, "Resume")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })
})

describe("a stop", () => {
  it.effect("ends a wait at once, and what is left of it is waited when the turn is run again", () => {
    const agent = scripted(fails("Capacity"), {})
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(20 * second)
      yield* RetryPolicy.stop("t")
      assert.strictEqual((yield* Fiber.join(fiber)).status, "stopped")
      const again = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(40 * second)
      const outcome = yield* Fiber.join(again)
      assert.deepStrictEqual(
        outcome.attempts.map((attempt) => attempt.rule),
        ["first-attempt", "capacity-retry-1"]
      )
      assert.deepStrictEqual(launchTimes(agent), [0, minute])
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("of a running attempt stops the agent; the next call resumes its session, charging nobody", () => {
    const agent = scripted({ after: minute }, {})
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* settle
      yield* RetryPolicy.stop("t")
      assert.strictEqual((yield* Fiber.join(fiber)).status, "stopped")
      assert.strictEqual(agent.alive.size, 0)
      const outcome = yield* RetryPolicy.run(turn())
      assert.strictEqual(outcome.rounds, 1)
      assert.deepStrictEqual(agent.launches[1]?.attempt.session, { _tag: "Resume", id: "session-1" })
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("does not throw away a result that was there in time", () => {
    const agent = scripted({ after: minute, succeedsWhenStopped: true })
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* settle
      yield* RetryPolicy.stop("t")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "in time")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("of a turn nobody runs is no error", () =>
    RetryPolicy.stop("nobody").pipe(Effect.provide(policy(scripted(), Storage.layerMemory)))
  )

  it.effect("by interruption stops the agent and leaves the turn resumable", () => {
    const agent = scripted({ after: minute }, {})
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* settle
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(agent.alive.size, 0)
      const outcome = yield* RetryPolicy.run(turn())
      assert.deepStrictEqual(
        outcome.attempts.map((attempt) => attempt.rule),
        ["first-attempt", "resumed-after-stop"]
      )
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })
})

describe("a repeat", () => {
  const workspace = (over: Partial<Workspace.WorkspaceShape>) =>
    Layer.succeed(Workspace.Workspace, {
      head: () => Effect.succeed("c0"),
      evidence: () => Effect.succeed({ head: "c1", commits: ["c1 half of it"], dirty: ["a.ts"] }),
      locked: () => Effect.succeed(undefined),
      ...over
    })
  const within = (agent: Agent, over: Partial<Workspace.WorkspaceShape> = {}) =>
    Layer.provide(policy(agent, Storage.layerMemory), workspace(over))

  it.effect("after a cut tells what was done and which tool calls are open, without the task in its session", () => {
    const tool = { _tag: "ToolStarted", id: "1", tool: "git push" } as const
    const done = { id: "2", tool: "git fetch" }
    const activity: Act["activity"] = [
      seen("session-1"),
      tool,
      { _tag: "ToolStarted", ...done },
      { _tag: "ToolEnded", ...done }
    ]
    const agent = scripted(fails("StreamCut", { after: second, activity }), {})
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(second)
      assert.strictEqual((yield* Fiber.join(fiber)).head, "c0")
      const prompt = agent.launches[1]?.attempt.prompt ?? ""
      for (const part of ["it was StreamCut", "c1 half of it", "a.ts", "git push"]) assert.include(prompt, part)
      for (const part of ["do the task", "git fetch"]) assert.notInclude(prompt, part)
    }).pipe(Effect.provide(within(agent)))
  })

  it.effect("in a new session has the task, and no evidence when nothing can have been cut off", () => {
    const agent = scripted(fails("Capacity"), {})
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
      yield* advance(minute)
      yield* Fiber.join(fiber)
      const prompt = agent.launches[1]?.attempt.prompt ?? ""
      assert.include(prompt, "do the task")
      assert.include(prompt, "it was Capacity")
      assert.notInclude(prompt, "c1 half of it")
    }).pipe(Effect.provide(within(agent)))
  })

  it.effect("into a locked workspace is not launched: the turn ends with the lock and the fix", () => {
    const agent = scripted(fails("StreamCut"), {})
    const locked = () => Effect.succeed({ lock: "/r/.git/index.lock", fix: "Remove it." })
    return Effect.gen(function* () {
      const outcome = yield* RetryPolicy.run(turn())
      assert.strictEqual(outcome.rule, "workspace-locked")
      assert.include(outcome.detail, "/r/.git/index.lock")
      assert.strictEqual(outcome.fix, "Remove it.")
      assert.strictEqual(agent.launches.length, 1)
      assert.include(JSON.stringify(yield* journaled()), "/r/.git/index.lock")
    }).pipe(Effect.provide(within(agent, { locked })))
  })

  it.effect("of a busy session is launched when every earlier process of the turn is proven gone, and not before", () =>
    Effect.gen(function* () {
      for (const reaps of ["gone", "stopped", "unknown"] as const) {
        const agent = scripted(fails("StreamCut"), fails("SessionBusy"), {})
        agent.reaps = reaps
        const outcome = yield* Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
          yield* advance(minute)
          return yield* Fiber.join(fiber)
        }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
        const known = reaps !== "unknown"
        assert.strictEqual(outcome.rule, known ? "succeeded" : "old-agent-not-proven-gone", reaps)
        assert.strictEqual(agent.launches.length, known ? 3 : 2, reaps)
        assert.deepStrictEqual(
          agent.reaped.map((identity) => identity._tag === "Process" && identity.pid),
          known ? [100, 101] : [100],
          reaps
        )
      }
    })
  )

  for (const [when, launches] of [
    ["first", 0],
    ["second", 1]
  ] as const) {
    it.effect(`is not launched after a stop that came while the workspace was asked before the ${when} launch`, () => {
      const agent = scripted(fails("StreamCut"))
      const slow = Effect.sleep(minute)
      const over: Partial<Workspace.WorkspaceShape> =
        when === "first" ? { head: () => Effect.as(slow, "c0") } : { locked: () => Effect.as(slow, undefined) }
      return Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* advance(30 * second)
        const stopping = yield* Effect.forkChild(RetryPolicy.stop("t"))
        yield* advance(30 * second)
        yield* Fiber.join(stopping)
        assert.strictEqual((yield* Fiber.join(fiber)).status, "stopped")
        assert.strictEqual(agent.launches.length, launches)
      }).pipe(Effect.provide(within(agent, over)))
    })
  }

  const error = new Workspace.WorkspaceError({ directory: "/r", reason: "git is not there" })

  it.effect("whose evidence cannot be had is told to look for itself", () => {
    const agent = scripted(fails("StreamCut"), {})
    return Effect.gen(function* () {
      assert.strictEqual((yield* RetryPolicy.run(turn())).status, "succeeded")
      assert.include(agent.launches[1]?.attempt.prompt ?? "", "git is not there")
    }).pipe(Effect.provide(within(agent, { evidence: () => Effect.fail(error) })))
  })

  it.effect(
    "into a workspace that cannot be asked is not launched: the turn ends with the reason, also in the journal",
    () => {
      const agent = scripted(fails("StreamCut"), {})
      let readable = false
      const locked = () => (readable ? Effect.succeed(undefined) : Effect.fail(error))
      return Effect.gen(function* () {
        const outcome = yield* RetryPolicy.run(turn())
        assert.deepStrictEqual([outcome.status, outcome.rule], ["failed", "workspace-unreadable"])
        assert.include(outcome.detail, "git is not there")
        assert.isNotNull(outcome.fix)
        assert.strictEqual(agent.launches.length, 1)
        assert.include(JSON.stringify(yield* journaled()), "workspace-unreadable")
        readable = true
        const again = yield* RetryPolicy.run(turn())
        assert.deepStrictEqual([again.status, again.rounds], ["succeeded", 2])
        assert.deepStrictEqual(agent.launches[1]?.attempt.session, { _tag: "Resume", id: "session-1" })
      }).pipe(Effect.provide(within(agent, { locked })))
    }
  )

  it.effect("is told what was done since the first launch, also when the workspace could not be read before", () => {
    const agent = scripted(fails("StreamCut"), {})
    const since: Array<string | null> = []
    let readable = false
    const over: Partial<Workspace.WorkspaceShape> = {
      head: () => (readable ? Effect.succeed("c0") : Effect.fail(error)),
      evidence: (_, from) => {
        since.push(from)
        return Effect.succeed({ head: "c1", commits: [], dirty: [] })
      }
    }
    return Effect.gen(function* () {
      for (let round = 1; round <= 2; round++) {
        const outcome = yield* RetryPolicy.run(turn())
        assert.deepStrictEqual([outcome.rule, outcome.rounds], ["workspace-unreadable", round])
      }
      assert.strictEqual(agent.launches.length, 0)
      readable = true
      const outcome = yield* RetryPolicy.run(turn())
      assert.deepStrictEqual([outcome.status, outcome.head, outcome.rounds], ["succeeded", "c0", 3])
      assert.deepStrictEqual(since, ["c0"])
    }).pipe(Effect.provide(within(agent, over)))
  })
})

describe("secrets", () => {
  const secret = "hunter2-hunter2"
  const key = "sk-ant-0123456789abcdefghij"

  it.effect("reach neither the journal nor the outcome, no error and no span", () => {
    const said = { detail: `401 for ${secret}`, raw: `https://host/?api_key=${secret}` }
    const agent = scripted(
      fails("Capacity", {
        result: { text: `echo ${secret}` },
        activity: [{ _tag: "ToolStarted", id: "1", tool: `curl ${secret}` }]
      }),
      fails({ kind: "Capacity", ...said }, { unlaunched: true }),
      { text: `the key is ${secret}, ${key}, https://user:pass-word@host/?api_key=abcdef` }
    )
    const spans: Array<Tracer.Span> = []
    const native = Effect.runSync(Effect.tracer)
    const tracer = Tracer.make({
      span: (options) => {
        const span = native.span(options)
        spans.push(span)
        return span
      }
    })
    const asked = turn({ env: { API_KEY: secret }, prompt: `use ${secret}` })
    return Effect.gen(function* () {
      const held = yield* Effect.flip(RetryPolicy.run({ ...asked, rules: { inlineWait: 0 } }))
      const fiber = yield* Effect.forkChild(RetryPolicy.run(asked))
      yield* advance(4 * minute)
      const outcome = yield* Fiber.join(fiber)
      assert.strictEqual(outcome.status, "succeeded")
      assert.isAbove(spans.length, 1)
      const traced = JSON.stringify(spans.map(({ name, attributes }) => [name, [...attributes]]))
      const kept = [JSON.stringify(outcome), JSON.stringify(yield* journaled()), traced, String(held), held.message]
      for (const text of kept) {
        for (const hidden of [secret, key, "pass-word", "abcdef"]) assert.notInclude(text, hidden)
      }
      assert.include(kept[0], "[API_KEY]")
      assert.include(kept[1], "401 for [API_KEY]")
      assert.strictEqual(agent.launches[0]?.attempt.env?.["API_KEY"], secret)
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)), Effect.withTracer(tracer))
  })
})

describe("the log", () => {
  it.effect("held by somebody else is an error of the call, and the next call tries again", () => {
    const agent = scripted()
    return Effect.gen(function* () {
      const storage = yield* Storage.Storage
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* storage.open("turns")
          assert.strictEqual((yield* Effect.flip(RetryPolicy.run(turn())))._tag, "LogHeld")
        })
      )
      assert.strictEqual((yield* RetryPolicy.run(turn())).status, "succeeded")
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
  })

  it.effect("of two hosts that race for one turn, one gets it", () => {
    const agent = scripted({ after: minute }, { after: minute })
    return Effect.gen(function* () {
      const storage = Layer.succeed(Storage.Storage, yield* Storage.Storage)
      const host = RetryPolicy.run(turn()).pipe(Effect.provide(policy(agent, storage)), Effect.exit)
      const fiber = yield* Effect.forkChild(Effect.all([host, host], { concurrency: 2 }))
      yield* advance(minute)
      const [one, other] = yield* Fiber.join(fiber)
      assert.deepStrictEqual([Exit.isSuccess(one), Exit.isSuccess(other)].toSorted(), [false, true])
      assert.strictEqual(agent.launches.length, 1)
    }).pipe(Effect.provide(Layer.fresh(Storage.layerMemory)))
  })

  it.effect("forgets the oldest ended turns once there are twice as many as are to be kept", () => {
    const agent = scripted()
    const kept = Effect.map(journaled(), (entries) => [...new Set(entries.map((entry) => eventOf(entry).turnId))])
    const run = (...numbers: ReadonlyArray<number>) =>
      Effect.forEach(numbers, (number) => Effect.andThen(RetryPolicy.run(turn({ id: `t${number}` })), advance(1)))
    return Effect.gen(function* () {
      yield* run(1, 2, 3, 4, 5)
      assert.deepStrictEqual(yield* kept, ["t1", "t2", "t3", "t4", "t5"])
      yield* run(6)
      assert.deepStrictEqual(yield* kept, ["t4", "t5", "t6"])
      yield* run(7, 8)
      assert.deepStrictEqual(yield* kept, ["t4", "t5", "t6", "t7", "t8"])
      assert.strictEqual(agent.launches.length, 8)
      yield* run(5, 8)
      assert.strictEqual(agent.launches.length, 8)
    }).pipe(Effect.provide(policy(agent, Storage.layerMemory, { keepTurns: 3 })))
  })
})
