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
}

/** A repository that does not answer within this long is on a disk that hangs. */
const longest = 60_000

const mostOutput = 64 * 1024 * 1024

/**
 * The environment of the host without what points git at another repository: hosts are themselves started by hooks, which
 * set these. Prompts would wait for a terminal that is not there; messages are read, so they are asked for in English.
 */
const environment = (): NodeJS.ProcessEnv => {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^GIT_(?:DIR|WORK_TREE|INDEX_FILE|PREFIX|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE)$/.test(name)
  )
  return { ...Object.fromEntries(kept), GIT_TERMINAL_PROMPT: "0", LC_ALL: "C" }
}

/** What git answers, whether it succeeds or not. It takes no lock that it can do without. */
export const git = (
  directory: string,
  ...words: ReadonlyArray<string>
): Effect.Effect<Answered, Workspace.WorkspaceError> =>
  Effect.callback((resume) => {
    const child = execFile(
      "git",
      ["--no-optional-locks", "-c", "core.quotePath=false", "-C", directory, ...words],
      { env: environment(), timeout: longest, killSignal: "SIGKILL", maxBuffer: mostOutput, encoding: "utf8" },
      (error, stdout, stderr) => {
        if (error === null) return resume(Effect.succeed({ code: 0, stdout, stderr }))
        if (typeof error.code === "number") return resume(Effect.succeed({ code: error.code, stdout, stderr }))
        const reason = error.killed ? `git ${words[0]} gave no answer in ${longest / 1000} seconds` : error.message
        return resume(Effect.fail(new Workspace.WorkspaceError({ directory, reason })))
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
