/**
 * A host without a version control system tells shiftboss about its workspace itself: what changed, by modification time.
 *
 *     node examples/own-workspace.ts
 */
import { Console, Effect } from "effect"
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Workspace } from "shiftboss"

const filesIn = (directory: string) =>
  Effect.tryPromise({
    try: async () => {
      const names = await readdir(directory)
      const files = names.map(async (name) => ({ name, changed: (await stat(join(directory, name))).mtimeMs }))
      return (await Promise.all(files)).sort((a, b) => a.changed - b.changed)
    },
    catch: (cause) => new Workspace.WorkspaceError({ directory, reason: String(cause) })
  })

/** The newest modification time stands for a commit. */
const byModificationTime: Workspace.WorkspaceShape = {
  head: Effect.fn("byModificationTime.head")(function* (directory) {
    const files = yield* filesIn(directory ?? ".")
    return files.at(-1)?.changed.toString() ?? null
  }),
  evidence: Effect.fn("byModificationTime.evidence")(function* (directory, since) {
    const files = yield* filesIn(directory ?? ".")
    const dirty = files.filter(({ changed }) => changed > Number(since ?? 0)).map(({ name }) => name)
    return { head: files.at(-1)?.changed.toString() ?? null, commits: [], dirty }
  }),
  locked: Effect.fn("byModificationTime.locked")(function* (directory) {
    const files = yield* filesIn(directory ?? ".")
    return files.some(({ name }) => name === "LOCK") ? { lock: "LOCK", fix: "remove the file LOCK" } : undefined
  })
}

const program = Effect.gen(function* () {
  const workspace = yield* Workspace.Workspace
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "own-workspace-"))),
    (folder) => Effect.promise(() => rm(folder, { recursive: true }))
  )
  const before = yield* workspace.head(directory)
  yield* Effect.promise(() => writeFile(join(directory, "rules.txt"), "prefer ISO 8601\n"))
  const evidence = yield* workspace.evidence(directory, before)
  yield* Console.log(`changed since the attempt began: ${evidence.dirty.join(", ")}`)
  yield* Effect.promise(() => writeFile(join(directory, "LOCK"), ""))
  const locked = yield* workspace.locked(directory)
  yield* Console.log(locked === undefined ? "free to write" : `not now: ${locked.fix}`)
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provideService(Workspace.Workspace, byModificationTime)))
