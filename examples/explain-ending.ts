/**
 * What does the output of an agent mean? Prints the reading of a recorded output as JSON:
 *
 *     node examples/explain-ending.ts <claude|codex|gemini|text> <folder or stdout file> [--at <time>] [--zone <zone>]
 *
 * Without arguments it explains a limit of Claude Code that was recorded. A folder may hold `stdout`, `stderr`, `rc` (the exit code, or the signal) and, for Codex, `rollout-tail.jsonl` (the end
 * of the thread's own file). Times like "resets 1:15am" need to know when and where they were printed: by default at the
 * last time in the output, in this machine's zone. `resetAt` is in epoch milliseconds.
 */
import { existsSync, readFileSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import { Duration } from "effect"
import type { AgentLauncher } from "shiftboss"
import { ClaudeCode, Codex, Gemini, PlainText, Protocol } from "shiftboss/node"

export interface Explained {
  readonly outcome: "succeeded" | "failed"
  readonly kind: string | null
  readonly scope: string | null
  readonly resetAt: number | null
  readonly sessionId: string | null
  readonly usage: AgentLauncher.AgentResult["usage"]
  readonly costUsd: number | null
  readonly turns: number | null
  readonly model: string | null
  readonly detail: string | null
  readonly rule: string
}

export interface Where {
  /** When it was printed, in epoch milliseconds. */
  readonly at?: number | undefined
  readonly zone?: string | undefined
}

/** Reads a recorded output. */
export const explain = (agent: string, path: string, where: Where = {}): Explained => {
  const folder = statSync(path).isDirectory() ? path : basename(path) === "stdout" ? dirname(path) : null
  const beside = (name: string): string => (folder === null ? "" : textOf(join(folder, name)))
  const stdout = readFileSync(statSync(path).isDirectory() ? join(path, "stdout") : path)
  const stderr = beside("stderr")
  // Of a lone file it is not known how the program exited; the terminal line decides in any case.
  const exit = exitOf(beside("rc"))
  const printed = {
    now: where.at ?? lastTime(stdout) ?? statSync(path).mtimeMs,
    timeZone: where.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  }
  const output = { ...exit, stdout, stderr, printed }
  switch (isText(stdout) && exit.code === 0 ? "text" : agent) {
    case "claude":
      return explained(Protocol.readAll(ClaudeCode.protocol(), attempt, output))
    case "codex": {
      const thread = beside("rollout-tail.jsonl").split("\n")
      return explained(
        Protocol.readAll(Codex.protocol(), attempt, output, (state) => Codex.withThreadFile(state, thread, 0))
      )
    }
    case "gemini":
      return explained(Protocol.readAll(Gemini.protocol(), attempt, output))
    case "text":
      return explained(Protocol.readAll(PlainText.protocol({ command: "the program" }), attempt, output))
    default:
      throw new Error(`There is no agent ${JSON.stringify(agent)}: give claude, codex, gemini or text`)
  }
}

const attempt: AgentLauncher.Attempt = {
  turnId: "recorded",
  number: 1,
  prompt: "",
  session: { _tag: "New", id: "" },
  limits: { silence: Duration.minutes(10), wallClock: Duration.hours(1) }
}

const explained = ({ ending, known, rule }: Protocol.Reading): Explained => {
  const failure = ending._tag === "Failed" ? ending.failure : null
  return {
    outcome: ending._tag === "Succeeded" ? "succeeded" : "failed",
    kind: failure?.kind ?? null,
    scope: failure?.scope ?? null,
    resetAt: failure?.resetAt ?? null,
    sessionId: known.sessionId,
    usage: known.usage,
    costUsd: known.costUsd,
    turns: known.turns,
    model: known.model,
    detail: failure?.detail ?? null,
    rule
  }
}

/** An agent that was asked for plain text. */
const isText = (stdout: Buffer): boolean => /^\s*[^\s{]/.test(stdout.toString())

const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "")

const exitOf = (recorded: string): { readonly code: number | null; readonly signal: string | null } => {
  const signal = /SIG[A-Z]+/.exec(recorded)?.[0]
  return signal === undefined ? { code: Number(recorded.trim() || 0), signal: null } : { code: null, signal }
}

const lastTime = (stdout: Buffer): number | null => {
  const times = stdout.toString().match(/"timestamp":\s*"[^"]+"/g) ?? []
  const last = Date.parse(/: ?"(.*)"/.exec(times.at(-1) ?? "")?.[1] ?? "")
  return Number.isNaN(last) ? null : last
}

const usage = "usage: node examples/explain-ending.ts <claude|codex|gemini|text> <folder or stdout file>"
const shown = new URL("../test/fixtures/recordings/claude/429-usage-limit-oauth", import.meta.url)

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: { at: { type: "string" }, zone: { type: "string" } }
    })
    const [agent, path] = positionals.length === 0 ? ["claude", fileURLToPath(shown)] : positionals
    if (agent === undefined || path === undefined) throw new Error("Give an agent and a path")
    const at = values.at === undefined ? undefined : Date.parse(values.at)
    if (Number.isNaN(at)) throw new Error(`--at ${values.at} is no time: give one such as 2026-11-30T23:15:00Z`)
    console.log(JSON.stringify(explain(agent, path, { at, zone: values.zone }), null, 2))
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
    process.exitCode = 2
  }
}
