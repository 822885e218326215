import { globSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { areas, declarations } from "./areas.ts"

const files = (pattern: string) => globSync(pattern)

describe("the areas of mutation", () => {
  it("leave nothing of the core out but declarations, and have each file once", () => {
    const mutated = Object.values(areas).flatMap(({ mutate }) => mutate.flatMap(files))
    const all = [...mutated, ...declarations].toSorted()
    assert.deepStrictEqual(all, files("src/core/**/*.ts").toSorted())
  })

  it("have tests, wherever they look for them", () => {
    for (const { tests } of Object.values(areas)) {
      for (const pattern of tests) assert.isNotEmpty(files(pattern), pattern)
    }
  })
})
