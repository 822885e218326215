import { existsSync, readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"

const page = readFileSync(new URL("../docs/guarantees.md", import.meta.url), "utf8")
const rows = Array.from(
  page.matchAll(/^\| (.+) \| `([^`]+)` \| (.+) \|$/gm),
  ([, promise = "", file = "", title = ""]) => ({
    promise,
    file,
    title
  })
)

it("every promise names a test that exists", () => {
  assert.isAbove(rows.length, 30)
  for (const { promise, file, title } of rows) {
    const path = new URL(`../${file}`, import.meta.url)
    assert.isTrue(existsSync(path), `${promise}: there is no ${file}`)
    assert.include(readFileSync(path, "utf8"), title, `${promise}: ${file} has no such test`)
  }
})
