import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { setImmediate } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { environmentOf, redactor } from "../../src/node/internal/environment.ts"
import { entryOf, portable, table } from "../../src/node/internal/processTable.ts"
import { partsOf } from "../../src/node/internal/presentable.ts"
import { Tail } from "../../src/node/internal/tail.ts"
import { TextReader } from "../../src/node/internal/text.ts"

describe("redactor", () => {
  it("takes out the values of secret variables, as they are and as JSON and URLs write them", () => {
    const secret = 'p"a/ss word'
    const redact = redactor({ DB_PASSWORD: secret, PATH: "/usr/bin", GIT_CONFIG_KEY_0: "user.name" })
    for (const written of [secret, JSON.stringify(secret), encodeURIComponent(secret)]) {
      assert.notInclude(redact(`it is ${written}!`), written.replaceAll('"', ""))
    }
    assert.strictEqual(redact("/usr/bin has user.name"), "/usr/bin has user.name")
  })

  it("takes out what looks like a secret, wherever it is from", () => {
    const redact = redactor({})
    const secrets = [
      "sk-ant-api03-abcdefghijklmnop",
      "AIzaSyA1234567890abcdefghijklmnopqrstuv",
      "ghp_abcdefghijklmnopqrstuvwxyz",
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def"
    ]
    for (const secret of secrets) assert.strictEqual(redact(`key ${secret}, sent`), "key [redacted], sent")
    assert.strictEqual(
      redact("https://me:pass@host/x?api_key=123abc&y=1"),
      "https://[redacted]@host/x?api_key=[redacted]&y=1"
    )
    assert.strictEqual(redact("Authorization: Bearer abcdefgh12345"), "Authorization: Bearer [redacted]")
  })

  it("leaves nothing of a secret that begins with another one", () => {
    const redact = redactor({ A_KEY: "abcdef", B_KEY: "abcdef-longer" })
    assert.strictEqual(redact("x abcdef-longer y"), "x [redacted] y")
  })

  it("takes out each line of a secret of several lines: texts are cut into lines", () => {
    const lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG", "9w0BAQEFAASCBKcwggSj"]
    const redact = redactor({ PRIVATE_KEY: `${lines.join("\r\n")}\n` })
    for (const line of lines) assert.strictEqual(redact(`it says ${line}!`), "it says [redacted]!")
  })

  it("takes no time that grows faster than the text, whatever the agent has put into it", () => {
    const redact = redactor({ A_KEY: "abcdefgh" })
    const units = ["a-", "a.", "-eyJ", "eyJaaaaaaaa-", "eyJaaaaaaaa.", "a://", "a://x:", "?key-", "Bearer ", "x", " "]
    const start = performance.now()
    for (const unit of units) redact(unit.repeat(500_000 / unit.length))
    // Each took minutes where it was quadratic.
    assert.isBelow(performance.now() - start, 10_000)
  })

  it("takes a secret that holds half a character", () => {
    assert.strictEqual(redactor({ A_KEY: "half-\ud800-char" })("it is half-\ud800-char"), "it is [redacted]")
  })

  it("leaves ordinary text alone", () => {
    const redact = redactor({ A_KEY: "zzzzzz" })
    const words = fc.array(fc.constantFrom("the", "task-list", "a@b.c", "src/x.ts:12", "skeleton", "key", "1+1=2"))
    fc.assert(
      fc.property(words, (all) => {
        assert.strictEqual(redact(all.join(" ")), all.join(" "))
      })
    )
  })
})

describe("environmentOf", () => {
  it("takes only what is listed, and lets the later win", () => {
    const host = { PATH: "/bin", LC_ALL: "C", SECRET: "x", NAMED: "n", GONE: undefined }
    assert.deepStrictEqual(environmentOf(host, ["NAMED", "GONE"], { PATH: "/own" }, undefined, { A: "1" }), {
      PATH: "/own",
      LC_ALL: "C",
      NAMED: "n",
      A: "1"
    })
  })
})

describe("the table of processes", () => {
  it("is the same where only ps tells it", () => {
    const own = entryOf(process.pid)
    const byPs = portable().find(({ pid }) => pid === process.pid)
    assert.deepStrictEqual([byPs?.parent, byPs?.group], [own?.parent, own?.group])
    assert.match(byPs?.startTime ?? "", /\d{4}$/)
    assert.isTrue(table().some(({ pid }) => pid === process.pid))
  })
})

describe("TextReader", () => {
  const read = (chunks: ReadonlyArray<Buffer>): string => {
    let said = ""
    const clean = redactor({ A_KEY: "correct-horse-battery" })
    const reader = new TextReader({ clean, reach: 64, onText: (text) => (said += text) })
    for (const chunk of chunks) reader.write(chunk)
    reader.end()
    return said
  }

  it("gives the same clean text however it comes", () => {
    const text = "a correct-horse-battery é\n\nand no end of a line: correct-horse-battery"
    const expected = "a [redacted] é\n\nand no end of a line: [redacted]"
    const bytes = Buffer.from(text)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length })), (places) => {
        const cuts = [0, ...places.toSorted((a, b) => a - b), bytes.length]
        assert.strictEqual(read(cuts.slice(1).map((cut, n) => bytes.subarray(cuts[n], cut))), expected)
      })
    )
  })

  it("finds a secret anywhere in a line that does not end, and keeps little of it", () => {
    const line = "xxxx correct-horse-battery ".repeat(40_000)
    const chunks = Array.from({ length: Math.ceil(line.length / 1000) }, (_, n) =>
      Buffer.from(line.slice(n * 1000, (n + 1) * 1000))
    )
    assert.strictEqual(read(chunks), "xxxx [redacted] ".repeat(40_000))
  })
})

describe("partsOf", () => {
  it("cuts a text into short parts at the ends of lines, and loses nothing but those", () => {
    const text = fc.string({ unit: fc.constantFrom("a".repeat(700), "\n", "b") })
    fc.assert(
      fc.property(text, (whole) => {
        const parts = partsOf(whole)
        for (const part of parts) assert.isTrue(part.length > 0 && part.length <= 8192)
        assert.strictEqual(parts.join("").replaceAll("\n", ""), whole.replaceAll("\n", ""))
      })
    )
    assert.deepStrictEqual(partsOf("one\ntwo\n"), ["one\ntwo"])
  })
})

describe("Tail", () => {
  it("keeps exactly the end, in whole characters", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.integer({ min: 1, max: 40 }), (parts, limit) => {
        const tail = new Tail(limit)
        for (const part of parts) tail.write(Buffer.from(part))
        const all = parts.join("")
        assert.isTrue(all.endsWith(tail.text()))
        const bytes = Buffer.byteLength(all)
        assert.isAtMost(Buffer.byteLength(tail.text()), limit)
        assert.isAbove(Buffer.byteLength(tail.text()), Math.min(bytes, limit) - 4)
        assert.deepStrictEqual(tail.close(), bytes > limit ? { bytes, path: null } : null)
      })
    )
  })

  it("gives nothing of what may be the rest of a secret where it was cut", () => {
    const clean = redactor({ A_KEY: "secret-number-one" })
    const endOf = (text: string, limit: number) => {
      const tail = new Tail(limit, { reach: 20 })
      for (const char of text) tail.write(Buffer.from(char))
      return tail.text(clean)
    }
    assert.strictEqual(endOf("secret-number-one\nand more\n", 12), "d]\nand more\n")
    const words = "some words and then secret-number-one and words and a line of words after that"
    for (let limit = 1; limit < words.length; limit++) {
      assert.notMatch(endOf(words, limit), /secret|number|ber-one|one/, `limit ${limit}`)
      assert.isAtMost(endOf(words, limit).length, limit)
    }
  })

  it("keeps little of much", async () => {
    const tail = new Tail(1000)
    setFlagsFromString("--expose-gc")
    const collect: () => void = runInNewContext("gc")
    const kept = () => {
      collect()
      return process.memoryUsage().arrayBuffers
    }
    const before = kept()
    for (let n = 0; n < 2000; n++) tail.write(Buffer.alloc(65_536, 0x78))
    // The memory of a buffer is given back some time after it was collected.
    for (let tries = 0; tries < 200 && kept() - before > 1024 * 1024; tries++) await setImmediate()
    assert.isBelow(kept() - before, 1024 * 1024)
    assert.strictEqual(tail.text().length, 1000)
  })
})
