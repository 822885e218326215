/**
 * The demo as a process that is to be killed.
 */
import { spawn } from "node:child_process"
import type { Readable } from "node:stream"
import { fileURLToPath } from "node:url"
import { marked, markName } from "./processes.ts"
import type { Told } from "./told.ts"

const hooks = new URL("./children/hooks.mjs", import.meta.url).href
const main = fileURLToPath(new URL("../../examples/demo/main.ts", import.meta.url))

/** What is killed in one instant: the host's process alone, its process group, or all that descends from it. */
export type Aim = "host" | "group" | "everything"

export interface Host {
  /** The exit code, or the signal that ended it, once all that it told has been heard. */
  readonly ended: Promise<number | NodeJS.Signals>
  readonly output: () => string
  readonly kill: (aim: Aim) => void
}

export interface Demo {
  readonly state: string
  readonly args: ReadonlyArray<string>
  /** Marks the processes of this demo. */
  readonly mark: string
  /** A folder for compiled code: a process that starts sooner can be killed more often. */
  readonly cache: string
}

const longestEnding = 20_000

const unlessGone = (kill: () => void) => {
  try {
    kill()
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error
  }
}

export const start = ({ state, args, mark, cache }: Demo, hear: (told: Told) => void): Host => {
  const child = spawn(process.execPath, ["--import", hooks, main, "--state", state, ...args], {
    detached: true,
    env: { ...process.env, NODE_COMPILE_CACHE: cache, [markName]: mark },
    stdio: ["ignore", "pipe", "pipe", "pipe"]
  })
  const { pid } = child
  if (pid === undefined) throw new Error("the demo could not be started")
  const isAlive = () => child.exitCode === null && child.signalCode === null
  // In a session of its own it does not hear of a Ctrl-C.
  const endWithHarness = () => void (isAlive() && process.kill(pid, "SIGKILL"))
  process.once("exit", endWithHarness)
  let output = ""
  child.stdout?.on("data", (chunk) => (output += chunk))
  child.stderr?.on("data", (chunk) => (output += chunk))
  let heard = ""
  const pipe = child.stdio[3] as Readable
  pipe.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (heard + chunk).split("\n")
    // What is cut off was never told: its teller died in the middle of it.
    heard = lines.pop() ?? ""
    for (const line of lines) hear(JSON.parse(line))
  })
  const ended = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once("error", reject)
    child.once("exit", () => {
      setTimeout(() => reject(new Error("a process left behind holds a pipe of the demo")), longestEnding).unref()
    })
    child.once("close", (code, signal) => {
      process.removeListener("exit", endWithHarness)
      resolve(code ?? signal ?? "SIGKILL")
    })
  })
  const kill = (aim: Aim) => {
    if (!isAlive()) return
    const others = aim === "everything" ? marked(mark) : []
    unlessGone(() => process.kill(aim === "host" ? pid : -pid, "SIGKILL"))
    for (const other of others) unlessGone(() => process.kill(other.pid, "SIGKILL"))
  }
  return { ended, output: () => output, kill }
}
