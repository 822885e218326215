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
    // As the whole of a title, not as a part of one or of a comment.
    const tests = readFileSync(path, "utf8")
    const titled = ['"', "`"].some((quote) => tests.includes(`${quote}${title}${quote},`))
    assert.isTrue(titled, `${promise}: ${file} has no test "${title}"`)
  }
})
