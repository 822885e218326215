/**
 * Other programs, run to their end.
 */
import { Effect, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

export class ProgramFailed extends Schema.TaggedError<ProgramFailed>()("ProgramFailed", {
  command: Schema.String,
  code: Schema.Number,
  said: Schema.String
}) {
  override get message(): string {
    return `\`${this.command}\` ended with ${this.code}: ${this.said.trim()}`
  }
}

/**
 * What the program printed. It is gone when this ends, interrupted too: a child in a process group of its own, which a
 * Ctrl-C meant for this program does not reach, and whose standard input closes should this program be killed.
 */
export const run = Effect.fn("demo.run")(function* (
  program: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const child = yield* spawner.spawn(
    ChildProcess.make(program, args, { env, extendEnv: true, stdin: "pipe", forceKillAfter: "2 seconds" })
  )
  const textOf = (stream: typeof child.stdout) => Stream.mkString(Stream.decodeText(stream))
  const [printed, said, code] = yield* Effect.all([textOf(child.stdout), textOf(child.stderr), child.exitCode], {
    concurrency: "unbounded"
  })
  if (code !== 0) return yield* new ProgramFailed({ command: [program, ...args].join(" "), code, said })
  return printed
}, Effect.scoped)
