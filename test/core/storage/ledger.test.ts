import { assert, describe, it } from "@effect/vitest"
import type { Storage } from "shiftboss"
import { Ledger } from "../../../src/core/internal/storage/ledger.ts"
import { decodeRecord, encodeHeader, encodeRecord } from "../../../src/core/internal/storage/record.ts"

interface At {
  readonly epoch?: number
  /** Those of its flush; without them it is one of its own. */
  readonly first?: number
  readonly last?: number
}

/** The line of entry `seq`, whose content is the same number. */
const entry = (seq: number, { epoch = 1, first = seq, last = seq }: At = {}) =>
  encodeRecord({ epoch, seq, first, last }, String(seq))

const flush = (first: number, last: number, epoch = 1) =>
  Array.from({ length: last - first + 1 }, (_, index) => entry(first + index, { epoch, first, last }))

const header = encodeHeader("log")
/** What is left of a line that was cut off. */
const torn = `${entry(1).slice(0, 20)}\0`

/** Reads until the end or a problem, with and without the entries, which must not make a difference. */
const read = (...lines: ReadonlyArray<string>) => {
  const run = (into: Array<Storage.Json> | undefined) => {
    const ledger = new Ledger("log")
    for (const line of lines) {
      const problem = ledger.read(line, into)
      if (problem !== undefined) return { ledger, problem }
    }
    return { ledger, problem: undefined }
  }
  const standsOf = ({ epoch, isWhole, lastLine, line, next, standing }: Ledger) => ({
    ...{ epoch, isWhole, lastLine },
    ...{ line, next, standing }
  })
  const entries: Array<Storage.Json> = []
  const { ledger, problem } = run(entries)
  const stands = standsOf(ledger)
  const blind = run(undefined)
  assert.deepStrictEqual([standsOf(blind.ledger), blind.problem?.message], [stands, problem?.message])
  return { entries, stands, problem }
}

const damage = (...lines: ReadonlyArray<string>): readonly [line: number, found: string] => {
  const { problem } = read(...lines)
  assert(problem?._tag === "LogCorrupt", "it is damaged")
  assert.strictEqual(problem.log, "log")
  return [problem.line, problem.found]
}

describe("the header", () => {
  it("stands, and no entry has been seen", () => {
    const { stands } = read(header)
    assert.deepStrictEqual(stands, { epoch: 0, isWhole: true, lastLine: header, line: 1, next: 1, standing: 1 })
  })

  it("is the log's own, of a version that can be read, and undamaged", () => {
    assert.deepStrictEqual(damage(encodeHeader("other")), [1, 'it holds the log "other" instead'])
    assert.deepStrictEqual(damage(torn), [1, "the checksum of its header does not match"])
    assert.deepStrictEqual(damage(""), [1, "it is empty"])
    assert.deepStrictEqual(damage(entry(1)), [1, "it does not begin with a header"])
  })
})

describe("entries", () => {
  it("stand one by one, or all of their flush at once", () => {
    const lines = [header, entry(1), ...flush(2, 4), entry(5, { epoch: 7 })]
    const { entries, stands } = read(...lines)
    assert.deepStrictEqual(entries, [1, 2, 3, 4, 5])
    assert.deepStrictEqual(stands, {
      epoch: 7,
      isWhole: true,
      lastLine: lines.at(-1),
      line: 6,
      next: 6,
      standing: 6
    })
    const half = read(...lines.slice(0, 4))
    assert.deepStrictEqual(half.entries, [1])
    assert.deepStrictEqual(half.stands, {
      epoch: 1,
      isWhole: false,
      lastLine: lines[1],
      line: 4,
      next: 2,
      standing: 2
    })
  })

  it("of a holder that was fenced off do not count, and those of its successor do", () => {
    const { entries, stands } = read(header, entry(1, { epoch: 2 }), entry(2), entry(2, { epoch: 2 }))
    assert.deepStrictEqual(entries, [1, 2])
    assert.deepStrictEqual([stands.standing, stands.epoch], [4, 2])
    assert.isFalse(read(header, entry(1, { epoch: 2 }), entry(2)).stands.isWhole)
  })

  it("follow each other", () => {
    assert.deepStrictEqual(damage(header, entry(2)), [2, "entry 1 is missing; entry 2 stands here"])
    assert.deepStrictEqual(damage(header, entry(1), entry(3)), [3, "entry 2 is missing; entry 3 stands here"])
    assert.deepStrictEqual(damage(header, entry(1), entry(1)), [3, "entry 2 is missing; entry 1 stands here"])
    assert.deepStrictEqual(damage(header, flush(1, 3)[0]!, flush(1, 3)[2]!), [
      3,
      "entry 2 is missing; entry 3 stands here"
    ])
  })

  it("of one flush are of the same one, from its first to its last", () => {
    const rest = "the rest of the entries written with entry 1 is missing"
    const [one] = flush(1, 3)
    assert.deepStrictEqual(damage(header, one!, entry(2)), [3, rest])
    assert.deepStrictEqual(damage(header, one!, entry(2, { first: 1, last: 4 })), [3, rest])
    assert.deepStrictEqual(damage(header, one!, entry(2, { first: 2, last: 3 })), [3, rest])
    assert.deepStrictEqual(damage(header, one!, entry(2, { epoch: 2, first: 1, last: 3 })), [3, rest])
    // One that begins in the middle of a flush, and one that ends before it begins.
    assert.deepStrictEqual(damage(header, entry(1, { first: 0, last: 3 }))[0], 2)
    assert.deepStrictEqual(damage(header, entry(1, { first: 1, last: 0 }))[0], 2)
  })

  it("are JSON, which is looked at only where they are asked for", () => {
    const bad = encodeRecord({ epoch: 1, seq: 2, first: 1, last: 2 }, "{")
    for (const lines of [[encodeRecord({ epoch: 1, seq: 1, first: 1, last: 1 }, "{")], [flush(1, 2)[0]!, bad]]) {
      const ledger = new Ledger("log")
      const into: Array<Storage.Json> = []
      const problems = [header, ...lines].map((line) => ledger.read(line, into))
      const last = problems.at(-1)
      assert.deepStrictEqual(last?._tag === "LogCorrupt" && [last.line, last.found], [
        lines.length + 1,
        "its entry is not JSON"
      ])
      assert.deepStrictEqual(into, [])
      const blind = new Ledger("log")
      for (const line of [header, ...lines]) assert.isUndefined(blind.read(line, undefined))
      assert.isTrue(blind.isWhole)
    }
  })
})

describe("damage", () => {
  it("that no crash leaves is told at once", () => {
    const flipped = entry(2).replace("2", "3")
    assert.deepStrictEqual(damage(header, entry(1), flipped), [3, "its checksum does not match"])
  })

  it("at the end is what a crash leaves: it does not stand, whatever it is followed by of its flush", () => {
    for (const rest of [[], [torn], ["x"], flush(2, 4).slice(1)]) {
      const { entries, problem, stands } = read(header, entry(1), torn, ...rest)
      assert.isUndefined(problem)
      assert.deepStrictEqual(entries, [1])
      assert.deepStrictEqual([stands.standing, stands.next, stands.isWhole], [2, 2, false])
    }
  })

  it("in the middle of a flush takes what was read of it along", () => {
    const [one, , three] = flush(1, 3)
    const { entries, problem, stands } = read(header, one!, torn, three!)
    assert.isUndefined(problem)
    assert.deepStrictEqual(entries, [])
    assert.deepStrictEqual([stands.standing, stands.next], [1, 1])
  })

  it("that was written behind is a loss, and told where it is", () => {
    const found = [3, "its checksum does not match"] as const
    assert.deepStrictEqual(damage(header, entry(1), torn, entry(3)), found)
    assert.deepStrictEqual(damage(header, entry(1), torn, torn, ...flush(3, 4)), found)
  })
})

describe("a ledger of the last lines", () => {
  it("goes on from a record as if all before it had been read", () => {
    const lines = [...flush(5, 6, 3), entry(7, { epoch: 4 })]
    const first = decodeRecord(lines[0]!)
    assert(typeof first !== "string")
    const ledger = Ledger.from("log", first)
    assert.deepStrictEqual([ledger.next, ledger.epoch, ledger.standing, ledger.isWhole], [5, 3, 5, true])
    for (const line of lines) assert.isUndefined(ledger.read(line, undefined))
    // The header and seven entries.
    assert.deepStrictEqual([ledger.next, ledger.epoch, ledger.standing, ledger.isWhole], [8, 4, 8, true])
  })
})
