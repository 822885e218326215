import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { hidden, hostile, isOneBlock, outsideCode } from "./pages/markdown.ts"
import * as Text from "../../src/node/internal/pages/text.ts"

describe("text of agents inline", () => {
  it("is all inside a code span, on one line, with nothing hidden, whatever it holds", () => {
    fc.assert(
      fc.property(hostile, fc.integer({ min: 1, max: 40 }), (text, limit) => {
        const line = `- ${Text.code(text, limit)} end`
        assert.match(outsideCode(line), /^- (?:\(empty\))? end$/)
        assert.notMatch(line, hidden)
      }),
      { numRuns: 2_000 }
    )
  })

  it("never ends a cell of a table, whichever way a renderer reads a backslash before a pipe", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const row = `| ${Text.cell(text)} | b |`
        // A backslash escapes what follows it, or a pipe is escaped by the backslash before it.
        const pairwise = row.replace(/\\./g, "").split("|").length
        const before = row.replaceAll("\\|", "").split("|").length
        assert.deepStrictEqual([pairwise, before], [4, 4], row)
      }),
      { numRuns: 2_000 }
    )
  })

  it("is cut, without splitting a character", () => {
    assert.strictEqual(Text.code("abcdef", 3), "`abc…`")
    assert.strictEqual(Text.code("abcdef", 6), "`abcdef`")
    assert.strictEqual(Text.code("ab👩cd", 3), "`ab…`")
    assert.strictEqual(Text.code("a".repeat(5_000_000), 10), "`aaaaaaaaaa…`")
    assert.strictEqual(Text.code(`${"\n".repeat(5_000)}a`, 10), "`…`")
  })

  it("loses its colours, and shows its line ends and controls", () => {
    assert.strictEqual(Text.code("\u001b[31mred\u001b[0m\n\tnext"), "`red ⏎ next`")
    assert.strictEqual(Text.code("a\0b\u202ec"), "`a␀b⟨U+202E⟩c`")
    assert.strictEqual(Text.code(" \n "), "(empty)")
    assert.strictEqual(Text.code("`"), "`` ` ``")
    assert.strictEqual(Text.cell("a|b\\|c"), "`a\\|b\\¦c`")
  })
})

describe("text of agents in a block", () => {
  it("stays inside its fence, with nothing hidden, whatever it holds", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        for (const block of [Text.prose(text), Text.verbatim("diff", text)]) {
          assert.isTrue(isOneBlock(block), block)
          assert.notMatch(block.replace(/[\n\t]/g, ""), hidden)
        }
      }),
      { numRuns: 2_000 }
    )
  })

  it("shows line ends that only a patch changes", () => {
    assert.strictEqual(Text.verbatim("diff", "-a\r\n+a\n"), "```diff\n-a␍\n+a\n```")
    assert.strictEqual(Text.prose("a\r\nb"), "```text\na\nb\n```")
  })

  it("is fenced also when it is nothing but backticks, five million of them", () => {
    const all = "`".repeat(5_000_000)
    assert.isTrue(isOneBlock(Text.verbatim("diff", all)))
    assert.isTrue(isOneBlock(Text.verbatim("diff", `${all}\n${all}\`\n`)))
  })
})

describe("numbers", () => {
  it("are shown in units that say something", () => {
    assert.deepStrictEqual([-5, 999, 61_000, 3_660_000, 90_000_000].map(Text.duration), [
      "0 s",
      "0 s",
      "1 min 1 s",
      "1 h 1 min",
      "1 d 1 h"
    ])
    assert.deepStrictEqual([0, 0.0042, 1.005, 1_234].map(Text.usd), ["0.00", "0.0042", "1.00", "1234.00"])
    assert.deepStrictEqual([Text.time(0), Text.time(1e300)], ["1970-01-01 00:00:00 UTC", "at an unknown time"])
    assert.deepStrictEqual([Text.plural(1, "file"), Text.plural(1_234, "file")], ["1 file", "1,234 files"])
  })
})
