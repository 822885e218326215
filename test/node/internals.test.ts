import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { setImmediate } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { environmentOf, redactor } from "../../src/node/internal/environment.ts"
import { entryOf, portable, table } from "../../src/node/internal/processTable.ts"
import { Tail } from "../../src/node/internal/tail.ts"

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

describe("Tail", () => {
  it("keeps exactly the end, in whole characters", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.integer({ min: 1, max: 40 }), (parts, limit) => {
        const tail = new Tail(limit, undefined)
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

  it("gives whole lines of what was cut", () => {
    const tail = new Tail(12, undefined)
    tail.write(Buffer.from("secret-one\nsecret-two\n"))
    assert.strictEqual(tail.lines(), "secret-two\n")
  })

  it("keeps little of much", async () => {
    const tail = new Tail(1000, undefined)
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
