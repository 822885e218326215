/**
 * The checks of the crash harness find what they are there for. The harness itself is `npm run crash`.
 */
import { assert, describe, it } from "@effect/vitest"
import type { DispatcherEvent } from "shiftboss"
import { makeMoments } from "./moments.ts"
import { makeRandom } from "./random.ts"
import { makeMarks } from "./rules.ts"
import { makeWitness } from "./witness.ts"

type Told = Parameters<ReturnType<typeof makeWitness>["hear"]>[0]

const appended = (id: number, ...entries: ReadonlyArray<number>): Told => ({
  ...{ _tag: "Attempted", log: "log", operation: "append", id, entries }
})
const replaced = (id: number, ...entries: ReadonlyArray<number>): Told => ({
  ...{ _tag: "Attempted", log: "log", operation: "replace", id, entries }
})
const acknowledged = (id: number): Told => ({ _tag: "Acknowledged", id })

/** What the witness says of the log as it is found after one process. */
const found = (entries: ReadonlyArray<number>, ...told: ReadonlyArray<Told>) => {
  const witness = makeWitness()
  for (const one of told) witness.hear(one)
  return witness.compare("log", entries)
}

describe("the witness", () => {
  const two = [appended(1, 1), acknowledged(1), appended(2, 2, 3)]

  it("takes what was acknowledged, and what was attempted last or not", () => {
    assert.isUndefined(found([1], ...two))
    assert.isUndefined(found([1, 2, 3], ...two))
    assert.isUndefined(found([1, 4], ...two, appended(3, 4)))
  })

  it("finds what was acknowledged and lost, also when later ones are there", () => {
    assert.match(found([], ...two) ?? "", /acknowledged, and not there: append 1/)
    assert.match(found([2, 3], ...two) ?? "", /acknowledged, and not there: append 1/)
  })

  it("finds half a call, one that stands twice, another order, and what nobody wrote", () => {
    for (const entries of [
      [1, 2],
      [1, 2, 3, 2, 3],
      [2, 3, 1],
      [1, 7],
      [1, 1]
    ]) {
      assert.isDefined(found(entries, ...two), entries.join())
    }
  })

  it("takes the content before a replacement or after it, and only the latter once it was acknowledged", () => {
    const compacted = [...two, acknowledged(2), replaced(3, 3), appended(4, 4)]
    assert.isUndefined(found([1, 2, 3], ...compacted))
    assert.isUndefined(found([3], ...compacted))
    assert.isUndefined(found([3, 4], ...compacted))
    assert.isDefined(found([1, 2, 3], ...compacted, acknowledged(3)))
    assert.isUndefined(found([3], ...compacted, acknowledged(3)))
  })

  it("finds that what it has seen once has changed, or came back", () => {
    const witness = makeWitness()
    for (const told of two) witness.hear(told)
    assert.isUndefined(witness.compare("log", [1]))
    witness.died()
    witness.hear(appended(1, 5))
    assert.isDefined(witness.compare("log", [1, 2, 3]))
    witness.hear(appended(1, 5))
    assert.match(witness.compare("log", [9, 2, 3]) ?? "", /entries that were there has changed/)
  })
})

describe("the rules of steps and applies", () => {
  const at = 1
  const stepEnded = (step: string) => ({ _tag: "StepEnded", at, case: "a", rev: 1, step }) as const
  const begun = (apply: string) => ({ _tag: "ApplyStarted", at, apply, version: null, requests: [] }) as const
  const ended = (apply: string) =>
    ({ _tag: "ApplyEnded", at, apply, applied: { _tag: "Changed", from: "1", to: "2" } }) as const
  const check = (events: ReadonlyArray<DispatcherEvent.DispatcherEvent>, ...commits: ReadonlyArray<string>) =>
    makeMarks().check(events, ["No rules yet", ...commits])

  it("find a step that ran after it had ended, or ended twice", () => {
    const marks = makeMarks()
    const again = { _tag: "StepBegun", case: "a", rev: 1, step: "try" } as const
    assert.isUndefined(marks.hear(again))
    assert.deepStrictEqual(marks.check([stepEnded("try")], []), [])
    assert.match(marks.hear(again) ?? "", /try of a, rev 1 had ended and ran again/)
    assert.isUndefined(marks.hear({ ...again, rev: 2 }))
    assert.match(check([stepEnded("try"), stepEnded("try")]).join(), /ended twice/)
  })

  it("find a step that ran again in one try of a recheck, and take it in the next try", () => {
    const recheck = { apply: "001", arm: "new" } as const
    const begun = { _tag: "StepBegun", case: "a", rev: 1, step: "try", recheck } as const
    const stepEnded = { _tag: "RecheckStepEnded", at, case: "a", step: "try", ...recheck } as const
    const said = { outcome: "pass", reason: null, score: null } as const
    const tryEnded = { _tag: "TryEnded", at, case: "a", ...recheck, try: 1, ...said } as const
    const marks = makeMarks()
    assert.isEmpty(marks.check([stepEnded], []))
    assert.match(marks.hear(begun) ?? "", /try of a, recheck 001 new had ended and ran again/)
    assert.isUndefined(marks.hear({ ...begun, recheck: { apply: "002", arm: "new" } }))
    const entries = [{ version: 1, value: tryEnded }]
    marks.hear({ _tag: "Attempted", id: 1, log: "dispatch", operation: "append", entries })
    assert.isUndefined(marks.hear(begun))
    assert.match(check([stepEnded, stepEnded]).join(), /ended twice/)
    assert.isEmpty(check([stepEnded, tryEnded, stepEnded]))
  })

  it("find an apply that was named twice, made twice, made and forgotten, or called after its end", () => {
    const events = [begun("001"), ended("001"), begun("002")]
    assert.deepStrictEqual(check(events, "apply 001: add a"), [])
    assert.deepStrictEqual(check(events, "apply 001: add a", "apply 002: add b"), [])
    assert.match(check(events, "apply 001: add a", "apply 001: add a").join(), /001 was made twice/)
    assert.match(check(events).join(), /the commits are of/)
    assert.match(check([...events, begun("001")], "apply 001: add a").join(), /under one name twice/)
    assert.match(check([ended("001")], "apply 001: add a").join(), /never begun/)
    const marks = makeMarks()
    marks.check(events, [])
    assert.isDefined(marks.hear({ _tag: "ApplyBegun", apply: "001" }))
    assert.isUndefined(marks.hear({ _tag: "ApplyBegun", apply: "002" }))
  })
})

describe("the moments of kills", () => {
  const longestAfter = (lived: (life: number) => { readonly killed: boolean; readonly progress: boolean }) => {
    const moments = makeMoments(makeRandom(1))
    for (let life = 0; life < 200; life++) moments.learn(moments.next(), { openedAfter: 300, ...lived(life) })
    const drawn = Array.from({ length: 400 }, () => moments.next().moment)
    return Math.max(...drawn.map((moment) => (moment._tag === "SinceOpen" ? moment.millis : 0)))
  }

  it("are further off for as long as nothing gets done, and nearer when something does or it came to its end", () => {
    assert.isAbove(
      longestAfter(() => ({ killed: true, progress: false })),
      10_000
    )
    assert.isBelow(
      longestAfter(() => ({ killed: true, progress: true })),
      100
    )
    assert.isBelow(
      longestAfter((life) => ({ killed: life < 150, progress: false })),
      100
    )
  })

  it("are the same for the same seed, and of every sort", () => {
    const plans = (seed: number) => {
      const moments = makeMoments(makeRandom(seed))
      return Array.from({ length: 100 }, () => moments.next())
    }
    assert.deepStrictEqual(plans(7), plans(7))
    assert.notDeepEqual(plans(7), plans(8))
    assert.strictEqual(new Set(plans(7).map(({ aim, moment }) => `${aim} ${moment._tag}`)).size, 12)
  })
})
