/**
 * Who this process is, so that another one on the same machine can prove it dead: a process id alone is reused.
 */
import { execFile } from "node:child_process"
import { randomUUID } from "node:crypto"
import { readFile, readlink } from "node:fs/promises"
import { hostname } from "node:os"
import { promisify } from "node:util"
import { Effect, Option, Schema } from "effect"
import type { Storage } from "shiftboss"
import { hasCode } from "./disk.ts"

const Proof = Schema.Struct({
  pid: Schema.Number,
  /** When the process started, in the system's own words. */
  started: Schema.String,
  /** Process ids mean something else in another namespace, such as another container. */
  namespace: Schema.String,
  boot: Schema.String,
  machine: Schema.String
})
type Proof = typeof Proof.Type
type Machine = Pick<Proof, "namespace" | "boot" | "machine">

const decodeProof = Schema.decodeUnknownOption(Proof)

/** What the system says about a process: its start, that there is none, or nothing that proves either. */
type Start =
  | { readonly _tag: "Started"; readonly at: string }
  | { readonly _tag: "Gone" }
  | { readonly _tag: "Unknown" }
const gone: Start = { _tag: "Gone" }
const unknown: Start = { _tag: "Unknown" }

const orEmpty = (promise: Promise<string>) => promise.then((text) => text.trim()).catch(() => "")
const run = async (command: string, args: ReadonlyArray<string>) => (await promisify(execFile)(command, args)).stdout

const existsProcess = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !hasCode(error, "ESRCH")
  }
}

const linuxStart = async (pid: number): Promise<Start> => {
  const text = await orEmpty(readFile(`/proc/${pid}/stat`, "utf8"))
  // The command's name comes second, in brackets, and may itself hold brackets and blanks.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const [state, started] = [fields[0], fields[19]]
  if (started === undefined) return unknown
  // A zombie runs nothing any more; its parent merely has not asked how it ended.
  return state === "Z" || state === "X" ? gone : { _tag: "Started", at: started }
}

const macStart = async (pid: number): Promise<Start> => {
  const at = await orEmpty(run("ps", ["-o", "lstart=", "-p", String(pid)]))
  return at === "" ? unknown : { _tag: "Started", at }
}

const start = (pid: number): Promise<Start> => {
  if (!existsProcess(pid)) return Promise.resolve(gone)
  return process.platform === "linux" ? linuxStart(pid) : macStart(pid)
}

const thisMachine = async (): Promise<Machine> => {
  if (process.platform === "linux") {
    const [namespace, boot, machine] = await Promise.all([
      orEmpty(readlink("/proc/self/ns/pid")),
      orEmpty(readFile("/proc/sys/kernel/random/boot_id", "utf8")),
      orEmpty(readFile("/etc/machine-id", "utf8"))
    ])
    return { namespace, boot, machine }
  }
  const [boot, machine] = await Promise.all([
    orEmpty(run("sysctl", ["-n", "kern.bootsessionuuid"])),
    orEmpty(run("sysctl", ["-n", "kern.uuid"]))
  ])
  return { namespace: "none", boot, machine }
}

/** This process, with a new id each time. */
export const identify: Effect.Effect<Storage.Identity> = Effect.promise(async () => {
  const { pid } = process
  const [machine, started] = await Promise.all([thisMachine(), start(pid)])
  const proof = { pid, started: started._tag === "Started" ? started.at : "", ...machine }
  return { id: randomUUID(), host: hostname(), process: `process ${pid}`, proof }
})

const isAlive = async (host: string, proof: Proof): Promise<boolean | undefined> => {
  const here = await thisMachine()
  if (proof.boot === "" || here.boot === "") return undefined
  if (proof.boot !== here.boot) {
    // Started again since then, if it is the same machine: names alone are given twice.
    return host === hostname() && proof.machine !== "" && proof.machine === here.machine ? false : undefined
  }
  if (proof.namespace === "" || proof.namespace !== here.namespace) return undefined
  const now = await start(proof.pid)
  if (now._tag === "Gone") return false
  if (now._tag === "Unknown" || proof.started === "") return undefined
  return now.at === proof.started
}

/** Whether the holder lives; nothing when it cannot be proven from here. */
export const alive = (holder: Storage.Identity): Effect.Effect<boolean | undefined> =>
  Option.match(decodeProof(holder.proof), {
    onNone: () => Effect.succeed(undefined),
    onSome: (proof) => Effect.promise(() => isAlive(holder.host, proof))
  })
