import { assert, describe, it } from "@effect/vitest"
import { Case, Dispatcher, Improvements } from "shiftboss"

const stopTimedOut = { cases: ["a", "b"], apply: "002", storage: true }
const turnFailed = {
  ...{ turnId: "a/1/answer", rule: "capacity-retry-used", detail: "No capacity." },
  ...{ status: "failed" as const, fix: null, until: null }
}

/** What a person reads of each error, and what of it depends on what happened. */
const messages: ReadonlyArray<readonly [error: Error, message: string | RegExp]> = [
  [
    new Dispatcher.InvalidOption({ option: "seats", value: 0, allowed: "a whole number" }),
    "the option seats is 0; give a whole number."
  ],
  [
    new Dispatcher.InvalidSelection({ case: "a", problem: "duplicate id", detail: "select it once." }),
    'the selection is not valid at case "a" (duplicate id): select it once.'
  ],
  [
    new Dispatcher.ApplyFailed({ apply: "001", reason: "no" }),
    "apply 001 failed: no\nIts requests stay pending and the next run takes them again."
  ],
  [
    new Dispatcher.BreakerTripped({
      failures: [
        { case: "a", reason: "no\n  at stack" },
        { case: "b", reason: "nor this" }
      ]
    }),
    /^2 cases failed in a row with no step going through between \(a: no; b: nor this\)\. Mend what they share/
  ],
  [new Dispatcher.StopTimedOut(stopTimedOut), /and goes on: case a, case b, apply 002, the storage\. Its log/],
  [new Dispatcher.StopTimedOut({ ...stopTimedOut, apply: null, storage: false }), /and goes on: case a, case b\. Its/],
  [new Dispatcher.TurnFailed(turnFailed), 'the turn "a/1/answer" failed (capacity-retry-used): No capacity.'],
  [
    new Dispatcher.TurnFailed({ ...turnFailed, fix: "Wait." }),
    'the turn "a/1/answer" failed (capacity-retry-used): No capacity. Wait.'
  ],
  [new Dispatcher.UnknownCase({ case: "a" }), /^no case "a" is in the log or in the selection/],
  [
    new Dispatcher.CaseNotChanged({ case: "a", change: "retry", state: "completed" }),
    /^case "a" is completed; only a difficult case can be given a new round/
  ],
  [
    new Dispatcher.CaseNotChanged({ case: "a", change: "forget", state: "on a seat" }),
    'case "a" is on a seat; stop the run or wait for it to leave its seat, then forget it.'
  ],
  [new Improvements.UnknownRequest({ request: "r" }), /^no request "r" is pending; Improvements\.pending lists/],
  [
    new Case.SystemDown({ reason: "no disk" }),
    "the run ended because what every case stands on is down: no disk. Start it again when that is mended."
  ]
]

describe("errors of a run say what is wrong and what to do:", () => {
  for (const [error, message] of messages) {
    it(`${error.name}: ${error.message.slice(0, 60)}`, () => {
      if (typeof message === "string") assert.strictEqual(error.message, message)
      else assert.match(error.message, message)
    })
  }
})

describe("what train and apply answer with", () => {
  it("is made of what is given, and nothing else", () => {
    assert.deepStrictEqual<ReadonlyArray<unknown>>(
      [
        Case.completed(),
        Case.completed(null),
        Case.difficult("why"),
        Improvements.changed("a", "b"),
        Improvements.changed("a", "b", ""),
        Improvements.skipped("why")
      ],
      [
        { _tag: "Completed", value: undefined },
        { _tag: "Completed", value: null },
        { _tag: "Difficult", reason: "why" },
        { _tag: "Changed", from: "a", to: "b" },
        { _tag: "Changed", from: "a", to: "b", patch: "" },
        { _tag: "Skipped", reason: "why" }
      ]
    )
  })
})
