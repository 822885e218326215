import { assert, describe, it } from "@effect/vitest"
import type { Dispatcher, DispatcherEvent } from "shiftboss"
import * as fc from "fast-check"
import { applyPage } from "../../src/node/internal/pages/applyPage.ts"
import * as Fold from "../../src/node/internal/pages/fold.ts"
import { restOf, statusPage } from "../../src/node/internal/pages/statusPage.ts"
import { hidden, hostile, outsideBlocks } from "./pages/markdown.ts"

type Event = DispatcherEvent.DispatcherEvent

const at = 1_000

const fold = (state: Fold.State, ...events: ReadonlyArray<Event>): Fold.State => {
  for (const event of events) Fold.evolve(state, { cursor: state.cursor + 1, event })
  return state
}

const after = (...events: ReadonlyArray<Event>) => fold(Fold.initial(), ...events)

const parked = (id: string, payload = "please"): Event => ({
  ...{ _tag: "CaseParked", at, case: id, rev: 1, name: "p", request: `${id}/1/p`, payload }
})
const begun = (apply: string, ...ids: ReadonlyArray<string>): Event => ({
  ...{ _tag: "ApplyStarted", at, apply, version: "v0", requests: ids.map((id) => `${id}/1/p`) }
})
const changed = (apply: string, patch?: string): Event => ({
  _tag: "ApplyEnded",
  at,
  apply,
  applied: { _tag: "Changed", from: "v0", to: `v${apply}`, ...(patch === undefined ? {} : { patch }) }
})
const queued = (apply: string, ...ids: ReadonlyArray<string>): Event => ({
  ...{ _tag: "RechecksQueued", at, apply, cases: ids.map((id) => ({ case: id, rev: 1 })) }
})
const started = (apply: string, id: string): Event => ({ _tag: "RecheckStarted", at, apply, case: id })
const tried = (apply: string, id: string, outcome: "pass" | "failure" | "void" | "error", repair?: string): Event => ({
  ...{ _tag: "TryEnded", at, apply, case: id, arm: "new", try: 1, outcome, score: null, reason: outcome },
  ...(repair === undefined ? {} : { repair })
})
const passed = (apply: string, id: string): Event => ({
  ...{ _tag: "RecheckEnded", at, apply, case: id, outcome: { _tag: "Passed", unstable: false } }
})
const regressed = (apply: string, id: string): Event => ({
  ...{ _tag: "RecheckEnded", at, apply, case: id },
  outcome: { _tag: "Regressed", confirmed: true, request: `${id}/1/p` }
})
const runStarted: Event = {
  ...{ _tag: "RunStarted", at, start: 1, version: null, again: null },
  found: { open: 0, parked: 0, woken: 0, held: 0, failed: 0 }
}

const tookOf = (state: Fold.State, apply: string) =>
  state.pages.get(apply)?.requests.map(({ case: id, why }) => `${why} ${id}`)

describe("what an apply took", () => {
  it("is what was pending and is told once", () => {
    const state = after(parked("a"), parked("b"), begun("001", "a", "b"), changed("001"))
    assert.deepStrictEqual(tookOf(state, "001"), ["improvement a", "improvement b"])
    assert.deepStrictEqual([state.pending.size, state.ofCase.size], [0, 0])
  })

  it("stays pending when the apply failed, and is taken by the next", () => {
    const failed: Event = { _tag: "ApplyFailed", at, apply: "001", reason: "no\nway" }
    const state = after(parked("a"), begun("001", "a"), failed, begun("002", "a"))
    assert.deepStrictEqual([tookOf(state, "001"), tookOf(state, "002")], [["improvement a"], ["improvement a"]])
    assert.deepStrictEqual(state.errors, [{ at, of: "apply 001", reason: "no\nway" }])
    assert.isTrue(Fold.isFinal(state, state.pages.get("001")!))
  })

  it("is the repair that a regression asked for, with the last feedback", () => {
    const state = after(
      ...[parked("a"), begun("001", "a"), changed("001"), queued("001", "b"), started("001", "b")],
      ...[tried("001", "b", "failure", "first"), tried("001", "b", "failure", "second"), regressed("001", "b")],
      begun("002", "b")
    )
    assert.deepStrictEqual(tookOf(state, "002"), ["repair b"])
    assert.strictEqual(state.pages.get("002")?.requests[0]?.payload.text, "second")
  })

  it("is not what was cancelled, or of a case that was revised, retried or forgotten", () => {
    const drops: ReadonlyArray<Event> = [
      { _tag: "RequestCancelled", at, case: "a", rev: 1, request: "a/1/p" },
      { _tag: "CaseRevised", at, case: "a", rev: 2, from: 1 },
      { _tag: "CaseRetried", at, case: "a", rev: 1 },
      { _tag: "CaseForgotten", at, case: "a", rev: 1 }
    ]
    for (const drop of drops) {
      const state = after(parked("a"), parked("b"), drop, begun("001", "b"))
      assert.deepStrictEqual([tookOf(state, "001"), [...state.pending.keys()]], [["improvement b"], ["b/1/p"]])
    }
  })

  it("is shown also when no JSON can be made of it", () => {
    let deep: ReadonlyArray<unknown> = []
    for (let n = 0; n < 100_000; n++) deep = [deep]
    const state = after({ ...parked("a"), payload: deep } as Event, begun("001", "a"), changed("001"))
    assert.include(applyPage(state.pages.get("001")!), "(too deep to be shown)")
  })
})

describe("rechecks of an apply", () => {
  it("join a newer apply, on whose page they go on", () => {
    const moved: Event = { _tag: "RecheckMoved", at, case: "b", apply: "001", to: "002" }
    const state = after(
      ...[begun("001"), changed("001"), queued("001", "b", "c"), begun("002"), changed("002"), moved],
      ...[started("002", "b"), tried("002", "b", "pass"), passed("002", "b"), passed("001", "c")]
    )
    const [first, second] = [applyPage(state.pages.get("001")!), applyPage(state.pages.get("002")!)]
    assert.include(first, "### `b`: joined apply `002`")
    assert.include(first, "1 passed, 0 regressed, 0 void, 0 open.")
    assert.include(second, "### `b`: passed")
    assert.isTrue(Fold.isFinal(state, state.pages.get("001")!))
    // A later recheck may still join the newest.
    assert.isFalse(Fold.isFinal(state, state.pages.get("002")!))
  })

  it("wait again after a crash", () => {
    const state = after(begun("001"), changed("001"), queued("001", "b"), started("001", "b"))
    assert.include(applyPage(state.pages.get("001")!), "### `b`: running")
    fold(state, runStarted)
    assert.include(applyPage(state.pages.get("001")!), "### `b`: queued")
  })

  it("say why they say nothing", () => {
    const voided: Event = {
      ...{ _tag: "RecheckEnded", at, apply: "001", case: "b" },
      outcome: { _tag: "Void", why: "broke", reason: "no disk" }
    }
    const judged: Event = { _tag: "BatchJudged", at, apply: "001", finding: "environment" }
    const state = after(begun("001"), changed("001"), queued("001", "b"), tried("001", "b", "error"), judged, voided)
    const page = applyPage(state.pages.get("001")!)
    assert.include(page, "### `b`: void (broke): `no disk`")
    assert.include(page, "the environment is down")
    assert.deepStrictEqual(state.errors, [{ at, of: "recheck of b after apply 001", reason: "error" }])
  })
})

describe("memory", () => {
  it("does not grow with cases, applies, rechecks or errors", () => {
    const state = Fold.initial()
    const big = "x".repeat(1_000_000)
    for (let n = 0; n < 2_000; n++) {
      const apply = String(n)
      fold(
        state,
        ...[
          parked(`${n}`, big),
          begun(apply, `${n}`),
          changed(apply, big),
          queued(apply, `${n}`),
          started(apply, `${n}`)
        ],
        ...[tried(apply, `${n}`, "failure", big), passed(apply, `${n}`)],
        { _tag: "CaseFailed", at, case: `${n}`, rev: 1, reason: big },
        { _tag: "CaseCompleted", at, case: `${n}`, rev: 1 }
      )
      // As if each page were written when it is final.
      for (const [name, page] of state.pages) if (Fold.isFinal(state, page)) state.pages.delete(name)
    }
    assert.deepStrictEqual([state.pending.size, state.ofCase.size, state.pages.size], [0, 0, 1])
    assert.isBelow(JSON.stringify([...state.pages.values(), state.recent, state.errors]).length, 500_000)
  })

  it("holds of a patch what is shown, and counts all of it", () => {
    const patch = `--- a/x\n+++ b/x\n@@ -0,0 +1,1000000 @@\n${"+ab\n".repeat(1_000_000)}`
    const state = after(begun("001"), changed("001", patch))
    const page = applyPage(state.pages.get("001")!)
    assert.isBelow(page.length, 210_000)
    assert.include(page, "1 file, 1,000,000 lines added, 0 removed.")
    // It ends with a whole line.
    assert.match(page, /\n\+ab\n```\n\nCut: 19\d,\d{3} of /)
    assert.include(page, ` of ${patch.length.toLocaleString("en-US")} characters are shown.`)
  })

  it("shows a patch that is none as text", () => {
    const state = after(begun("001"), changed("001", "+ a rule"))
    assert.include(applyPage(state.pages.get("001")!), "```text\n+ a rule\n```")
  })
})

/** What the pages themselves write outside code: words, numbers, and the Markdown of tables, lists, headings and links. */
const ours = /^[-A-Za-z0-9 #|:.,%+−≥()–…@[\]/]*$/

describe("pages with hostile text in every place", () => {
  it("have nothing of it outside code", () => {
    const texts = fc.record({ id: hostile, text: hostile, name: hostile, patch: hostile })
    const lines = fc.constantFrom(
      "diff --git ",
      "--- a/",
      "+++ b/",
      "@@ -1 +1 @@",
      "rename from ",
      "rename to ",
      "+",
      "-"
    )
    const patches = fc
      .array(fc.tuple(lines, hostile), { maxLength: 6 })
      .map((all) => all.map((line) => line.join("")).join("\n"))
    fc.assert(
      fc.property(texts, patches, ({ id, text, name, patch }, diff) => {
        const state = after(
          ...[
            runStarted,
            parked(id, text),
            { ...begun(name, id), version: text } as Event,
            changed(name, `${diff}\n${patch}`)
          ],
          ...[
            queued(name, id, text),
            { ...tried(name, id, "error"), reason: text } as Event,
            tried(name, id, "failure", patch)
          ],
          ...[{ ...regressed(name, id), outcome: { _tag: "Regressed", confirmed: true, request: text } } as Event],
          { _tag: "CaseFailed", at, case: id, rev: 1, reason: text }
        )
        const page = applyPage(state.pages.get(name)!)
        const status = statusPage(state, snapshotOf(id, text, name), restOf(state, snapshotOf(id, text, name)), at)
        for (const all of [page, status]) {
          for (const line of outsideBlocks(all)) assert.match(line.replace(/\(applies\/[%\w.-]*\.md\)/, ""), ours, all)
          assert.notMatch(all.replace(/[\n\t]/g, ""), hidden)
        }
      }),
      { numRuns: 500 }
    )
  })
})

const none = { total: null, known: null }

const snapshotOf = (id: string, text: string, apply: string): Dispatcher.Snapshot => ({
  run: "running",
  seats: [null, { case: id, recheck: { apply, arm: "new", try: 1 }, step: text, since: 0 }],
  waiting: { woken: 0, fresh: 0, parked: 0, held: 0, rechecks: 0, requests: 0 },
  oldestWaiting: { woken: null, rechecks: null, fresh: null, parked: null, held: null },
  applying: { apply, state: "running" },
  counts: { completed: 0, difficult: 0, failed: 0 },
  rechecks: { passed: 0, regressed: 0, void: 0 },
  usage: [
    {
      ...{
        of: "cases",
        stage: text,
        model: id,
        attempts: 1,
        costUsd: { total: null, known: 1 },
        estimatedCostUsd: null
      },
      usage: { input: none, output: none, cacheRead: none, cacheWrite: none, reasoning: none }
    }
  ],
  version: text,
  spentUsd: 0,
  end: null
})
