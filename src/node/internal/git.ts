/**
 * Git as a child process.
 */
import { execFile } from "node:child_process"
import { Effect } from "effect"
import { Workspace } from "shiftboss"

export interface Answered {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** There was more on stdout than is kept of it. */
  readonly cut: boolean
}

/** A repository that does not answer within this long is on a disk that hangs. */
const longest = 60_000

const mostOutput = 16 * 1024 * 1024

/**
 * What points git at another repository, or changes what its answers look like: hosts are themselves started by hooks and
 * by git, which set these.
 */
const misleading =
  /^GIT_(?:DIR|WORK_TREE|IMPLICIT_WORK_TREE|INDEX_FILE|PREFIX|COMMON_DIR|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|CONFIG|CONFIG_PARAMETERS|GRAFT_FILE|SHALLOW_FILE|REPLACE_REF_BASE|NO_REPLACE_OBJECTS|QUARANTINE_PATH|INTERNAL_SUPER_PREFIX|\w+_PATHSPECS|TRACE\w*)$/

/** Prompts would wait for a terminal that is not there; messages are read, so they are asked for in English. */
const environment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !misleading.test(name))),
  GIT_TERMINAL_PROMPT: "0",
  LC_ALL: "C"
})

/** The repository belongs to the agent as well: nothing that stands in it is run by the host. */
const settings = ["core.quotePath=false", "core.fsmonitor=false", "core.hooksPath=/dev/null"]

/** What git answers, whether it succeeds or not. It takes no lock that it can do without, and runs no hook. */
export const git = (
  directory: string,
  ...words: ReadonlyArray<string>
): Effect.Effect<Answered, Workspace.WorkspaceError> =>
  Effect.callback((resume) => {
    const refuse = (reason: string) => resume(Effect.fail(new Workspace.WorkspaceError({ directory, reason })))
    const given = ["--no-optional-locks", ...settings.flatMap((setting) => ["-c", setting]), "-C", directory, ...words]
    if (given.some((word) => word.includes("\0"))) return refuse("a path or a name in it holds a NUL byte")
    const child = execFile(
      "git",
      given,
      { env: environment(), timeout: longest, killSignal: "SIGKILL", maxBuffer: mostOutput, encoding: "utf8" },
      (error, stdout, stderr) => {
        const cut = error?.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER"
        if (error === null || cut) return resume(Effect.succeed({ code: 0, stdout, stderr, cut }))
        if (typeof error.code === "number") return resume(Effect.succeed({ code: error.code, stdout, stderr, cut }))
        if (error.code === "ENOENT") return refuse("there is no git in PATH: install it")
        refuse(error.killed ? `git ${words[0]} gave no answer in ${longest / 1000} seconds` : error.message)
      }
    )
    child.stdin?.end()
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

/** The output of a git that has to succeed, without the newline at its end. */
export const gitText = Effect.fnUntraced(function* (directory: string, ...words: ReadonlyArray<string>) {
  const { code, stdout, stderr } = yield* git(directory, ...words)
  if (code === 0) return stdout.replace(/\n$/, "")
  const reason = `git ${words[0]} failed with ${code}: ${stderr.trim()}`
  return yield* new Workspace.WorkspaceError({ directory, reason })
})
