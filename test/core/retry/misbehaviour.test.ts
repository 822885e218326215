/**
 * Launchers, probes and callers that do what nobody should, and numbers and names that nobody should give.
 */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { AgentLauncher, Counters, Failure, RetryPolicy, RetryRules, Storage, type Usage, Workspace } from "shiftboss"
import { type Act, advance, type Agent, eventOf, journaled, makeAgent, policy, seen, settle, turn } from "./agent.ts"
import { hour, minute, second } from "./play.ts"

type Service = AgentLauncher.AgentLauncher["Service"]

const scripted = (...acts: ReadonlyArray<Act>) => makeAgent((attempt) => acts[attempt.number - 1] ?? {})

/** The agent with parts of its launcher replaced. */
const changed = (agent: Agent, change: (launcher: Service) => Partial<Service>): Agent => ({
  ...agent,
  layer: Layer.effect(
    AgentLauncher.AgentLauncher,
    Effect.map(AgentLauncher.AgentLauncher, (launcher) => ({ ...launcher, ...change(launcher) }))
  ).pipe(Layer.provide(agent.layer))
})

/** The runs of the agent with parts replaced. */
const changedRuns = (agent: Agent, change: (run: AgentLauncher.AgentRun) => Partial<AgentLauncher.AgentRun>): Agent =>
  changed(agent, (launcher) => ({
    launch: (attempt, onIdentity) =>
      Effect.map(launcher.launch(attempt, onIdentity), (run) => ({ ...run, ...change(run) }))
  }))

const tags = Effect.map(journaled(), (entries) => entries.map((entry) => eventOf(entry)._tag))

const tokens = (input: number): Usage.Usage => ({ input, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: null })

describe("a stop", () => {
  it.effect("is heard while a launch does not come back, and what was launched is proven gone", () =>
    Effect.gen(function* () {
      for (const identified of [false, true]) {
        const agent = scripted({ after: hour })
        agent.reaps = "stopped"
        const hangs = changed(agent, (launcher) => ({
          launch: (attempt, onIdentity) =>
            Effect.andThen(
              identified ? launcher.launch(attempt, onIdentity) : Effect.void,
              attempt.number === 1 ? Effect.never : launcher.launch(attempt, onIdentity)
            )
        }))
        yield* Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
          yield* advance(minute)
          const stopping = yield* Effect.forkChild(RetryPolicy.stop("t"))
          yield* advance(minute)
          assert.isDefined(stopping.pollUnsafe(), `identified: ${identified}`)
          const outcome = yield* Fiber.join(fiber)
          assert.strictEqual(outcome.status, "stopped")
          assert.strictEqual(outcome.attempts[0]?.failure?.kind, "Stopped")
          assert.strictEqual(agent.reaped.length, identified ? 1 : 0)
          const again = yield* Effect.forkChild(RetryPolicy.run(turn()))
          yield* advance(2 * hour)
          assert.strictEqual((yield* Fiber.join(again)).status, "succeeded")
        }).pipe(Effect.provide(policy(hangs, Storage.layerMemory)))
      }
    })
  )

  it.effect("comes back from an agent that cannot be stopped, and says so when it may be alive", () =>
    Effect.gen(function* () {
      for (const wrong of ["its end is never told", "its stop hangs"] as const) {
        for (const reaps of ["stopped", "unknown"] as const) {
          const agent = scripted({ after: 100 * hour })
          agent.reaps = reaps
          const hangs = changedRuns(agent, () =>
            wrong === "its stop hangs" ? { stop: () => Effect.never } : { ended: Effect.never }
          )
          yield* Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
            yield* advance(second)
            yield* Effect.forkChild(RetryPolicy.stop("t"))
            yield* advance(minute)
            assert.isDefined(fiber.pollUnsafe(), `${wrong}, ${reaps}`)
            const { status, rule } = yield* Fiber.join(fiber)
            assert.deepStrictEqual(
              [status, rule],
              reaps === "stopped" ? ["stopped", "stopped"] : ["failed", "old-agent-not-proven-gone"]
            )
          }).pipe(Effect.provide(policy(hangs, Storage.layerMemory)))
        }
      }
    })
  )
})

describe("a caller that is interrupted", () => {
  it.effect("after the agent has ended keeps its ending: it is not done again", () =>
    Effect.gen(function* () {
      const agent = scripted({ after: second, text: "the answer" })
      const lingers = changedRuns(agent, (run) => ({ activity: Stream.concat(run.activity, Stream.never) }))
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* advance(1500)
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
        yield* advance(minute)
        yield* Fiber.join(interrupting)
        assert.strictEqual((yield* RetryPolicy.run(turn())).text, "the answer")
        assert.strictEqual(agent.launches.length, 1)
      }).pipe(Effect.provide(policy(lingers, Storage.layerMemory)))
    })
  )
})

describe("an activity", () => {
  it.effect("that dies does not cost the attempt", () =>
    Effect.gen(function* () {
      const agent = scripted({ after: minute, text: "the answer" })
      const dies = changedRuns(agent, (run) => ({
        activity: Stream.concat(run.activity, Stream.die(new Error("a line of the agent")))
      }))
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* advance(2 * minute)
        const outcome = yield* Fiber.join(fiber)
        assert.deepStrictEqual([outcome.text, outcome.sessionId], ["the answer", "session-1"])
      }).pipe(Effect.provide(policy(dies, Storage.layerMemory)))
    })
  )

  it.effect("of an agent that talks all the time costs the log little, and its last word is kept", () =>
    Effect.gen(function* () {
      const said = Array.from({ length: 10_000 }, (_, index) => index)
      const activity = said.flatMap((index): ReadonlyArray<AgentLauncher.Activity> => [
        seen("session-1"),
        { _tag: "UsageSoFar", usage: tokens(index) },
        { _tag: "Text", text: "…" }
      ])
      const agent = scripted({ after: minute, activity, fails: "Refused" })
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* settle
        yield* advance(2 * minute)
        const outcome = yield* Fiber.join(fiber)
        assert.deepStrictEqual(outcome.totals.usage.input, { total: null, known: 9999 })
        assert.isBelow((yield* tags).length, 30)
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
    })
  )

  it.effect("of tools that never end is bounded", () =>
    Effect.gen(function* () {
      const activity = Array.from({ length: 5000 }, (_, index) => ({
        ...{ _tag: "ToolStarted" as const, id: `tool-${index}`, tool: "Bash" }
      }))
      const agent = scripted({ after: minute, activity, fails: "Refused" })
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* Effect.repeat(settle, { times: 200 })
        yield* advance(2 * minute)
        yield* Fiber.join(fiber)
        assert.isBelow((yield* tags).length, 1100)
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
    })
  )
})

describe("a network probe", () => {
  it.effect("that hangs or dies does not stretch the wait, and a stop is heard meanwhile", () =>
    Effect.gen(function* () {
      for (const networkProbe of [Effect.never, Effect.die(new Error("no route"))]) {
        const agent = scripted({ fails: "Network" }, {})
        yield* Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
          yield* advance(10 * minute + second)
          assert.strictEqual((yield* Fiber.join(fiber)).status, "succeeded")
          const [first = 0, repeat] = agent.launches.map(({ at }) => at)
          assert.strictEqual(repeat, first + 10 * minute)
        }).pipe(Effect.provide(policy(agent, Storage.layerMemory, { networkProbe })))
      }
      const agent = scripted({ fails: "Network" })
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn()))
        yield* advance(31 * second)
        yield* Effect.forkChild(RetryPolicy.stop("t"))
        yield* settle
        assert.isDefined(fiber.pollUnsafe())
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory, { networkProbe: Effect.never })))
    })
  )
})

describe("names that objects have of their own", () => {
  it.effect("are names of sessions, models and tools like any others", () =>
    Effect.gen(function* () {
      const counters = { usage: "session", cost: "session" } as const
      for (const id of ["constructor", "__proto__", "toString"]) {
        const tool: AgentLauncher.Activity = { _tag: "ToolStarted", id, tool: id }
        const agent = scripted(
          { activity: [seen(id), tool], fails: "StreamCut", result: { usage: tokens(5), counters, model: id } },
          { result: { usage: tokens(9), costUsd: null, counters, sessionId: id, model: id } }
        )
        yield* Effect.gen(function* () {
          const { totals, budgetVerified } = yield* RetryPolicy.run(turn({ id, model: id, account: id, budgetUsd: 9 }))
          assert.deepStrictEqual(totals.usage.input, { total: 9, known: 9 }, id)
          assert.isNull(totals.estimatedCostUsd, id)
          assert.isFalse(budgetVerified, id)
          assert.include(agent.launches[1]?.attempt.prompt, `- ${id}`)
        }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
      }
    })
  )

  it("are no sessions that a ledger knows", () => {
    const counted = { sessionId: "constructor", usage: tokens(3), costUsd: 1 }
    const [share] = Counters.share(
      Counters.empty,
      { ...counted, counters: { usage: "session", cost: "session" } },
      false
    )
    assert.deepStrictEqual(share, { usage: tokens(3), costUsd: 1 })
  })
})

describe("numbers that are none", () => {
  it.effect("are refused as a budget, a price and a rule", () =>
    Effect.gen(function* () {
      const dies = (options: RetryPolicy.Options, budgetUsd?: number, rules?: RetryRules.RetryRules) =>
        RetryPolicy.run(turn({ budgetUsd, rules })).pipe(
          Effect.provide(policy(scripted(), Storage.layerMemory, options)),
          Effect.exit,
          Effect.map((exit) => Exit.isFailure(exit) && Exit.hasDies(exit))
        )
      for (const budget of [Number.NaN, -1]) assert.isTrue(yield* dies({}, budget), `budget ${budget}`)
      for (const price of [Number.NaN, -1, Infinity]) {
        assert.isTrue(yield* dies({ prices: { m: { input: price, output: 0 } } }), `price ${price}`)
      }
      for (const wrong of [Number.NaN, -1, -Infinity, Infinity]) {
        assert.isTrue(yield* dies({}, undefined, { maxHold: wrong }), `maxHold ${wrong}`)
        assert.isTrue(yield* dies({}, undefined, { remedies: { Capacity: RetryRules.retry(wrong) } }), `wait ${wrong}`)
        if (wrong !== Infinity) assert.isTrue(yield* dies({}, undefined, { inlineWait: wrong }), `inlineWait ${wrong}`)
      }
      for (const keepTurns of [0, -1, 1.5, Number.NaN])
        assert.isTrue(yield* dies({ keepTurns }), `keepTurns ${keepTurns}`)
      assert.isFalse(yield* dies({ keepTurns: 1 }))
      assert.isFalse(yield* dies({}, Infinity))
      assert.isFalse(yield* dies({}, 0))
    })
  )

  it.effect("are unknown as what an agent used, spent, or as the end of a limit", () =>
    Effect.gen(function* () {
      const agent = scripted(
        { fails: { kind: "Throttled", resetIn: Number.NaN }, result: { costUsd: Number.NaN, usage: tokens(-5) } },
        { result: { costUsd: -3, usage: tokens(Infinity) } }
      )
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(RetryPolicy.run(turn({ budgetUsd: 1 })))
        yield* advance(minute)
        const { totals, budgetVerified } = yield* Fiber.join(fiber)
        assert.deepStrictEqual(totals.costUsd, { total: null, known: null })
        assert.deepStrictEqual(totals.usage.input, { total: null, known: null })
        assert.isFalse(budgetVerified)
        assert.deepStrictEqual(
          agent.launches.map(({ at, attempt }) => [at, attempt.budgetUsd]),
          [
            [0, 1],
            [minute, 1]
          ]
        )
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
    })
  )
})

describe("a journal that fails", () => {
  it.effect("ends all runs at once, agents stopped, and those that wait", () =>
    Effect.gen(function* () {
      const storage = yield* Storage.Storage.pipe(Effect.provide(Layer.fresh(Storage.layerMemory)))
      let full = false
      const open: Storage.Storage["Service"]["open"] = (name) =>
        Effect.map(storage.open(name), (log) => ({
          ...log,
          append: (entries) =>
            full
              ? Effect.fail(
                  new Storage.StorageError({ operation: "append", log: name, cause: "no space", remedy: "Free some." })
                )
              : log.append(entries)
        }))
      const layer = Layer.succeed(Storage.Storage, Storage.Storage.of({ ...storage, open }))
      const agent = makeAgent(({ turnId }) => (turnId === "waits" ? { fails: "Capacity" } : { after: hour }))
      yield* Effect.gen(function* () {
        const run = (id: string) => Effect.forkChild(Effect.flip(RetryPolicy.run(turn({ id, account: id }))))
        const fibers = [yield* run("waits"), yield* run("works")]
        yield* advance(second)
        assert.strictEqual(agent.launches.length, 2)
        full = true
        const error = yield* Effect.flip(RetryPolicy.run(turn({ id: "meets it" })))
        assert.strictEqual(error._tag, "StorageError")
        yield* settle
        for (const fiber of fibers) assert.strictEqual((yield* Fiber.join(fiber))._tag, "StorageError")
        assert.strictEqual(agent.alive.size, 0)
        full = false
        agent.reaps = "stopped"
        const again = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "works", account: "works" })))
        yield* advance(2 * hour)
        assert.strictEqual((yield* Fiber.join(again)).status, "succeeded")
      }).pipe(Effect.provide(policy(agent, layer)))
    })
  )
})

describe("a turn that has ended", () => {
  it.effect("does not wait for the others to be silent", () =>
    Effect.gen(function* () {
      const storage = yield* Storage.Storage.pipe(Effect.provide(Layer.fresh(Storage.layerMemory)))
      const stuck = yield* Deferred.make<void>()
      const open: Storage.Storage["Service"]["open"] = (name) =>
        Effect.map(storage.open(name), (log) => ({
          ...log,
          append: (entries) =>
            JSON.stringify(entries).includes('"turnId":"slow"')
              ? Effect.andThen(Deferred.await(stuck), log.append(entries))
              : log.append(entries)
        }))
      const layer = Layer.succeed(Storage.Storage, Storage.Storage.of({ ...storage, open }))
      yield* Effect.gen(function* () {
        yield* Effect.forkChild(RetryPolicy.run(turn({ id: "slow" })))
        yield* settle
        const quick = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "quick" })))
        yield* settle
        assert.isDefined(quick.pollUnsafe())
        yield* Deferred.succeed(stuck, undefined)
      }).pipe(Effect.provide(policy(scripted(), layer)))
    })
  )
})

describe("a compaction", () => {
  it.effect("has its turn while others append all the time", () =>
    Effect.gen(function* () {
      const storage = yield* Storage.Storage.pipe(Effect.provide(Layer.fresh(Storage.layerMemory)))
      let compactions = 0
      const open: Storage.Storage["Service"]["open"] = (name) =>
        Effect.map(storage.open(name), (log) => ({
          ...log,
          append: (entries) => Effect.andThen(Effect.sleep(second), log.append(entries)),
          replace: (entries) =>
            Effect.andThen(
              Effect.sync(() => compactions++),
              log.replace(entries)
            )
        }))
      const layer = Layer.succeed(Storage.Storage, Storage.Storage.of({ ...storage, open }))
      const tools: ReadonlyArray<AgentLauncher.Activity> = [
        { _tag: "ToolStarted", id: "tool", tool: "Bash" },
        { _tag: "ToolEnded", id: "tool", tool: "Bash" }
      ]
      const talks = changed(
        makeAgent(({ turnId }) => (turnId.startsWith("talks") ? { after: hour } : {})),
        (launcher) => ({
          launch: (attempt, onIdentity) =>
            Effect.map(launcher.launch(attempt, onIdentity), (run) =>
              attempt.turnId.startsWith("talks")
                ? { ...run, activity: Stream.forever(Stream.fromIterable(tools)) }
                : run
            )
        })
      )
      yield* Effect.gen(function* () {
        // Half a second apart, so that there is no moment without an append under way.
        for (const id of ["talks-1", "talks-2"]) {
          yield* Effect.forkChild(RetryPolicy.run(turn({ id, account: id })))
          yield* advance(500)
        }
        const ids = ["one", "two", "three"]
        const all = yield* Effect.forkChild(Effect.forEach(ids, (id) => RetryPolicy.run(turn({ id, account: id }))))
        for (let passed = 0; passed < 60; passed++) yield* advance(500)
        assert.isDefined(all.pollUnsafe())
        assert.isAbove(compactions, 0)
      }).pipe(Effect.provide(policy(talks, layer, { keepTurns: 1 })))
    })
  )
})

describe("a turn that is taken up again while others end", () => {
  const takenUp = (when: "before the compaction" | "in it", rounds: number) =>
    Effect.gen(function* () {
      let compacting = false
      const storage = yield* Storage.Storage.pipe(Effect.provide(Layer.fresh(Storage.layerMemory)))
      const open: Storage.Storage["Service"]["open"] = (name) =>
        Effect.map(storage.open(name), (log) => ({
          ...log,
          append: (entries) => Effect.andThen(Effect.sleep(second), log.append(entries)),
          replace: (entries) =>
            Effect.suspend(() => {
              compacting = true
              return Effect.andThen(Effect.sleep(second), log.replace(entries))
            })
        }))
      const layer = Layer.succeed(Storage.Storage, Storage.Storage.of({ ...storage, open }))
      const agent = makeAgent(({ turnId, number }) => (turnId === "again" && number === 1 ? { fails: "Auth" } : {}))
      yield* Effect.gen(function* () {
        const first = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "again" })))
        yield* advance(minute)
        assert.strictEqual((yield* Fiber.join(first)).status, "failed")
        const other = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "other" }))) // its end compacts the log
        const begun = advance(500).pipe(Effect.repeat({ until: () => compacting }))
        if (when === "in it") yield* begun
        const again = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "again" })))
        yield* advance(minute)
        const outcome = yield* Fiber.join(again)
        assert.deepStrictEqual([outcome.status, outcome.rounds], [rounds === 1 ? "failed" : "succeeded", rounds])
        yield* Fiber.join(other)
        assert.isTrue(compacting)
      }).pipe(Effect.provide(policy(agent, layer, { keepTurns: 1 })))
    })

  it.effect("goes on in its next round when it was there first", () => takenUp("before the compaction", 2))

  it.effect("is begun anew when a compaction is about to drop it", () => takenUp("in it", 1))

  it.effect("is not dropped while it asks for the commit it starts from", () => {
    let asked = 0
    const workspace = Layer.succeed(Workspace.Workspace, {
      head: (directory) => {
        if (directory !== "slow") return Effect.succeed("c0")
        const unreadable = new Workspace.WorkspaceError({ directory: "slow", reason: "git is not there" })
        return ++asked === 1 ? Effect.fail(unreadable) : Effect.delay(Effect.succeed("c1"), minute)
      },
      evidence: () => Effect.succeed({ head: "c1", commits: [], dirty: [] }),
      locked: () => Effect.succeed(undefined)
    })
    return Effect.gen(function* () {
      const slow = turn({ id: "slow", directory: "slow" })
      assert.strictEqual((yield* RetryPolicy.run(slow)).rule, "workspace-unreadable")
      const again = yield* Effect.forkChild(RetryPolicy.run(slow))
      yield* settle
      for (const id of ["one", "two"]) yield* RetryPolicy.run(turn({ id, account: id }))
      yield* advance(2 * minute)
      const { status, head, rounds } = yield* Fiber.join(again)
      assert.deepStrictEqual([status, head, rounds], ["succeeded", "c1", 2])
    }).pipe(
      Effect.provide(
        Layer.provide(
          policy(
            makeAgent(() => ({})),
            Storage.layerMemory,
            { keepTurns: 1 }
          ),
          workspace
        )
      )
    )
  })
})

describe("a secret of several lines", () => {
  it.effect("is kept out of what is kept also as it stands in a line of JSON", () =>
    Effect.gen(function* () {
      const KEY = '-----BEGIN-----\nMIIEvQ"$&\n-----END-----'
      const raw = JSON.stringify({ error: `cannot use ${KEY}` })
      const agent = scripted({ fails: { kind: "Auth", detail: `cannot use ${KEY}`, raw } })
      yield* Effect.gen(function* () {
        const outcome = yield* RetryPolicy.run(turn({ env: { KEY } }))
        assert.notInclude(JSON.stringify([outcome, yield* journaled()]), "MIIEvQ")
        assert.strictEqual(outcome.attempts[0]?.failure?.raw, '{"error":"cannot use [KEY]"}')
      }).pipe(Effect.provide(policy(agent, Storage.layerMemory)))
    })
  )
})

describe("holds that follow one another", () => {
  it.effect("last no longer than maxHold together, whoever met the limits", () =>
    Effect.gen(function* () {
      // Its own retries meet a limit of an hour, again before each has ended.
      const failure = Failure.make("RateLimited", "the limit of an hour")
      const retry: AgentLauncher.Activity = { _tag: "AgentRetry", failure, delayMillis: hour }
      const met = Stream.tap(Stream.forever(Stream.succeed(retry)), () => Effect.sleep("50 minutes"))
      const agent = makeAgent(() => ({ after: 100 * hour }))
      const retries = changedRuns(agent, () => ({ activity: Stream.concat(Stream.succeed(retry), met) }))
      yield* Effect.gen(function* () {
        const rules = { maxHold: "150 minutes" } as const
        const other = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "meets it" })))
        yield* settle
        const waits = yield* Effect.forkChild(RetryPolicy.run(turn({ id: "waits", rules })))
        yield* advance(4 * hour)
        const { status, at } = yield* Fiber.join(waits)
        assert.strictEqual(status, "held")
        assert.isAtMost(at, 150 * minute)
        assert.isFalse(agent.launches.some(({ attempt }) => attempt.turnId === "waits"))
        const stopping = yield* Effect.forkChild(RetryPolicy.stop("meets it"))
        yield* advance(minute)
        yield* Fiber.join(stopping)
        assert.strictEqual((yield* Fiber.join(other)).status, "stopped")
      }).pipe(Effect.provide(policy(retries, Storage.layerMemory)))
    })
  )
})
