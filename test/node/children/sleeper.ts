/**
 * An agent that is a real process: it sleeps until it is stopped. In the session of an earlier one it succeeds at once.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { Deferred, Effect, Layer, Stream } from "effect"
import { AgentLauncher, Failure } from "shiftboss"

/** Field 22 of /proc/<pid>/stat; `undefined` when there is no such process, or only what its parent has not collected. */
export const startTime = (pid: number): string | undefined => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")
    return fields[0] === "Z" ? undefined : fields[19]
  } catch {
    return undefined
  }
}

const result = { text: "resumed", sessionId: null, usage: null, costUsd: null, turns: null, model: null }

export interface Told {
  readonly launched: (pid: number, attempt: AgentLauncher.Attempt) => void
  /** Every launch fails like this instead. */
  readonly fails?: Failure.FailureKind
  /** Every launch takes for ever, before there is a process. */
  readonly stuck?: boolean
}

export const sleeper = ({ launched, fails, stuck }: Told): Layer.Layer<AgentLauncher.AgentLauncher> =>
  Layer.succeed(
    AgentLauncher.AgentLauncher,
    AgentLauncher.AgentLauncher.of({
      newSessionId: Effect.succeed("the-session"),
      reap: (identity) =>
        Effect.gen(function* () {
          if (identity._tag !== "Process" || startTime(identity.pid) !== identity.startTime) return "gone"
          process.kill(identity.pid, "SIGKILL")
          while (startTime(identity.pid) === identity.startTime) yield* Effect.sleep("5 millis")
          return "stopped"
        }),
      launch: Effect.fnUntraced(function* (attempt, onIdentity) {
        if (stuck) return yield* Effect.never
        const ended = yield* Deferred.make<AgentLauncher.Ending>()
        const child = spawn("sleep", ["300"], { stdio: "ignore", detached: true })
        const pid = child.pid ?? 0
        yield* onIdentity({ _tag: "Process", pid, startTime: startTime(pid) ?? "", bootId: "this one" })
        launched(pid, attempt)
        if (fails !== undefined) {
          child.kill("SIGKILL")
          const failure = new Failure.Failure({ kind: fails, scope: "request", detail: "as told", raw: null })
          yield* Deferred.succeed(ended, { _tag: "Failed", failure })
        } else if (attempt.session._tag === "Resume") {
          child.kill("SIGKILL")
          yield* Deferred.succeed(ended, { _tag: "Succeeded", result })
        }
        return {
          identity: { _tag: "Process", pid, startTime: "", bootId: "" },
          activity: Stream.make({ _tag: "SessionSeen", id: attempt.session.id } as const),
          ended: Deferred.await(ended),
          stop: () => Effect.die(new Error("nobody stops it here"))
        }
      })
    })
  )
