/**
 * A Redis of its own in the folder it is asked to start in, on a free port of loopback, that answers once what it was
 * told is on the disk. Ends with whoever asked.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { answer } from "../contest.ts"
import { freePort } from "./freePort.ts"

let server: ChildProcess | undefined

const start = async (folder: string): Promise<string> => {
  const port = await freePort()
  const flags = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, "--save", "", "--daemonize", "no"]
  const durable = ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"]
  server = spawn("redis-server", [...flags, ...durable], { stdio: ["ignore", "pipe", "ignore"] })
  await once(server, "spawn")
  const ended = once(server, "exit").then(([code]) => Promise.reject(new Error(`redis-server ended with ${code}`)))
  const ready = Promise.withResolvers<void>()
  server.stdout?.on("data", (chunk: Buffer) => {
    if (chunk.includes("Ready to accept connections")) ready.resolve()
  })
  await Promise.race([ready.promise, ended])
  ended.catch(() => {})
  return `redis://127.0.0.1:${port}`
}

answer(start, async () => {
  if (server === undefined || server.exitCode !== null) return
  const ended = once(server, "exit")
  server.kill()
  await ended
})
