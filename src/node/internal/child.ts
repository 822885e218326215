/**
 * One child process: behind a barrier until it may run, in a session of its own, with pipes that never outlive it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, type Stats, statSync } from "node:fs"
import { delimiter, resolve } from "node:path"
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
      if (entry === null) {
        // Should it be there all the same, it must not wait behind its barrier for ever.
        child.kill("SIGKILL")
        return resume(Effect.fail(`${options.program} was killed before it could be identified`))
      }
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
  const { directory, env, program } = options
  if ([directory, program, ...options.arguments].some((text) => text.includes("\0"))) {
    return "The directory, the program or an argument holds a NUL byte, which no system takes"
  }
  for (const [name, value] of Object.entries(env)) {
    if (name !== "" && !/[=\0]/.test(name) && !value.includes("\0")) continue
    return `The variable ${JSON.stringify(name)} cannot be in an environment: its name is empty or holds "=", or there is a NUL byte`
  }
  const place = look(directory)
  if (typeof place === "string") return `The directory ${directory} ${place}`
  if (!place.isDirectory()) return `${directory} is no directory`
  return program.includes("/") ? refusalAt(resolve(directory, program)) : refusalInPath(program, directory, env)
}

const refusalAt = (path: string): Refusal | null => {
  const found = look(path)
  if (typeof found === "string") return `${path} ${found}`
  if (!found.isFile()) return `${path} is no file`
  return isRunnable(path) ? null : `${path} is not executable`
}

const refusalInPath = (program: string, directory: string, env: ChildOptions["env"]): Refusal | null => {
  const path = env["PATH"] ?? ""
  const missing = `There is no program ${program} in PATH (${path === "" ? "which is empty" : path}): install it, or give its path`
  if (path === "" || program === "") return missing
  // As the shell does: from where the program runs, and an empty place is that directory itself.
  const files = path.split(delimiter).map((place) => resolve(directory, place, program))
  if (files.some(isRunnable)) return null
  const found = files.find(isFile)
  return found === undefined ? missing : `${found} is not executable`
}

const spawnRefusal = (options: ChildOptions, error: unknown): Refusal => {
  const code = error instanceof Error && "code" in error ? error.code : undefined
  if (code !== "E2BIG") return `${options.program} could not be started: ${String(error)}`
  const sizeOf = (texts: ReadonlyArray<string>): number =>
    texts.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0)
  const bytes = sizeOf(options.arguments)
  const variables = sizeOf(Object.entries(options.env).flat())
  return variables > bytes
    ? `The environment of ${options.program} is too long (${variables} bytes): give it less by "env" and "inherit"`
    : `The arguments of ${options.program} are too long (${bytes} bytes): give the prompt by stdin or as a file`
}

/** What there is, or why that cannot be told: places in a PATH may be anything, and closed to this user. */
const look = (path: string): Stats | string => {
  try {
    return statSync(path)
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined
    return code === "ENOENT" || code === "ENOTDIR" ? "does not exist" : `cannot be looked at (${String(code)})`
  }
}

const isFile = (path: string): boolean => {
  const found = look(path)
  return typeof found !== "string" && found.isFile()
}

const isRunnable = (path: string): boolean => {
  if (!isFile(path)) return false
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
