import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, it } from "@effect/vitest"

/**
 * What a case leaves behind: its place in two tables, and what the host's own selection holds of it (an object and its
 * id, some 100 bytes). Its two results alone are over 500.
 */
const mostBytes = 300

it("keeps next to nothing of a case that is done", async () => {
  const every = 10_000
  const child = fileURLToPath(new URL("./children/soak.ts", import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", child, String(every)])
  const heaps = stdout.trim().split("\n").map(Number)
  assert.isAtLeast(heaps.length, 5)
  // The first reading is of a process that has not yet compiled what it runs.
  const grown = (heaps.at(-1)! - heaps[1]!) / ((heaps.length - 2) * every)
  assert.isBelow(grown, mostBytes, `${grown} bytes a case`)
}, 60_000)
