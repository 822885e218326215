/**
 * The decision against a slow table of its own, over random histories, and the totals against a plain sum.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Failure, RetryPolicy, type Turn } from "shiftboss"
import { begun, failureOf, fold, hour, minute, type Scripted, start } from "./play.ts"

type Kind = Failure.FailureKind

/** Minutes, as the design has them. */
const repeats: { readonly [kind: string]: ReadonlyArray<number> } = {
  ...{ Capacity: [1, 3], ServerError: [1, 3], Network: [10, 40], Throttled: [1, 3] }
}
const resumes: { readonly [kind: string]: ReadonlyArray<number> } = {
  ...{ StreamCut: [0, 1], Interrupted: [0, 1, 3], Hung: [0, 1, 3], SessionBusy: [0, 1, 3] }
}
const anew = ["SessionLost", "SessionPoisoned", "ContextOverflow"]
const models = ["first", "second"]

interface Past {
  readonly kind: Kind
  readonly how: string
  readonly model: string
  readonly perModel: boolean
}

/** What follows, in one word, its wait in minutes and its model; `past` is one round, without stops and dead hosts. */
const expected = (past: ReadonlyArray<Past>, known: boolean, reset: number | null): string => {
  const last = past.at(-1)
  if (last === undefined) return "first 0 own"
  const free = ["resume", "after-hold"]
  const tries = past.filter(({ how }) => !free.includes(how)).length
  const counted = past.filter(({ kind }) => kind !== "RateLimited").length
  const bad = past.flatMap(({ kind, model, perModel }) =>
    kind === "ModelUnavailable" || (kind === "RateLimited" && perModel) ? [model] : []
  )
  const step = (how: string, wait: number, model: string) => (counted >= 12 ? "end" : `${how} ${wait} ${model}`)
  const late = tries + 1 >= 3 ? models[tries + 1 - 3] : undefined
  const later = late === undefined || bad.includes(late) ? last.model : late
  const unused = tries < 3 ? models.find((model) => past.every((each) => each.model !== model)) : undefined
  const again = () => (tries < 3 && past.every(({ how }) => how !== "fresh") ? step("fresh", 0, later) : "end")
  const { kind } = last
  const ladder = repeats[kind]
  if (ladder !== undefined) {
    const wait = ladder[tries - 1]
    if (tries >= 3 || wait === undefined) return "end"
    return step("retry", Math.max(wait, reset ?? 0), later)
  }
  const climb = resumes[kind]
  if (climb !== undefined) {
    if (!known) return again()
    const wait = climb[past.filter(({ how }) => how === "resume").length]
    return wait === undefined ? "end" : step("resume", wait, last.model)
  }
  if (anew.includes(kind)) return again()
  if (kind === "ModelUnavailable") return unused === undefined ? "end" : step("fallback", 0, unused)
  if (kind === "RateLimited") {
    if (last.perModel && unused !== undefined) return step("fallback", 0, unused)
    const run = past.length - 1 - past.findLastIndex((each) => each.kind !== "RateLimited")
    // The script says either always or never when a limit ends, two minutes before it does.
    return step("after-hold", reset === null ? [15, 30, 60][Math.min(run, 3) - 1]! : reset + 2, last.model)
  }
  return "end"
}

const kinds = Object.keys(Failure.usualScope).filter((kind): kind is Kind => kind !== "Stopped")

const scripts = fc.array(
  fc.record({
    kind: fc.oneof(
      fc.constantFrom(...kinds),
      fc.constantFrom<Kind>("Capacity", "RateLimited", "StreamCut", "ModelUnavailable", "SessionLost", "Hung")
    ),
    known: fc.boolean(),
    perModel: fc.boolean(),
    cost: fc.option(fc.integer({ min: 0, max: 100 }))
  }),
  { maxLength: 16 }
)

const failing = (one: Past, reset: number | null, at: number): Failure.Failure => {
  const scope: Scripted = { kind: one.kind, scope: one.perModel ? "model" : Failure.usualScope[one.kind] }
  return failureOf(reset === null ? scope : { ...scope, resetIn: reset * minute }, at)
}

describe("the decision", () => {
  it("is that of the table after any history, and the totals are the plain sums", () => {
    const turn: Turn.Turn = {
      id: "t",
      prompt: "do it",
      model: "own",
      rules: { fallbackModels: models, maxHold: 99 * hour }
    }
    let followed = 0
    const property = fc.property(scripts, fc.option(fc.integer({ min: 1, max: 90 })), (script, reset) => {
      let state = begun("t")
      let now = start
      let known = false
      const past: Array<Past> = []
      const costs: Array<number | null> = []
      for (const { kind, known: named, perModel, cost } of [...script, ...script.slice(0, 1)]) {
        let decision = RetryPolicy.decide(turn, state, { now, jitter: 0 })
        let waited = 0
        if (decision._tag === "Wait") {
          waited = decision.remaining / minute
          now += decision.remaining
          state = fold([{ _tag: "WaitStarted", turnId: "t", wait: decision.wait }], state)
          decision = RetryPolicy.decide(turn, state, { now, jitter: 0 })
        }
        const told = decision._tag === "Launch" ? `${decision.purpose} ${waited} ${decision.model}` : "end"
        assert.strictEqual(told, expected(past, known, reset), JSON.stringify(past))
        if (decision._tag !== "Launch") break
        followed += 1
        const { purpose, rule, model, resume } = decision
        const id = resume ?? `s${past.length}`
        const one = { kind, how: purpose, model: model ?? "", perModel: kind === "RateLimited" && perModel }
        past.push(one)
        costs.push(cost)
        known = named || resume !== null
        const number = past.length
        const session = { _tag: resume === null ? "New" : "Resume", id } as const
        const result = { text: "", sessionId: named ? id : null, usage: null, costUsd: cost, turns: null, model: null }
        const failure = failing(one, reset, now)
        const ending = { at: now, failure, result, estimatedCostUsd: null, ran: true }
        state = fold(
          [
            { _tag: "AttemptStarted", turnId: "t", at: now, number, purpose, rule, session, model },
            { _tag: "AttemptEnded", turnId: "t", ending }
          ],
          state
        )
      }
      const end: Turn.End = { at: now, status: "failed", rule: "", detail: "", fix: null, until: null }
      const { totals } = RetryPolicy.outcome(state, end, undefined)
      const sum = costs.reduce<number>((total, cost) => total + (cost ?? 0), 0)
      const some = costs.length === 0 || costs.some((cost) => cost !== null)
      assert.deepStrictEqual(totals.costUsd, { total: costs.includes(null) ? null : sum, known: some ? sum : null })
    })
    fc.assert(property, { numRuns: 2000 })
    assert.isAbove(followed, 4000)
  })
})
