/**
 * Runs the commands of the project's own toolchain.
 */
import { spawn } from "node:child_process"
import { delimiter, join } from "node:path"

/** The folder of the package: npm runs scripts there. */
export const root = process.cwd()

/** Longer than any of them takes on a slow machine: a command that hangs ends as a failure that says so. */
const limitMinutes = 20

/** What a command printed, and how it ended. */
export interface Ended {
  readonly ok: boolean
  readonly stdout: string
  readonly output: string
}

/** A command that failed, with all that it printed. */
export class CommandFailed extends Error {
  constructor(command: string, ended: Ended) {
    super(`${command} failed:\n${ended.output.trim()}`)
  }
}

// The tools come first on the path, so that they run on the Node of the project whatever starts this.
const environment = {
  ...process.env,
  PATH: `${join(root, "node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}`,
  NO_COLOR: "1",
  FORCE_COLOR: undefined
}

/** Runs a command to its end, without a terminal and without input. */
export const attempt = (
  command: string,
  args: ReadonlyArray<string>,
  { cwd = root }: { readonly cwd?: string } = {}
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: limitMinutes * 60_000
    })
    let stdout = ""
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
      output += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      output += text
    })
    child.on("error", reject)
    child.on("close", (code, signal) => {
      const stopped = signal === null ? "" : `\nended by ${signal}; the limit is ${limitMinutes} minutes`
      resolve({ ok: code === 0, stdout, output: output + stopped })
    })
  })

/** Runs a command that has to succeed. */
export const run = async (
  command: string,
  args: ReadonlyArray<string>,
  options?: { readonly cwd?: string }
): Promise<Ended> => {
  const ended = await attempt(command, args, options)
  if (!ended.ok) {
    throw new CommandFailed([command, ...args].join(" "), ended)
  }
  return ended
}
