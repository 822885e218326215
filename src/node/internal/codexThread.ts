/**
 * The file that Codex keeps of a thread: `$CODEX_HOME/sessions/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl`.
 */
import { open, readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"

const tailBytes = 256 * 1024

/** The last lines of the thread's file; none when there is no such file, or it cannot be read. */
export const readTail = (
  threadId: string,
  env: { readonly [name: string]: string }
): Effect.Effect<ReadonlyArray<string>> =>
  Effect.tryPromise(async () => {
    const path = await find(join(env["CODEX_HOME"] ?? join(env["HOME"] ?? "", ".codex"), "sessions"), threadId)
    return path === null ? [] : await tail(path)
  }).pipe(Effect.orElseSucceed(() => []))

const find = async (sessions: string, threadId: string): Promise<string | null> => {
  // A resumed thread goes on in the file of the day it began; most began lately.
  for (const year of await names(sessions)) {
    for (const month of await names(join(sessions, year))) {
      for (const day of await names(join(sessions, year, month))) {
        const folder = join(sessions, year, month, day)
        const name = (await names(folder)).find((file) => file.endsWith(`-${threadId}.jsonl`))
        if (name !== undefined) return join(folder, name)
      }
    }
  }
  return null
}

const names = async (folder: string): Promise<ReadonlyArray<string>> =>
  (await readdir(folder).catch(() => [])).sort().reverse()

const tail = async (path: string): Promise<ReadonlyArray<string>> => {
  const file = await open(path, "r")
  try {
    const { size } = await file.stat()
    const from = Math.max(0, size - tailBytes)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from)
    return buffer.toString("utf8", 0, bytesRead).split("\n")
  } finally {
    await file.close()
  }
}
