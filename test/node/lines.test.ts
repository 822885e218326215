import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type Counts, LineReader } from "../../src/node/internal/lines.ts"

interface Read {
  readonly objects: ReadonlyArray<unknown>
  readonly noise: ReadonlyArray<string>
  readonly counts: Counts
}

const readChunks = (chunks: ReadonlyArray<Uint8Array>, maxLineBytes?: number): Read => {
  const objects: Array<unknown> = []
  const noise: Array<string> = []
  const reader = new LineReader({
    maxLineBytes,
    onLine: (json) => objects.push(json),
    onNoise: (line) => noise.push(line)
  })
  for (const chunk of chunks) reader.write(chunk)
  reader.end()
  return { objects, noise, counts: reader.counted }
}

const readText = (text: string, maxLineBytes?: number): Read => readChunks([Buffer.from(text)], maxLineBytes)

const cut = (bytes: Uint8Array, places: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...ends].map((from, index) => bytes.subarray(from, ends[index] ?? bytes.length))
}

const none: Counts = { read: 0, blank: 0, noise: 0, unparsable: 0, tooLong: 0, cut: 0 }

describe("LineReader", () => {
  it("reads objects, and counts what is none", () => {
    const { objects, noise, counts } = readText('{"a":1}\n\n  \t\r\nWarning: x\n{"b":\n[1]\n7\n  {"c":3}\r\n')
    assert.deepStrictEqual(objects, [{ a: 1 }, { c: 3 }])
    assert.deepStrictEqual(noise, ["Warning: x", '{"b":', "[1]", "7"])
    assert.deepStrictEqual(counts, { ...none, read: 2, blank: 2, noise: 3, unparsable: 1 })
  })

  it("reads a whole last line without a newline and drops a cut one", () => {
    assert.deepStrictEqual(readText('{"a":1}\n{"b":2}').objects, [{ a: 1 }, { b: 2 }])
    assert.deepStrictEqual(readText('{"a":1}\n{"b":').counts, { ...none, read: 1, cut: 1 })
  })

  it("splits at the line feed and nowhere else", () => {
    const text = "a\u2028b\u2029c\u0085d\u000be\u000cf"
    assert.deepStrictEqual(readText(`{"a":${JSON.stringify(text)}}\n`).objects, [{ a: text }])
  })

  it("bears a byte order mark, NULs and bytes that are no UTF-8", () => {
    assert.deepStrictEqual(readText('\ufeff{"a":1}\n{"b":2}\n').objects, [{ a: 1 }, { b: 2 }])
    assert.deepStrictEqual(readChunks([Buffer.from("\n"), Buffer.from('\ufeff{"a":1}\n')]).counts, {
      ...none,
      blank: 1,
      noise: 1
    })
    assert.deepStrictEqual(readText('\0\0\n{"a":1}\n').counts, { ...none, read: 1, noise: 1 })
    assert.deepStrictEqual(readText('{"a":"\0"}\n').counts, { ...none, unparsable: 1 })
    const broken = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc3, 0xff, 0xe2, 0x82]), Buffer.from('"}\n')])
    assert.deepStrictEqual(readChunks([broken]).objects, [{ a: "\ufffd\ufffd\ufffd" }])
  })

  it("reads lines of 5 and 20 MB in pipe-sized chunks", () => {
    for (const size of [5, 20]) {
      const bytes = Buffer.from(`{"a":1}\n{"text":"${"é".repeat(size * 512 * 1024)}"}\n{"b":2}\n`)
      const chunks: Array<Uint8Array> = []
      for (let from = 0; from < bytes.length; from += 65_536) chunks.push(bytes.subarray(from, from + 65_536))
      const { objects, counts } = readChunks(chunks)
      assert.deepStrictEqual(counts, { ...none, read: 3 })
      assert.strictEqual((objects[1] as { text: string }).text.length, size * 512 * 1024)
    }
  })

  it("skips a line above the cap, and reads on after it", () => {
    const { objects, counts } = readText(`{"a":1}\n{"b":"${"x".repeat(100)}"}\n{"c":3}\n{"d":"${"x".repeat(100)}"}`, 64)
    assert.deepStrictEqual(objects, [{ a: 1 }, { c: 3 }])
    assert.deepStrictEqual(counts, { ...none, read: 2, tooLong: 2 })
  })

  it("keeps no more than the cap of a line that never ends", () => {
    const reader = new LineReader({ maxLineBytes: 1024 * 1024, onLine: () => {} })
    const chunk = Buffer.alloc(65_536, 0x78)
    const before = process.memoryUsage().arrayBuffers
    for (let n = 0; n < 4096; n++) reader.write(chunk)
    assert.isBelow(process.memoryUsage().arrayBuffers - before, 16 * 1024 * 1024)
    reader.end()
    assert.strictEqual(reader.counted.tooLong, 1)
  })

  it("reads a million tiny lines", () => {
    const chunk = Buffer.from('{"a":1}\n'.repeat(10_000))
    let read = 0
    const reader = new LineReader({ onLine: () => read++ })
    for (let n = 0; n < 100; n++) reader.write(chunk)
    assert.strictEqual(read, 1_000_000)
  })

  const line = fc.oneof(
    { weight: 4, arbitrary: fc.json().map((json) => `{"v":${json}}`) },
    fc.constantFrom(
      "",
      "  ",
      "\r",
      "noise",
      "{",
      "{}",
      "\ufeff{}",
      "null",
      '{"a":"\u2028\u0085"}',
      "\0",
      '{"s":"😀é"}'
    ),
    fc.string({ unit: "binary" })
  )
  const ending = fc.constantFrom("\n", "\r\n", "\n\n")
  const stream = fc
    .array(fc.tuple(line, ending))
    .chain((lines) =>
      fc.tuple(fc.constant(lines.flat().join("")), fc.constantFrom("", "{", '{"cut":', '{"whole":1}', "x"))
    )
    .map(([text, last]) => Buffer.from(text + last))
  const bytes = fc.oneof(stream, fc.uint8Array({ max: 255, maxLength: 200 }))
  const places = fc.array(fc.nat(), { maxLength: 12 })

  it("reads the same however the bytes are cut into chunks", () => {
    fc.assert(
      fc.property(bytes, places, fc.constantFrom(8, 20, 1000), (all, at, cap) => {
        assert.deepStrictEqual(readChunks(cut(all, at), cap), readChunks([all], cap))
      }),
      { numRuns: 500 }
    )
  })

  it("reads the same when its chunks are used again by whoever gave them", () => {
    fc.assert(
      fc.property(bytes, places, (all, at) => {
        const objects: Array<unknown> = []
        const reader = new LineReader({ onLine: (json) => objects.push(json) })
        for (const chunk of cut(all, at)) {
          const own = Uint8Array.from(chunk)
          reader.write(own)
          own.fill(0x21)
        }
        reader.end()
        assert.deepStrictEqual(objects, readChunks([all]).objects)
      })
    )
  })

  it("accounts for every line", () => {
    fc.assert(
      fc.property(bytes, (all) => {
        const { counts } = readChunks([all])
        const newlines = all.reduce((sum, byte) => sum + (byte === 0x0a ? 1 : 0), 0)
        const sum = counts.read + counts.blank + counts.noise + counts.unparsable + counts.tooLong + counts.cut
        const rest = all.length > 0 && all.at(-1) !== 0x0a ? 1 : 0
        assert.strictEqual(sum, newlines + rest)
      })
    )
  })
})
