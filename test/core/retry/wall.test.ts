import { assert, describe, it } from "@effect/vitest"
import { Failure, RetryPolicy, RetryRules } from "shiftboss"
import { makeCooldown } from "../../../src/core/internal/retry/cooldown.ts"
import { wallUntil } from "../../../src/core/internal/retry/hold.ts"
import { hour, minute, play, type Script, second, start } from "./play.ts"

const times = { probeMillis: 2 * minute, staggerMillis: 5 * second, firstMillis: 10 * second }
const place = { account: "a", model: null }
const capacity = Failure.make("Capacity", "no capacity")

/** A wall that `a` met at the start and that lasts a minute; the others ask at that time. */
const met = () => {
  const cooldown = makeCooldown(times, () => {})
  const until = (turnId: string, now: number, waited = false) => {
    const answer = cooldown.ask(turnId, place, { now, jitter: 0, waited })
    return answer._tag === "Go" ? "go" : answer.until - now
  }
  assert.strictEqual(until("a", start), "go")
  cooldown.raise("a", place, capacity, start, start + minute)
  return { cooldown, until }
}

describe("a wall", () => {
  it("is as long as the wait of the turn that met it, whatever was resumed, held or lost with a host before", () => {
    const died = { kind: "Interrupted", hostDied: true } as const
    const limited = { kind: "RateLimited", resetIn: hour } as const
    const scripts = [
      ...[["Capacity"], ["Capacity", "Network"], ["StreamCut", "Capacity"], [died, "Capacity"], [limited, "Capacity"]],
      ...[[limited], ["StreamCut", limited], [{ kind: "Throttled", resetIn: hour }]]
    ] as ReadonlyArray<Script>
    for (const script of scripts) {
      const whole = play(script).state
      const state = { ...whole, attempts: whole.attempts.slice(0, script.length), end: null, wait: null }
      const now = state.attempts.at(-1)?.ending?.at ?? 0
      const decision = RetryPolicy.decide({ id: "t", prompt: "" }, state, { now, jitter: 0 })
      assert(decision._tag === "Wait")
      assert.strictEqual(wallUntil(RetryRules.defaults, state), decision.wait.due, JSON.stringify(script))
    }
  })

  it("is passed by one at its end, and by the others when that one was answered, one after the other", () => {
    const { cooldown, until } = met()
    assert.strictEqual(until("b", start + 1), minute - 1)
    assert.strictEqual(until("b", start + minute - 1), 1)
    assert.strictEqual(until("b", start + minute), "go")
    assert.strictEqual(until("c", start + minute), 2 * minute)
    cooldown.answered("b", start + 65 * second)
    assert.strictEqual(until("c", start + 65 * second), 5 * second)
    assert.strictEqual(until("d", start + 65 * second), 10 * second)
    assert.strictEqual(until("c", start + 70 * second - 1), 1)
    assert.strictEqual(until("c", start + 70 * second), "go")
    assert.strictEqual(until("d", start + 75 * second), "go")
    // Nobody came for longer than two may follow one another: it is gone.
    assert.strictEqual(until("e", start + 86 * second), "go")
  })

  it("lets those that follow the probe wait up to twice as long, at random", () => {
    const { cooldown, until } = met()
    assert.strictEqual(until("b", start + minute), "go")
    cooldown.answered("b", start + minute)
    const answer = cooldown.ask("c", place, { now: start + minute, jitter: 0.5, waited: false })
    assert.isTrue(answer._tag === "Wait" && answer.until === start + minute + 7.5 * second)
  })

  it("is not over for the turn that met it because somebody else's hold was", () => {
    const { until } = met()
    assert.strictEqual(until("a", start + second), 59 * second)
    assert.strictEqual(until("b", start + second, true), 59 * second)
    assert.strictEqual(until("a", start + second, true), "go")
  })

  it("does not last longer when the clock steps back, before its end, during a probe or after its release", () => {
    const back = (now: number) => now - hour
    const standing = met()
    assert.strictEqual(standing.until("b", start + 20 * second), 40 * second)
    assert.strictEqual(standing.until("b", back(start + 20 * second)), 40 * second)

    const probed = met()
    assert.strictEqual(probed.until("b", start + minute), "go")
    assert.strictEqual(probed.until("c", back(start + minute)), 2 * minute)

    const released = met()
    assert.strictEqual(released.until("b", start + minute), "go")
    released.cooldown.answered("b", start + minute)
    assert.strictEqual(released.until("c", start + minute), 5 * second)
    assert.strictEqual(released.until("c", back(start + minute)), 5 * second)
    assert.strictEqual(released.until("c", back(start + minute + 5 * second)), "go")
  })

  it("holds what its failure reaches and nothing else", () => {
    const elsewhere = {
      request: [],
      session: [],
      model: ["same"],
      account: ["same", "other model"],
      machine: ["same", "other model", "other account"]
    }
    for (const scope of Failure.FailureScope.literals) {
      const cooldown = makeCooldown({ ...times, firstMillis: 0 }, () => {})
      cooldown.raise("a", place, Failure.make("Capacity", "it", { scope }), start, start + minute)
      const places = {
        same: place,
        "other model": { ...place, model: "m" },
        "other account": { ...place, account: "b" }
      }
      const held = Object.entries(places).flatMap(([name, place]) =>
        cooldown.ask(name, place, { now: start, jitter: 0, waited: false })._tag === "Wait" ? [name] : []
      )
      assert.deepStrictEqual(held, elsewhere[scope], scope)
    }
  })

  it("is not shortened by somebody who meets it with an earlier end", () => {
    const { cooldown, until } = met()
    cooldown.raise("b", place, capacity, start + second, start + 2 * second)
    assert.strictEqual(until("c", start + second), 59 * second)
  })

  it("wakes one when the probe is vacant, another one when that one leaves instead, and all when it was answered", () => {
    const woken: Array<string> = []
    const cooldown = makeCooldown(times, (turnId) => void woken.push(turnId))
    const ask = (turnId: string) => cooldown.ask(turnId, place, { now: start, jitter: 0, waited: false })._tag
    assert.deepStrictEqual(["a", "b", "c", "d"].map(ask), ["Go", "Wait", "Wait", "Wait"])
    cooldown.left("a")
    assert.deepStrictEqual(woken, ["b"])
    assert.deepStrictEqual([cooldown.changed("b"), cooldown.changed("c")], [true, false])
    cooldown.left("b")
    assert.deepStrictEqual(woken, ["b", "c"])
    assert.strictEqual(ask("c"), "Go")
    cooldown.left("nobody")
    assert.deepStrictEqual(woken, ["b", "c"])
    assert.isFalse(cooldown.changed("told before a restart"))
    cooldown.answered("c", start)
    assert.deepStrictEqual(woken, ["b", "c", "d", "told before a restart"])
    cooldown.left("d")
    cooldown.raise("c", place, capacity, start, start + minute)
    assert.deepStrictEqual(woken.slice(4), ["told before a restart"])
  })

  it("lets a first launch on each account go alone, once", () => {
    const cooldown = makeCooldown(times, () => {})
    const ask = (turnId: string, account: string, now: number) =>
      cooldown.ask(turnId, { ...place, account }, { now, jitter: 0, waited: false })
    assert.strictEqual(ask("a", "one", start)._tag, "Go")
    const waits = ask("b", "one", start)
    assert.isTrue(
      waits._tag === "Wait" && waits.rule === "first-launch-goes-alone" && waits.until === start + 10 * second
    )
    assert.strictEqual(ask("c", "two", start)._tag, "Go")
    cooldown.answered("a", start + second)
    for (const turnId of ["b", "d"]) assert.strictEqual(ask(turnId, "one", start + second)._tag, "Go")
  })
})
