import { crc32 as zlibCrc32 } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { crc32 } from "../../../src/core/internal/storage/checksum.ts"
import {
  decodeEntry,
  decodeHeader,
  decodeRecord,
  encodeHeader,
  encodeRecord,
  isTorn,
  isVersion
} from "../../../src/core/internal/storage/record.ts"

const text = fc.string({ unit: "binary", maxLength: 40 })
/** With lone surrogates, which no UTF-8 can say. */
const units = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
  .map((codes) => String.fromCharCode(...codes))
const anyText = fc.oneof(
  text,
  units,
  fc.constantFrom("\u007f", "\u0080", "\u07ff", "\u0800", "\u{10000}", "\ud7ff", "\ud800", "\udfff", "\ue000", "\uffff")
)

describe("a checksum", () => {
  it("is that of IEEE 802.3", () => {
    assert.strictEqual(crc32("123456789", 0), 0xcbf43926)
    assert.strictEqual(crc32("6789", 0, crc32("12345", 0)), 0xcbf43926)
  })

  it("is that of zlib of the text's UTF-8, from any character on and after any other text", () => {
    fc.assert(
      fc.property(anyText, anyText, fc.nat(8), (first, second, skipped) => {
        const from = Math.min(skipped, first.length)
        const expected = zlibCrc32(Buffer.from(first.slice(from)))
        assert.strictEqual(crc32(first, from), expected)
        assert.strictEqual(crc32(second, 0, expected), zlibCrc32(Buffer.from(second), expected))
      }),
      { numRuns: 1_000 }
    )
  })
})

const position = { epoch: 12, seq: 345, first: 340, last: 399 }
const line = encodeRecord(position, JSON.stringify({ text: "é, 😀 and ASCII", list: [1, 2] }))

/** A line that nobody damaged, with this after its checksum. */
const sealed = (rest: string) => `{"crc":"${zlibCrc32(Buffer.from(rest)).toString(16).padStart(8, "0")}",${rest}`

describe("a record", () => {
  it("is read as it was written", () => {
    const record = decodeRecord(line)
    assert.isObject(record)
    if (typeof record === "string") return
    const { entryStart: _, ...read } = record
    assert.deepStrictEqual(read, position)
    assert.deepStrictEqual(decodeEntry(line, record), { text: "é, 😀 and ASCII", list: [1, 2] })
  })

  it("is told from what is left of it when a character is changed, dropped or added, wherever that is", () => {
    for (let at = 0; at < line.length; at++) {
      const [before, after] = [line.slice(0, at), line.slice(at + 1)]
      for (const character of ["0", "a", '"', "}", " ", "\0", line[at]!.toUpperCase()]) {
        if (character !== line[at]) assert.isString(decodeRecord(before + character + after), `${at} ${character}`)
        assert.isString(decodeRecord(before + character + line.slice(at)), `${at} added ${character}`)
      }
      assert.isString(decodeRecord(before + after), `${at} dropped`)
      assert.isString(decodeRecord(before), `cut at ${at}`)
    }
  })

  it("has its fields and no others, in their order", () => {
    assert.isString(decodeRecord(encodeHeader("log")))
    const fields = [`"epoch":1`, `"seq":2`, `"first":2`, `"last":2`, `"entry":null}`]
    assert.isObject(decodeRecord(sealed(fields.join())))
    for (let at = 0; at < fields.length; at++) {
      assert.isString(decodeRecord(sealed(fields.toSpliced(at, 1).join())), `without ${fields[at]}`)
      assert.isString(decodeRecord(sealed(fields.toSpliced(at, 1, fields[at]!.replace('"', '"x')).join())), fields[at])
    }
  })
})

describe("a header", () => {
  it("is read as it was written", () => {
    for (const log of ["", "a", "é 😀", 'a "quoted" one']) {
      assert.deepStrictEqual(decodeHeader(encodeHeader(log)), { version: 1, log })
    }
  })

  it("is told from everything else, with what is wrong", () => {
    assert.strictEqual(decodeHeader(""), "it is empty")
    assert.strictEqual(decodeHeader("{}"), "the checksum of its header does not match")
    assert.strictEqual(
      decodeHeader(encodeHeader("log").replace("log", "lot")),
      "the checksum of its header does not match"
    )
    for (const rest of [
      `"log":"a"}`,
      `"shiftboss":1}`,
      `"shiftboss":"1","log":"a"}`,
      `"shiftboss":0,"log":"a"}`,
      `"shiftboss":1.5,"log":"a"}`,
      `"shiftboss":1,"log":2}`
    ]) {
      assert.strictEqual(decodeHeader(sealed(rest)), "it does not begin with a header", rest)
    }
    assert.strictEqual(decodeHeader(line), "it does not begin with a header")
  })

  it("has a whole number from 1 on as its version", () => {
    assert.deepStrictEqual([1, 7, 0, -1, 1.5, NaN, Infinity, 2 ** 53].map(isVersion), [
      ...[true, true],
      ...Array.from({ length: 6 }, () => false)
    ])
  })
})

describe("a torn line", () => {
  it("is one that was cut, wherever that was, or has pages that never reached the disk", () => {
    for (let at = 0; at < line.length; at++) assert.isTrue(isTorn(`${line.slice(0, at)}\0`), `cut at ${at}`)
    assert.isTrue(isTorn(`${line.slice(0, 20)}\0\0\0${line.slice(23)}`))
  })

  it("is none that is whole, that has one flipped bit, or that has one character for its end", () => {
    assert.isFalse(isTorn(line))
    assert.isFalse(isTorn(`${line.slice(0, 20)}\0${line.slice(21)}`))
    assert.isFalse(isTorn(`${line}x\0`))
  })
})
