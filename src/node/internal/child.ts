/**
 * One child process: behind a barrier until it may run, in a session of its own, with pipes that never outlive it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, statSync } from "node:fs"
import { delimiter, isAbsolute, join, resolve } from "node:path"
import type { Duplex } from "node:stream"
import { Deferred, Effect, Exit } from "effect"
import { entryOf, marker, markOf, type Root } from "./processTable.ts"

export interface ChildOptions {
  readonly program: string
  readonly arguments: ReadonlyArray<string>
  readonly directory: string
  readonly env: { readonly [name: string]: string }
  readonly stdin: string | undefined
  readonly onStdout: (chunk: Buffer) => void
  readonly onStderr: (chunk: Buffer) => void
}

/** How it ended, told once its pipes are closed. */
export interface Gone {
  readonly code: number | null
  readonly signal: string | null
}

export interface Child {
  readonly root: Root
  /** Lets the program run. Until then nothing of it has happened, and if this process dies it never will. */
  readonly release: Effect.Effect<void>
  readonly gone: Deferred.Deferred<Gone>
  /** It has ended, and its pipes may still be read. */
  readonly hasExited: () => boolean
}

/** Why the program could not be started, for a person. */
export type Refusal = string

/** Printed by the barrier before the reason why it could not become the program. */
export const barrierName = "shiftboss-barrier"

/**
 * Waits for the mark on descriptor 3, then becomes the program. When the host dies before it has written the mark, the
 * read meets the end of the file and the program never runs.
 */
const barrier = `IFS= read -r ${marker} <&3 || exit 125; export ${marker}; exec 3<&-; exec "$@"`

/** Starts the barrier of a program, and answers when its identity is known. */
export const start = (options: ChildOptions): Effect.Effect<Child, Refusal> =>
  Effect.callback<Child, Refusal>((resume) => {
    const refusal = refusalOf(options)
    if (refusal !== null) return resume(Effect.fail(refusal))
    let child: ChildProcess
    try {
      child = spawn("/bin/sh", ["-c", barrier, barrierName, options.program, ...options.arguments], {
        cwd: options.directory,
        env: options.env,
        detached: true,
        stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe", "pipe"]
      })
    } catch (error) {
      return resume(Effect.fail(spawnRefusal(options, error)))
    }
    child.once("error", (error) => resume(Effect.fail(spawnRefusal(options, error))))
    child.once("spawn", () => {
      const entry = child.pid === undefined ? null : entryOf(child.pid)
      const gone = watch(child, options)
      if (entry === null) return resume(Effect.fail(`${options.program} was killed before it could be identified`))
      const root = { pid: entry.pid, startTime: entry.startTime }
      const hasExited = () => child.exitCode !== null || child.signalCode !== null
      resume(Effect.succeed({ root, gone, release: release(child, root), hasExited }))
    })
  })

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const release = (child: ChildProcess, root: Root): Effect.Effect<void> =>
  Effect.sync(() => {
    const pipe = child.stdio[3] as Duplex
    // The child may have been killed meanwhile.
    pipe.on("error", () => {})
    pipe.end(`${markOf(root)}\n`)
  })

/** After the child is gone its pipes are read until nothing has come for this long: others may hold them open for ever. */
const idleMillis = 100
/** The same when something keeps coming. */
const drainMillis = 2000

const watch = (child: ChildProcess, options: ChildOptions): Deferred.Deferred<Gone> => {
  const gone = Deferred.makeUnsafe<Gone>()
  let last = performance.now()
  child.stdout?.on("data", (chunk: Buffer) => {
    last = performance.now()
    options.onStdout(chunk)
  })
  child.stderr?.on("data", (chunk: Buffer) => {
    last = performance.now()
    options.onStderr(chunk)
  })
  for (const pipe of child.stdio) pipe?.on("error", () => {})
  child.stdin?.end(options.stdin)
  child.once("exit", (code, signal) => {
    const done = () => {
      clearInterval(timer)
      for (const pipe of child.stdio) pipe?.destroy()
      Deferred.doneUnsafe(gone, Exit.succeed({ code, signal }))
    }
    const exited = performance.now()
    last = exited
    const timer = setInterval(() => {
      const now = performance.now()
      if (now - last >= idleMillis || now - exited >= drainMillis) done()
    }, idleMillis / 4)
    child.once("close", done)
  })
  return gone
}

/** What can be told before anything is started; the system's own answers name no reason. */
const refusalOf = (options: ChildOptions): Refusal | null => {
  if (process.platform === "win32") return "Agents cannot be launched on Windows: use Linux or macOS"
  if (!isDirectory(options.directory)) return `The directory ${options.directory} does not exist`
  const { program } = options
  if (program.includes("/")) {
    const path = isAbsolute(program) ? program : resolve(options.directory, program)
    return isThere(path) ? (isRunnable(path) ? null : `${path} is not executable`) : `${path} does not exist`
  }
  const path = options.env["PATH"] ?? ""
  const places = path.split(delimiter).filter((place) => place !== "")
  if (places.some((place) => isRunnable(join(place, program)))) return null
  const found = places.map((place) => join(place, program)).find(isThere)
  if (found !== undefined) return `${found} is not executable`
  return `There is no program ${program} in PATH (${path === "" ? "which is empty" : path}): install it, or give its path`
}

const spawnRefusal = (options: ChildOptions, error: unknown): Refusal => {
  const code = error instanceof Error && "code" in error ? error.code : undefined
  if (code !== "E2BIG") return `${options.program} could not be started: ${String(error)}`
  const bytes = options.arguments.reduce((sum, argument) => sum + Buffer.byteLength(argument) + 1, 0)
  return `The arguments of ${options.program} are too long (${bytes} bytes): give the prompt by stdin or as a file`
}

const isDirectory = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

const isRunnable = (path: string): boolean => {
  if (!isThere(path)) return false
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
