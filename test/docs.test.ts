import { spawn } from "node:child_process"
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { folder } from "./node/support/folders.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const read = (file: string) => readFileSync(root + file, "utf8")
const codeOf = (page: string) => [...read(page).matchAll(/^```ts\n(.*?)\n```$/gms)].map((block) => block[1] ?? "")

/** What the program printed, run in that folder as a user would. */
const run = (program: string, cwd: string) =>
  Effect.promise(
    () =>
      new Promise<string>((done, fail) => {
        const hooks = new URL("./node/support/from-source.mjs", import.meta.url).href
        const child = spawn(process.execPath, ["--import", hooks, root + program], { cwd })
        let printed = ""
        child.stdout.on("data", (chunk) => (printed += chunk))
        child.stderr.on("data", (chunk) => (printed += chunk))
        child.on("close", (code) => (code === 0 ? done(printed) : fail(new Error(`exit ${code}: ${printed}`))))
      })
  )

const asked = (printed: string) => printed.split("\n").filter((line) => line.startsWith("asked for ")).length

describe("the first program", () => {
  it("is the one in the README", () => {
    assert.deepStrictEqual(codeOf("README.md"), [read("examples/first.ts").trimEnd()])
  })

  it.live("works through its cases once, and repeats nothing when it is run again", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const first = yield* run("examples/first.ts", cwd)
      assert.strictEqual(asked(first), 10)
      const second = yield* run("examples/first.ts", cwd)
      assert.strictEqual(asked(second), 0)
      assert.include(second, "│ 100   │")
      assert.strictEqual(second, first.split("\n").slice(10).join("\n"))
    })
  )
})

/** Pages whose code is copied from programs that are type-checked and run elsewhere. */
const copied = [
  { page: "docs/tuning-loop.md", from: "examples/demo/*.ts" },
  { page: "docs/dispatcher.md", from: "examples/guide/*.ts" }
]

for (const { page, from } of copied) {
  it(`${page} shows code of ${from}, letter by letter`, () => {
    const programs = globSync(from, { cwd: root }).map(read)
    const blocks = codeOf(page)
    assert.isNotEmpty(blocks)
    for (const block of blocks)
      assert(
        programs.some((program) => program.includes(block)),
        block
      )
  })
}
