import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { copyOf } from "../../src/core/internal/json.ts"

type Value = Parameters<typeof copyOf>[0]

/** What text would make of it. */
const throughText = (value: unknown): unknown => {
  const text: string | undefined = JSON.stringify(value)
  return text === undefined ? undefined : JSON.parse(text)
}

describe("a copy of a value", () => {
  it("is what its JSON would be read as, whatever the value is", () => {
    const odd = fc.oneof(
      fc.jsonValue(),
      fc.anything({ withDate: true, withNullPrototype: true, withSparseArray: true })
    )
    fc.assert(
      fc.property(odd, (value) => {
        assert.deepStrictEqual(copyOf(value as Value), throughText(value))
      }),
      { numRuns: 2_000 }
    )
  })

  for (const [name, value] of Object.entries({
    "its own __proto__": JSON.parse('{"__proto__":{"a":1},"b":2}'),
    "a toJSON": { toJSON: () => ({ as: "this" }) },
    "a list with a toJSON": Object.assign([1], { toJSON: () => "this" }),
    "nothing where a list has a hole": [1, undefined, () => 1, Symbol("s")],
    "fields that have no JSON": { a: undefined, b: () => 1, c: Symbol("s"), d: 1 },
    "numbers that have no JSON": [NaN, Infinity, -0, 1e21],
    "lone surrogates": { "\ud800": "\udc00" },
    "an instance of a class": new (class Point {
      readonly x = 1
      get y() {
        return 2
      }
    })(),
    "boxed values": [new Number(1), new String("s"), new Boolean(false)]
  })) {
    it(`is what its JSON would be read as, with ${name}`, () => {
      assert.deepStrictEqual(copyOf(value as Value), throughText(value))
    })
  }

  it("shares nothing with the value", () => {
    const value = { list: [{ deep: [1] }] }
    const copy = copyOf(value) as typeof value
    value.list[0]!.deep.push(2)
    assert.deepStrictEqual(copy, { list: [{ deep: [1] }] })
  })
})
