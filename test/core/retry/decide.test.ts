import { assert, describe, it } from "@effect/vitest"
import { Failure, ResetTime, RetryPolicy, RetryRules } from "shiftboss"
import * as fc from "fast-check"
import { begun, fold, hour, lines, minute, play, start } from "./play.ts"

const kinds = Failure.FailureKind.literals

describe("each kind alone", () => {
  const table: Record<Failure.FailureKind, ReadonlyArray<string>> = {
    Capacity: ["0m first-attempt", "1m capacity-retry-1", "4m capacity-retry-2", "4m failed capacity-retry-used"],
    ServerError: [
      ...["0m first-attempt", "1m server-error-retry-1", "4m server-error-retry-2"],
      "4m failed server-error-retry-used"
    ],
    Network: ["0m first-attempt", "10m network-retry-1", "50m network-retry-2", "50m failed network-retry-used"],
    Throttled: ["0m first-attempt", "1m throttled-retry-1", "4m throttled-retry-2", "4m failed throttled-retry-used"],
    StreamCut: [
      ...["0m first-attempt", "0m stream-cut-resume-1 in s1", "1m stream-cut-resume-2 in s1"],
      "1m failed stream-cut-resume-used"
    ],
    Interrupted: [
      ...["0m first-attempt", "0m interrupted-resume-1 in s1", "1m interrupted-resume-2 in s1"],
      ...["4m interrupted-resume-3 in s1", "4m failed interrupted-resume-used"]
    ],
    Hung: [
      ...["0m first-attempt", "0m hung-resume-1 in s1", "1m hung-resume-2 in s1", "4m hung-resume-3 in s1"],
      "4m failed hung-resume-used"
    ],
    SessionBusy: [
      ...["0m first-attempt", "0m session-busy-resume-1 in s1", "1m session-busy-resume-2 in s1"],
      ...["4m session-busy-resume-3 in s1", "4m failed session-busy-resume-used"]
    ],
    SessionLost: ["0m first-attempt", "0m session-lost-fresh", "0m failed session-lost-fresh-used"],
    SessionPoisoned: ["0m first-attempt", "0m session-poisoned-fresh", "0m failed session-poisoned-fresh-used"],
    ContextOverflow: ["0m first-attempt", "0m context-overflow-fresh", "0m failed context-overflow-fresh-used"],
    RateLimited: [
      ...["0m first-attempt", "15m limit-unknown-reset-1 in s1", "45m limit-unknown-reset-2 in s1"],
      ...[105, 165, 225, 285, 345, 405, 465, 525, 585, 645, 705].map(
        (after, index) => `${after}m limit-unknown-reset-${index + 3} in s1`
      ),
      "705m held limit-unknown-reset-14-beyond-max-hold"
    ],
    ModelUnavailable: ["0m first-attempt", "0m failed no-fallback-model"],
    TurnLimit: ["0m first-attempt", "0m failed turn-limit-stop"],
    OutputLimit: ["0m first-attempt", "0m failed output-limit-stop"],
    BudgetExhausted: ["0m first-attempt", "0m failed budget-exhausted-stop"],
    Billing: ["0m first-attempt", "0m failed billing-stop"],
    Auth: ["0m first-attempt", "0m failed auth-stop"],
    Config: ["0m first-attempt", "0m failed config-stop"],
    Refused: ["0m first-attempt", "0m failed refused-stop"],
    LauncherFailed: ["0m first-attempt", "0m failed launcher-failed-stop"],
    Unknown: ["0m first-attempt", "0m failed unknown-stop"],
    Stopped: ["0m first-attempt", "0m stopped stopped"]
  }
  for (const kind of kinds) it(`${kind}`, () => assert.deepStrictEqual(lines([kind]), table[kind]))

  it("every end that is no success says what to do", () => {
    for (const kind of kinds) {
      const { state } = play([kind])
      assert.isNotNull(state.end?.fix, kind)
      assert.include(state.end?.detail ?? "", kind)
    }
  })
})

/** A second implementation, slow and obvious: what follows two failures of these kinds, in minutes after the first. */
const afterTwo = (first: Failure.FailureKind, second: Failure.FailureKind): string => {
  const retries: Partial<Record<Failure.FailureKind, ReadonlyArray<number>>> = {
    ...{ Capacity: [1, 3], ServerError: [1, 3], Throttled: [1, 3], Network: [10, 40] }
  }
  const resumes: Partial<Record<Failure.FailureKind, ReadonlyArray<number>>> = {
    ...{ StreamCut: [0, 1], Interrupted: [0, 1, 3], Hung: [0, 1, 3], SessionBusy: [0, 1, 3] }
  }
  const fresh = ["SessionLost", "SessionPoisoned", "ContextOverflow"]
  const repeats = (kind: Failure.FailureKind) =>
    kind in retries || kind in resumes || fresh.includes(kind) || kind === "RateLimited"
  if (!repeats(first)) return "0 over"
  const wait = retries[first]?.[0] ?? resumes[first]?.[0] ?? (first === "RateLimited" ? 15 : 0)
  if (!repeats(second)) return `${wait} over`
  const attempts = first in retries || fresh.includes(first) ? 2 : 1
  const resumed = first in resumes ? 1 : 0
  if (fresh.includes(second) && fresh.includes(first)) return `${wait} over`
  const next =
    retries[second]?.[attempts - 1] ??
    resumes[second]?.[resumed] ??
    (second === "RateLimited" ? (first === "RateLimited" ? 30 : 15) : 0)
  return `${wait + next} again`
}

describe("every kind after every other", () => {
  for (const first of kinds) {
    it(`${first} and then each`, () => {
      for (const second of kinds) {
        const { steps } = play([first, { kind: second, session: "s" }, "ok"])
        const end = steps.at(-1)
        assert.strictEqual(
          `${end?.after} ${end?.what === "succeeded succeeded" ? "again" : "over"}`,
          afterTwo(first, second),
          `${first}, ${second}`
        )
      }
    })
  }

  it("counts attempts, not kinds: a network failure after a capacity refusal waits 40 minutes", () => {
    assert.deepStrictEqual(lines(["Capacity", "Network", "ok"]), [
      ...["0m first-attempt", "1m capacity-retry-1", "41m network-retry-2", "41m succeeded succeeded"]
    ])
  })

  it("does not count resumes among the attempts, nor attempts among the resumes", () => {
    assert.deepStrictEqual(lines(["StreamCut", "Capacity", "Interrupted", "Capacity", "ok"]), [
      ...["0m first-attempt", "0m stream-cut-resume-1 in s1", "1m capacity-retry-1"],
      ...["2m interrupted-resume-2 in s3", "5m capacity-retry-2", "5m succeeded succeeded"]
    ])
  })
})

describe("sessions", () => {
  it("without a session to resume, starts afresh once", () => {
    assert.deepStrictEqual(lines([{ kind: "Interrupted", session: null }]), [
      ...["0m first-attempt", "0m interrupted-fresh", "0m failed interrupted-fresh-used"]
    ])
  })

  it("goes on in the session of an earlier turn, in retries too, until it is lost", () => {
    const turn = { session: "old" }
    assert.deepStrictEqual(lines(["Capacity", "SessionLost", "ok"], { turn }), [
      ...["0m first-attempt in old", "1m capacity-retry-1 in old", "1m session-lost-fresh", "1m succeeded succeeded"]
    ])
  })

  it("does not return to the session of the earlier turn once that is lost", () => {
    const turn = { session: "old" }
    assert.deepStrictEqual(lines(["SessionLost", "Capacity", "ok"], { turn }), [
      ...["0m first-attempt in old", "0m session-lost-fresh", "3m capacity-retry-2", "3m succeeded succeeded"]
    ])
  })

  it("begins a new round in the last session, with ladders that start again and numbers that go on", () => {
    const failed = play([{ kind: "Auth", session: "s1" }]).state
    const from = fold([{ _tag: "RoundStarted", turnId: "t", at: start, round: 2, account: null }], failed)
    const again = play(["Capacity", "ok"], { from })
    assert.deepStrictEqual(
      again.steps.map((step) => step.what),
      ["round-2 in s1", "capacity-retry-1", "succeeded succeeded"]
    )
    assert.deepStrictEqual(
      again.state.attempts.map((attempt) => attempt.number),
      [1, 2, 3]
    )
  })

  it("begins a new round in a new session when the last one had failed the turn", () => {
    const failed = play(["ContextOverflow"]).state
    const from = fold([{ _tag: "RoundStarted", turnId: "t", at: start, round: 2, account: null }], failed)
    assert.deepStrictEqual(lines(["ok"], { from }), ["0m round-2", "0m succeeded succeeded"])
  })

  it("charges nobody for an attempt of which nothing ran", () => {
    const script = [{ kind: "Interrupted", ran: false, session: null }, "Capacity", "Capacity", "ok"] as const
    assert.deepStrictEqual(lines(script), [
      ...["0m first-attempt", "0m never-ran", "1m capacity-retry-1", "4m capacity-retry-2", "4m succeeded succeeded"]
    ])
  })

  it("resumes after a stop without charging it", () => {
    const stopped = play(["Stopped"]).state
    const from = fold([{ _tag: "TurnResumed", turnId: "t", at: start }], stopped)
    assert.deepStrictEqual(lines(["Capacity", "ok"], { from }), [
      ...["0m resumed-after-stop in s1", "1m capacity-retry-1", "1m succeeded succeeded"]
    ])
  })

  it("is stopped again by the next stop", () => {
    const from = fold([{ _tag: "TurnResumed", turnId: "t", at: start }], play(["Stopped"]).state)
    const begun = {
      _tag: "AttemptStarted",
      turnId: "t",
      at: start,
      number: 2,
      purpose: "after-stop",
      rule: "r"
    } as const
    const session = { _tag: "Resume", id: "s1" } as const
    assert.isFalse(fold([{ ...begun, session, model: null }], from).resumed)
    assert.deepStrictEqual(lines(["Stopped"], { from }), ["0m resumed-after-stop in s1", "0m stopped stopped"])
  })

  it("proves the old process gone before it resumes a busy session", () => {
    const { state } = play(["SessionBusy"], { turn: { rules: { remedies: { SessionBusy: RetryRules.resume(0) } } } })
    const first = { ...state, attempts: state.attempts.slice(0, 1), end: null }
    const decision = RetryPolicy.decide({ id: "t", prompt: "" }, first, { now: start, jitter: 0 })
    assert.isTrue(decision._tag === "Launch" && decision.reap)
  })
})

describe("the death of the host", () => {
  const died = { kind: "Interrupted", hostDied: true } as const
  const early = { ...died, session: null } as const

  it("is charged to nobody, with a session to resume and without one", () => {
    assert.deepStrictEqual(lines([early, early, died, died, "Interrupted", "Capacity", "ok"]), [
      ...["0m first-attempt", "0m host-died-fresh-1", "0m host-died-fresh-2", "0m host-died-resume-3 in s3"],
      ...[
        "0m host-died-resume-4 in s3",
        "0m interrupted-resume-1 in s3",
        "1m capacity-retry-1",
        "1m succeeded succeeded"
      ]
    ])
  })

  it("leaves every ladder where it was", () => {
    const script = ["Capacity", died, "Interrupted", died, "SessionLost", early, "Capacity", "ok"] as const
    assert.deepStrictEqual(lines(script).slice(1), [
      ...["1m capacity-retry-1", "1m host-died-resume-1 in s2", "1m interrupted-resume-1 in s2"],
      ...["1m host-died-resume-2 in s2", "1m session-lost-fresh", "1m host-died-fresh-3"],
      "1m failed capacity-retry-used"
    ])
  })

  it("does not begin the resumes again", () => {
    assert.deepStrictEqual(lines(["Interrupted", died, "Interrupted"]).slice(1), [
      ...["0m interrupted-resume-1 in s1", "0m host-died-resume-1 in s1", "1m interrupted-resume-2 in s1"],
      ...["4m interrupted-resume-3 in s1", "4m failed interrupted-resume-used"]
    ])
  })

  it("uses up no launch", () => {
    const rules = { maxLaunches: 2 }
    assert.strictEqual(
      lines([died, died, died, "StreamCut", "ok"], { turn: { rules } }).at(-1),
      "0m succeeded succeeded"
    )
    assert.strictEqual(lines([died, "StreamCut"], { turn: { rules } }).at(-1), "0m failed launches-used")
  })

  it("ends the turn when it comes for the eleventh time in a round, whether or not anything ran", () => {
    for (const one of [died, early, { ...early, ran: false } as const]) {
      const { steps, state } = play([one])
      assert.strictEqual(steps.length, 12)
      assert.strictEqual(steps.at(-1)?.what, "failed host-deaths-used")
      assert.include(state.end?.detail, "11")
    }
    const rules = { maxHostDeaths: 0 }
    assert.deepStrictEqual(lines([died], { turn: { rules } }), ["0m first-attempt", "0m failed host-deaths-used"])
  })

  it("begins to count again with the next round", () => {
    const failed = play([died]).state
    const from = fold([{ _tag: "RoundStarted", turnId: "t", at: start, round: 2, account: null }], failed)
    assert.deepStrictEqual(lines([died, "ok"], { from }), [
      ...["0m round-2 in s1", "0m host-died-resume-1 in s1", "0m succeeded succeeded"]
    ])
  })

  it("keeps the model and goes on in the session of the earlier turn", () => {
    const turn = { model: "big", session: "old", rules: { fallbackModels: ["small"], fallbackFrom: 2 } }
    assert.deepStrictEqual(lines(["Capacity", early, "ok"], { turn }), [
      ...["0m first-attempt in old on big", "1m capacity-retry-1 on small", "1m host-died-fresh-1 on small"],
      "1m succeeded succeeded"
    ])
  })
})

describe("limits", () => {
  const limited = (resetIn?: number) =>
    ({ kind: "RateLimited", ...(resetIn === undefined ? {} : { resetIn }) }) as const

  it("holds until the announced reset, the buffer and the jitter", () => {
    assert.deepStrictEqual(lines([limited(hour), "ok"], { jitter: 0.5 }), [
      ...["0m first-attempt", "63m limit-reset in s1", "63m succeeded succeeded"]
    ])
  })

  it("holds over midnight and over a change of the clocks, in the zone that the limit is told in", () => {
    const told = (text: string, now: string, timeZone: string) => {
      const at = Date.parse(now)
      const resetAt = ResetTime.fromText(text, { now: at, timeZone }) ?? 0
      return lines([limited(resetAt - at), "ok"])[1]
    }
    // It is 23:30 in Berlin, and 15:30 in Los Angeles.
    assert.strictEqual(told("resets 1:15am (Europe/Berlin)", "2026-11-30T22:30:00Z", "UTC"), "107m limit-reset in s1")
    assert.strictEqual(told("resets 4pm", "2026-11-30T23:30:00Z", "America/Los_Angeles"), "32m limit-reset in s1")
    // At 2:00 the clocks of New York go to 3:00.
    assert.strictEqual(told("resets 3:30am (America/New_York)", "2026-03-08T06:30:00Z", "UTC"), "62m limit-reset in s1")
  })

  it("goes on for 5, 15, 30 minutes when the limit outlives its reset", () => {
    const script = [limited(hour), limited(-2 * minute), limited(), limited(-90 * minute), limited(), "ok"] as const
    assert.deepStrictEqual(lines(script), [
      ...["0m first-attempt", "62m limit-reset in s1", "67m limit-outlived-its-reset-1 in s1"],
      ...["82m limit-outlived-its-reset-2 in s1", "112m limit-outlived-its-reset-3 in s1"],
      ...["142m limit-outlived-its-reset-4 in s1", "142m succeeded succeeded"]
    ])
  })

  it("a new reset counts again", () => {
    assert.deepStrictEqual(lines([limited(hour), limited(hour), "ok"]), [
      ...["0m first-attempt", "62m limit-reset in s1", "124m limit-reset in s1", "124m succeeded succeeded"]
    ])
  })

  it("a reset up to 10 minutes past is due now, buffer included; an older one says nothing", () => {
    assert.deepStrictEqual(lines([limited(-minute), "ok"])[1], "1m limit-reset-past in s1")
    assert.deepStrictEqual(lines([limited(-10 * minute), "ok"])[1], "0m limit-reset-past in s1")
    assert.deepStrictEqual(lines([limited(-10 * minute - 1), "ok"])[1], "15m limit-unknown-reset-1 in s1")
  })

  it("charges no attempt for a hold", () => {
    assert.deepStrictEqual(lines([limited(), "Capacity", limited(), "Capacity", limited(), "ok"]).length, 7)
  })

  it("a reset beyond 12 hours ends the turn as held and says until when", () => {
    const inside = 12 * hour - 2 * minute
    assert.deepStrictEqual(lines([limited(inside), "ok"])[1], "720m limit-reset in s1")
    const { steps, state } = play([limited(inside + 1)])
    assert.strictEqual(steps.at(-1)?.what, "held limit-reset-beyond-max-hold")
    assert.strictEqual(state.end?.until, start + 12 * hour + 1)
  })

  it("holds that follow one another count together", () => {
    const { steps } = play([limited(7 * hour), limited(7 * hour)])
    assert.strictEqual(steps.at(-1)?.what, "held limit-reset-beyond-max-hold")
  })

  it("a limit of one model falls back at once, in a new session", () => {
    const turn = { model: "big", rules: { fallbackModels: ["big", "small"] } }
    assert.deepStrictEqual(lines([{ ...limited(hour), scope: "model" }, "ok"], { turn }), [
      ...["0m first-attempt on big", "0m rate-limited-fallback on small", "0m succeeded succeeded"]
    ])
  })

  it("waits as long as it was told when it is throttled, when that is longer", () => {
    assert.strictEqual(lines([{ kind: "Throttled", resetIn: 90_000 }, "ok"])[1], "1.5m throttled-retry-1")
    assert.strictEqual(lines([{ kind: "Throttled", resetIn: 1000 }, "ok"])[1], "1m throttled-retry-1")
  })
})

describe("fallback models", () => {
  const turn = { model: "big", rules: { fallbackModels: ["small", "tiny"] } }

  it("takes the first one at the third attempt", () => {
    assert.deepStrictEqual(lines(["Capacity", "Capacity", "ok"], { turn }), [
      ...["0m first-attempt on big", "1m capacity-retry-1 on big", "4m capacity-retry-2 on small"],
      "4m succeeded succeeded"
    ])
  })

  it("takes the next one at once when the model is not there", () => {
    assert.deepStrictEqual(lines(["ModelUnavailable", "ModelUnavailable", "ok"], { turn }), [
      ...["0m first-attempt on big", "0m model-unavailable-fallback on small"],
      ...["0m model-unavailable-fallback on tiny", "0m succeeded succeeded"]
    ])
  })

  it("returns to the original when the command cannot take the fallback", () => {
    const script = ["Capacity", "Capacity", { kind: "ModelUnavailable", ran: false, session: null }, "ok"] as const
    assert.deepStrictEqual(lines(script, { turn }).slice(2), [
      ...["4m capacity-retry-2 on small", "4m fallback-model-unavailable on big", "4m succeeded succeeded"]
    ])
  })

  it("changes nothing when the fallback is the model itself", () => {
    const same = { model: "big", session: "old", rules: { fallbackModels: ["big"] } }
    assert.strictEqual(lines(["Capacity", "Capacity", "ok"], { turn: same })[2], "4m capacity-retry-2 in old on big")
  })

  it("leaves the session when the model changes", () => {
    assert.strictEqual(
      lines(["Capacity", "Capacity", "ok"], { turn: { ...turn, session: "old" } })[2],
      "4m capacity-retry-2 on small"
    )
  })

  it("does not fall back when the turn forbids it", () => {
    const forbidden = { model: "big", rules: { fallbackModels: [] } }
    assert.strictEqual(lines(["ModelUnavailable"], { turn: forbidden }).at(-1), "0m failed no-fallback-model")
  })
})

describe("budget", () => {
  const failing = (costUsd: number | null) => ({ kind: "Capacity", costUsd }) as const

  it("stops before any wait when nothing is left, to the cent", () => {
    const turn = { budgetUsd: 1 }
    assert.deepStrictEqual(lines([failing(0.99), "ok"], { turn }).at(-1), "1m succeeded succeeded")
    assert.deepStrictEqual(lines([failing(1), "ok"], { turn }), ["0m first-attempt", "0m failed budget-exhausted"])
    assert.deepStrictEqual(lines([failing(1.5), "ok"], { turn }).at(-1), "0m failed budget-exhausted")
  })

  it("gives an attempt what is left", () => {
    const { state } = play([failing(0.25), "Auth"], { turn: { budgetUsd: 1 } })
    const first = { ...state, attempts: state.attempts.slice(0, 1), end: null }
    const decision = RetryPolicy.decide({ id: "t", prompt: "", budgetUsd: 1 }, first, { now: start + hour, jitter: 0 })
    assert.strictEqual(decision._tag === "Launch" ? decision.budgetUsd : undefined, 0.75)
  })

  it("keeps the reason of an ending that is not repeated", () => {
    const script = [{ kind: "Auth", costUsd: 2 }] as const
    assert.strictEqual(lines(script, { turn: { budgetUsd: 1 } }).at(-1), "0m failed auth-stop")
  })

  it("a success that overspent is a success", () => {
    assert.strictEqual(lines([failing(0.5), "ok"], { turn: { budgetUsd: 1 } }).at(-1), "1m succeeded succeeded")
  })
})

describe("rules", () => {
  it("resumes at a turn limit when they say so", () => {
    const rules = { remedies: { TurnLimit: RetryRules.resume(0) } }
    assert.deepStrictEqual(lines(["TurnLimit", "ok"], { turn: { rules } }), [
      ...["0m first-attempt", "0m turn-limit-resume-1 in s1", "0m succeeded succeeded"]
    ])
  })

  it("hold for any kind that they say so of", () => {
    const rules = { remedies: { Throttled: RetryRules.hold } }
    assert.deepStrictEqual(lines(["Throttled", { kind: "Throttled", resetIn: minute }, "ok"], { turn: { rules } }), [
      ...["0m first-attempt", "15m limit-unknown-reset-1 in s1", "18m limit-reset in s1", "18m succeeded succeeded"]
    ])
  })

  it("bound all launches of a round together", () => {
    const rules = { maxLaunches: 2, remedies: { Interrupted: RetryRules.resume(0, 0, 0, 0) } }
    assert.deepStrictEqual(lines(["Interrupted"], { turn: { rules } }).at(-1), "0m failed launches-used")
  })

  it("end the call at a wait that is longer than inlineWait", () => {
    const wait = (inlineWait: number) => {
      const turn = { id: "t", prompt: "", rules: { inlineWait } }
      const { state } = play(["Capacity"])
      const first = { ...state, attempts: state.attempts.slice(0, 1), end: null, wait: null }
      const decision = RetryPolicy.decide(turn, first, { now: start, jitter: 0 })
      return decision._tag === "Wait" ? decision.inline : undefined
    }
    assert.isTrue(wait(minute))
    assert.isFalse(wait(minute - 1))
  })

  it("what is left of a wait is never more than was planned, however far the clock steps back", () => {
    const { state } = play(["Capacity"])
    const waiting = fold(
      [
        {
          _tag: "WaitStarted",
          turnId: "t",
          wait: { rule: "r", hold: false, since: start, due: start + minute, failure: null }
        }
      ],
      { ...state, attempts: state.attempts.slice(0, 1), end: null, wait: null }
    )
    const left = (now: number) => {
      const decision = RetryPolicy.decide({ id: "t", prompt: "" }, waiting, { now, jitter: 0 })
      return decision._tag === "Wait" ? decision.remaining : 0
    }
    assert.strictEqual(left(start + 15_000), 45_000)
    assert.strictEqual(left(start - 100 * hour), minute)
    assert.strictEqual(left(start + hour), 0)
  })
})

describe("evolve", () => {
  it("sets the start and the starting commit once", () => {
    const again = fold([{ _tag: "TurnStarted", turnId: "t", at: 5, head: "other", account: null }], begun())
    assert.deepStrictEqual(again, begun())
  })
})

describe("whatever happens", () => {
  const scripted = fc.record({
    kind: fc.constantFrom(...kinds),
    scope: fc.constantFrom("request", "session", "model", "account", "machine"),
    resetIn: fc.option(fc.integer({ min: -20 * hour, max: 20 * hour }), { nil: undefined }),
    session: fc.constantFrom(null, "s"),
    ran: fc.boolean(),
    hostDied: fc.boolean(),
    costUsd: fc.option(fc.integer({ min: 0, max: 2 }), { nil: null })
  })
  const script = fc.array(scripted, { minLength: 1, maxLength: 30 })
  const turn = { model: "big", budgetUsd: 20, rules: { fallbackModels: ["small", "big", "tiny"] } }

  it("a round ends, within its attempts, its launches and its budget, and time never goes back", () => {
    fc.assert(
      fc.property(script, fc.double({ min: 0, max: 0.999, noNaN: true }), (all, jitter) => {
        const script = all.map(({ resetIn, ...rest }) => (resetIn === undefined ? rest : { ...rest, resetIn }))
        const { steps, state } = play(script, { turn, jitter })
        const launched = state.attempts
        const charged = launched.filter(({ purpose }) => ["first", "retry", "fresh", "fallback"].includes(purpose))
        assert.isAtMost(charged.length, 3)
        const deaths = launched.filter(({ ending }) => ending?.hostDied)
        assert.isAtMost(deaths.length, 11)
        const limits = launched.filter(({ ending }) => ending?.failure?.kind === "RateLimited" && !ending.hostDied)
        assert.isAtMost(launched.length - limits.length - deaths.length, 12)
        const before = launched
          .slice(0, -1)
          .reduce((sum, { ending }) => sum + (ending?.ran === true ? (ending.result?.costUsd ?? 0) : 0), 0)
        assert.isBelow(before, 20)
        assert.deepStrictEqual(
          steps.map(({ after }) => after),
          steps.map(({ after }) => after).toSorted((one, other) => one - other)
        )
      }),
      { numRuns: 300 }
    )
  })
})

describe("rules that cannot be used", () => {
  it("are named, the defaults are not", () => {
    assert.deepStrictEqual(RetryRules.problems(RetryRules.defaults), [])
    const wrong = RetryRules.complete({
      ...{ maxAttempts: 0, maxHostDeaths: -1, unknownReset: [], grace: "Infinity" },
      remedies: { Capacity: RetryRules.retry(-1) }
    })
    for (const name of ["maxAttempts", "maxHostDeaths", "unknownReset", "grace", "Capacity"]) {
      assert.isTrue(
        RetryRules.problems(wrong).some((problem) => problem.includes(name)),
        name
      )
    }
  })
})
