// Folders, files and child processes for the tests of logs in files.
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { Effect, Stream } from "effect"
import type { Storage } from "shiftboss"
import { type Disk, type DiskFile, nodeDisk } from "../../../src/node/internal/storage/disk.ts"
import { makeFileStorage } from "../../../src/node/internal/storage/files.ts"

export const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "shiftboss-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

/** A storage as a process of its own would have it. */
export const storageIn = (path: string, disk: Partial<Disk> = {}, options: Storage.EncodedOptions = {}) =>
  makeFileStorage({ disk: { ...nodeDisk, ...disk }, path }, options)

type Service = Storage.Storage["Service"]

export const append = (storage: Service, log: string, ...entries: ReadonlyArray<Storage.Json>) =>
  Effect.scoped(Effect.flatMap(storage.open(log), (open) => open.append(entries)))

export const replay = (storage: Service, log: string) =>
  Effect.scoped(Effect.flatMap(storage.open(log), (open) => Stream.runCollect(open.replay)))

export const read = (storage: Service, log: string) => Stream.runCollect(storage.read(log))

export const lockFile = (path: string) =>
  Effect.promise(async () => {
    const name = (await readdir(path)).find((file) => file.endsWith(".lock"))
    if (name === undefined) throw new Error(`there is no lock in ${path}`)
    return join(path, name)
  })

/** Every file of the disk with one of its calls replaced. */
export const diskWith = (change: (file: DiskFile, path: string) => Partial<DiskFile>): Partial<Disk> => ({
  open: async (path, flags, mode) => {
    const file = await nodeDisk.open(path, flags, mode)
    return { ...file, ...change(file, path) }
  }
})

export const failure = (code: string): Error => Object.assign(new Error(`${code}: injected`), { code })

export interface Child {
  readonly process: ChildProcess
  /** The next line it prints; dies when it ends instead. */
  readonly line: Effect.Effect<string>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
}

/** `log-holder.ts` as a child process, killed with the scope. */
export const child = (path: string, log: string, mode: "append" | "hold" | "once") =>
  Effect.acquireRelease(
    Effect.sync((): Child => {
      const hooks = new URL("./from-source.mjs", import.meta.url).href
      const program = new URL("./log-holder.ts", import.meta.url).pathname
      const started = spawn(process.execPath, ["--import", hooks, program, path, log, mode], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      const lines = createInterface({ input: started.stdout })[Symbol.asyncIterator]()
      const exited = new Promise<void>((resolve) => started.once("exit", () => resolve()))
      return {
        process: started,
        line: Effect.promise(async () => {
          const next = await lines.next()
          if (next.done === true) throw new Error("the child ended without another line")
          return next.value
        }),
        kill: (signal) =>
          Effect.promise(() => {
            started.kill(signal)
            return signal === "SIGSTOP" ? Promise.resolve() : exited
          })
      }
    }),
    ({ kill }) => kill("SIGKILL")
  )

/** A file system of its own in the folder, for as long as the scope; nothing where this machine does not allow it. */
export const mounted = (path: string, options: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      try {
        execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path], { stdio: "ignore" })
        return true
      } catch {
        return false
      }
    }),
    (isMounted) => Effect.sync(() => void (isMounted && execFileSync("umount", ["-l", path])))
  )

export const textOf = (path: string) => Effect.promise(() => readFile(path, "utf8"))
