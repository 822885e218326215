// The demo as a process of its own, in a folder of its own, and what it left there.
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Schedule } from "effect"

const fromSource = new URL("../../node/support/from-source.mjs", import.meta.url).href
const main = fileURLToPath(new URL("../../../examples/demo/main.ts", import.meta.url))

export interface Demo {
  readonly process: ChildProcess
  readonly output: () => string
  /** The exit code, or the signal that ended it. */
  readonly ended: Effect.Effect<number | NodeJS.Signals | null>
}

/** Starts the demo; killed with the scope. */
export const start = (state: string, args: ReadonlyArray<string> = [], env: NodeJS.ProcessEnv = {}) =>
  Effect.acquireRelease(
    Effect.sync((): Demo => {
      const process_ = spawn(process.execPath, ["--import", fromSource, main, "--state", state, ...args], {
        env: { ...process.env, ...env },
        stdio: ["ignore", "pipe", "pipe"]
      })
      let output = ""
      process_.stdout.on("data", (chunk) => (output += chunk))
      process_.stderr.on("data", (chunk) => (output += chunk))
      const ended = new Promise<number | NodeJS.Signals | null>((done) =>
        process_.on("close", (code, signal) => done(code ?? signal))
      )
      return { process: process_, output: () => output, ended: Effect.promise(() => ended) }
    }),
    (demo) => Effect.andThen(kill(demo), demo.ended)
  )

export const kill = (demo: Demo, signal: NodeJS.Signals = "SIGKILL") => Effect.sync(() => demo.process.kill(signal))

export const until = (is: () => boolean | Promise<boolean>) =>
  Effect.repeat(
    Effect.promise(async () => is()),
    { until: (found) => found, schedule: Schedule.spaced("5 millis") }
  )

type Event = { readonly _tag: string; readonly case: string } & Readonly<Record<string, unknown>>

/** The events in the log. Its first line is a header; its last may be half a line when the demo was killed. */
export const events = (state: string): ReadonlyArray<Event> => {
  const file = join(state, "log", "dispatch.ndjson")
  if (!existsSync(file)) return []
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => {
      const start = line.indexOf('"value":')
      return start === -1 || !line.endsWith("}") ? [] : [JSON.parse(line).entry.value as Event]
    })
}

export const has = (state: string, tag: string, count = 1) =>
  events(state).filter((one) => one._tag === tag).length >= count

/** What came of each case: the rule that reads it, or that it is difficult. */
export const results = (state: string) =>
  Object.fromEntries(
    events(state).flatMap((event) =>
      event._tag === "CaseCompleted"
        ? [[event.case, event["value"]]]
        : event._tag === "CaseDifficult"
          ? [[event.case, "difficult"]]
          : []
    )
  )

/** The applies of which the log says that they changed something, in order, as their commits are named. */
export const changedApplies = (state: string) =>
  events(state).flatMap(({ _tag, ...event }) => {
    const applied = event["applied"] as { readonly _tag: string } | undefined
    return _tag === "ApplyEnded" && applied?._tag === "Changed" ? [`apply ${String(event["apply"])}`] : []
  })

export const rulesFile = (state: string) => readFileSync(join(state, "rules", "rules.txt"), "utf8")

const command = (program: string, ...args: ReadonlyArray<string>) =>
  new Promise<string>((done, fail) =>
    execFile(program, args, (error, stdout) => (error === null ? done(stdout) : fail(error)))
  )

export const commits = (state: string) =>
  Effect.promise(async () => {
    const printed = await command("git", "-C", join(state, "rules"), "log", "--reverse", "--format=%s")
    return printed.trim().split("\n")
  })

/** The process ids of the agents of that demo that are alive. */
export const agents = async (state: string) =>
  (await command("ps", "-eo", "pid,args"))
    .split("\n")
    .filter((line) => line.includes("agent.ts") && line.includes(state))
    .map((line) => Number.parseInt(line, 10))

/**
 * A `git` that stands still once, before or after the commit of an apply, and writes the file `stood` then. It waits on its
 * standard input, which closes when the demo is killed.
 */
export const standingGit = (folder: string, when: "before" | "after", apply: string) =>
  Effect.promise(async () => {
    const bin = join(folder, `${when}-${apply}`)
    const stood = join(bin, "stood")
    const git = (await command("sh", "-c", "command -v git")).trim()
    const stand = `case "$*" in *"apply ${apply}: "*) [ -e '${stood}' ] || { : > '${stood}'; cat > /dev/null; exit 1; } ;; esac`
    const lines = when === "before" ? [stand, `exec ${git} "$@"`] : [`${git} "$@" || exit`, stand]
    await mkdir(bin)
    await writeFile(join(bin, "git"), ["#!/bin/sh", ...lines, ""].join("\n"), { mode: 0o755 })
    return { env: { PATH: `${bin}:${process.env["PATH"]}` }, stands: () => existsSync(stood) }
  })
