import { assert, describe, it } from "@effect/vitest"
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Result, Schema } from "effect"
import { PlainText, Protocol } from "shiftboss/node"
import { defaultFolder } from "../../src/node/internal/files.ts"
import { launchWith } from "./support/launching.ts"

const Review = Schema.Struct({ verdict: Schema.Literals(["pass", "fail"]), notes: Schema.optional(Schema.String) })

const read = (text: string, limit?: number): unknown => {
  const block = PlainText.readBlock(text, Review, limit)
  return Result.isSuccess(block) ? block.success : block.failure.reason
}

describe("readBlock", () => {
  it("reads a fenced JSON object at the end of a text", () => {
    assert.deepStrictEqual(read('All done.\n\n```json\n{"verdict":"pass","notes":"a ``tick``"}\n```\n\n'), {
      verdict: "pass",
      notes: "a ``tick``"
    })
    assert.deepStrictEqual(read('```\nold\n```\nnew:\n```\n{"verdict":"fail"}\n```'), { verdict: "fail" })
  })

  it("reads key: value lines at the end of a text", () => {
    assert.deepStrictEqual(read("I looked at it.\nReason: none\n\nverdict: pass\nnotes: two: colons\n"), {
      verdict: "pass",
      notes: "two: colons"
    })
  })

  it("says why there is none", () => {
    assert.strictEqual(read("verdict: pass\nand then some prose"), "missing")
    assert.strictEqual(read(""), "missing")
    assert.strictEqual(read("verdict: maybe"), "invalid")
    assert.strictEqual(read('```json\n{"verdict":\n```'), "invalid")
    assert.strictEqual(read('```json\n["verdict"]\n```'), "invalid")
    assert.strictEqual(read("some ```"), "missing")
  })

  it("reads no more than its limit", () => {
    assert.strictEqual(read(`\`\`\`json\n{"verdict":"pass","notes":"${"x".repeat(200)}"}\n\`\`\``, 100), "tooLong")
    assert.strictEqual(read("key: value\n".repeat(100), 100), "tooLong")
    assert.deepStrictEqual(read(`${"prose ".repeat(100)}\nverdict: pass`, 100), { verdict: "pass" })
  })

  it("takes no key for a part of the object's inheritance", () => {
    const Any = Schema.Record(Schema.String, Schema.String)
    const block = PlainText.readBlock("__proto__: x\nconstructor: y", Any)
    assert.isTrue(Result.isSuccess(block) && Object.getPrototypeOf(block.success) === Object.prototype)
    assert.strictEqual(({} as { readonly x?: unknown }).x, undefined)
  })
})

describe("PlainText", () => {
  const sh = (options: Partial<PlainText.Options> = {}) => PlainText.protocol({ command: "/bin/sh", ...options })

  it.live("keeps the end of a long output as the text, and all of it in a private file", () =>
    Effect.gen(function* () {
      const files = join(mkdtempSync(join(tmpdir(), "spool-")), "own")
      const script = `i=0; while [ $i -lt 2000 ]; do echo "line $i é"; i=$((i+1)); done`
      const run = yield* launchWith(sh({ limit: 100 }), script, { options: { filesDirectory: files } })
      const ending = yield* run.ended
      const text = ending.result?.text ?? ""
      const [name = ""] = readdirSync(files)
      const all = readFileSync(join(files, name), "utf8")
      assert.isTrue(text.startsWith(`[cut: the last `) && text.includes(`all of them are in ${join(files, name)}]\n`))
      const kept = text.slice(text.indexOf("]\n") + 2)
      assert.isTrue(all.endsWith(kept) && kept.endsWith("line 1999 é\n"))
      assert.isAtMost(Buffer.byteLength(kept), 100)
      assert.strictEqual(all.split("\n").length, 2001)
      assert.strictEqual(statSync(join(files, name)).mode & 0o777, 0o600)
      assert.strictEqual(statSync(files).mode & 0o777, 0o700)
      rmSync(join(files, ".."), { recursive: true })
    })
  )

  it.live("keeps no secret in that file, nor half of one where the text begins", () =>
    Effect.gen(function* () {
      const files = mkdtempSync(join(tmpdir(), "spool-"))
      const env = { API_KEY: "topsecret-0123456789" }
      const script = "for i in 1 2 3 4 5 6; do printf 'word topsecret-0123456789 '; done; echo; echo $API_KEY"
      for (let limit = 20; limit < 60; limit++) {
        const run = yield* launchWith(sh({ limit }), script, { options: { filesDirectory: files, env } })
        const text = (yield* run.ended).result?.text ?? ""
        assert.notMatch(text.slice(text.indexOf("]\n") + 2), /topsecret|0123|6789/)
      }
      const kept = readdirSync(files).map((name) => readFileSync(join(files, name), "utf8"))
      assert.strictEqual(kept.length, 40)
      for (const all of kept) assert.strictEqual(all, `${"word [redacted] ".repeat(6)}\n[redacted]\n`)
      rmSync(files, { recursive: true })
    })
  )

  it.live("leaves the folder of the host as it is, and removes only its own files when they are a week old", () =>
    Effect.gen(function* () {
      const files = mkdtempSync(join(tmpdir(), "spool-"))
      chmodSync(files, 0o755)
      const weeks = (name: string, age: number) => {
        writeFileSync(join(files, name), "")
        const then = Date.now() / 1000 - age * 7 * 24 * 3600
        utimesSync(join(files, name), then, then)
        return name
      }
      const id = "2933ca0c-8684-4a20-9c39-74f67d9f69c"
      const old = [weeks(`${id}0.out`, 1.01), weeks(`${id}0.prompt`, 1.01)]
      const stay = [weeks(`${id}1.out`, 0.9), weeks("somebody-elses.out", 9)]
      yield* (yield* launchWith(sh({ limit: 1 }), "echo long", { options: { filesDirectory: files } })).ended
      assert.strictEqual(statSync(files).mode & 0o777, 0o755)
      const names = readdirSync(files)
      for (const name of old) assert.notInclude(names, name)
      for (const name of stay) assert.include(names, name)
      assert.strictEqual(names.length, 3)
      rmSync(files, { recursive: true })
    })
  )

  it.live("trusts no folder that somebody has put where its own is to be", () =>
    Effect.gen(function* () {
      const temporary = mkdtempSync(join(tmpdir(), "spool-"))
      const before = process.env["TMPDIR"]
      process.env["TMPDIR"] = temporary
      const place = defaultFolder()
      mkdirSync(join(temporary, "other"))
      symlinkSync(join(temporary, "other"), place)
      const run = yield* launchWith(sh({ limit: 1 }), "echo long")
      assert.match((yield* run.ended).result?.text ?? "", /the rest could not be kept/)
      const asFile = sh({ arguments: [Protocol.PromptFile], prompt: "file" })
      const refused = yield* Effect.flip(Effect.scoped(launchWith(asFile, "echo")))
      assert.include(refused.failure.detail, `${place} is not this user's own directory: remove it`)
      assert.deepStrictEqual(readdirSync(join(temporary, "other")), [])
      if (before === undefined) delete process.env["TMPDIR"]
      else process.env["TMPDIR"] = before
      rmSync(temporary, { recursive: true })
    })
  )

  it.live("keeps no file of an output that is short", () =>
    Effect.gen(function* () {
      const files = mkdtempSync(join(tmpdir(), "spool-"))
      const run = yield* launchWith(sh(), "echo short", { options: { filesDirectory: files } })
      assert.strictEqual((yield* run.ended).result?.text, "short\n")
      assert.deepStrictEqual(readdirSync(files), [])
      rmSync(files, { recursive: true })
    })
  )

  it.live("fails without the block that is wanted", () =>
    Effect.gen(function* () {
      const protocol = sh({ block: Review })
      const good = yield* launchWith(protocol, `echo "verdict: pass"`)
      assert.strictEqual((yield* good.ended)._tag, "Succeeded")
      const bad = yield* launchWith(protocol, `echo "it is fine"`)
      const ending = yield* bad.ended
      assert.isTrue(ending._tag === "Failed" && ending.failure.kind === "Unknown")
      assert.strictEqual(ending.result?.text, "it is fine\n")
    })
  )
})
