import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, it } from "@effect/vitest"

/**
 * The heap that a done case leaves: its place in two tables, and what the host's own selection holds of it (an object and
 * its id, some 100 bytes); a record of its own when it has a value. Its first result, its request and what the apply said
 * to it are over 500 bytes each.
 */
it.each([
  { value: "nothing", mostBytes: 300 },
  { value: "number", mostBytes: 450 }
])("keeps next to nothing of a case that is done with $value", { timeout: 60_000 }, async ({ value, mostBytes }) => {
  const every = 5_000
  const child = fileURLToPath(new URL("./children/soak.ts", import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", child, String(every), value])
  const heaps = stdout.trim().split("\n").map(Number)
  assert.isAtLeast(heaps.length, 5)
  // The first reading is of a process that has not yet compiled what it runs.
  const grown = (heaps.at(-1)! - heaps[1]!) / ((heaps.length - 2) * every)
  assert.isBelow(grown, mostBytes, `${grown} bytes a case`)
})
