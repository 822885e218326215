import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Heap } from "../../src/core/internal/Heap.ts"
import { escaped } from "../../src/core/internal/escape.ts"

describe("a heap", () => {
  it("gives what was put in by its key, the least first, whatever is taken between", () => {
    const steps = fc.array(fc.oneof(fc.integer({ min: -9, max: 9 }), fc.constant("pop" as const)), { maxLength: 80 })
    fc.assert(
      fc.property(steps, (all) => {
        const heap = new Heap<string>()
        let model: Array<number> = []
        for (const step of all) {
          if (step === "pop") {
            const least = model.length === 0 ? undefined : Math.min(...model)
            assert.strictEqual(heap.least, least ?? Infinity)
            const peeked = heap.peek()
            assert.strictEqual(heap.pop(), peeked)
            assert.strictEqual(peeked, least === undefined ? undefined : `item ${least}`)
            const at = model.indexOf(least ?? NaN)
            model = model.filter((_, index) => index !== at)
          } else {
            heap.push(step, `item ${step}`)
            model.push(step)
          }
          assert.strictEqual(heap.size, model.length)
        }
        heap.clear()
        assert.deepStrictEqual([heap.size, heap.least, heap.peek(), heap.pop()], [0, Infinity, undefined, undefined])
      })
    )
  })
})

describe("an id in a name", () => {
  it("has no separator in it, and is told from every other", () => {
    assert.deepStrictEqual(["plain id", "a/b", "a%2Fb", "100 %", "//"].map(escaped), [
      "plain id",
      "a%2Fb",
      "a%252Fb",
      "100 %25",
      "%2F%2F"
    ])
  })
})
