import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { ScheduleJournal, Storage } from "shiftboss"
import { Account } from "../core/schedule/law.ts"
import { folder, storageIn } from "./support/folders.ts"

const begin = 20_000 * 86_400_000

/** A process that runs the journal, or waits for it while another one does. */
const run = (logs: string, host: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const program = new URL("./children/schedule-process.ts", import.meta.url).pathname
      const loader = new URL("./support/from-source.mjs", import.meta.url).href
      const child = spawn(process.execPath, ["--import", loader, program, logs, host, String(begin)], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      return { child, lines: createInterface({ input: child.stdout }) }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

type Running = Effect.Success<ReturnType<typeof run>>

/** Waits for so many slots of any of them, and kills the one that runs in the middle of whatever it does then. */
const killAfter = Effect.fnUntraced(function* (running: ReadonlyArray<Running>, slots: number) {
  return yield* Effect.promise(async () => {
    let seen = 0
    return await new Promise<Running>((resolve, reject) => {
      for (const one of running) {
        one.lines.removeAllListeners("line").on("line", () => {
          if (++seen !== slots) return
          one.child.once("exit", () => resolve(one))
          one.child.kill("SIGKILL")
        })
        one.child.once("exit", (code) => code === null || reject(new Error(`a process ended by itself with ${code}`)))
      }
    })
  })
})

/** Every slot is accounted for by the entries, and those that ran by the host: each run was begun once at most. */
const check = Effect.fnUntraced(function* (logs: string, host: string) {
  const entries = yield* Stream.runCollect(
    Storage.readTyped(storageIn(logs), "schedules", { entry: ScheduleJournal.ScheduleEvent, version: 1 })
  )
  const { slots, runIds } = new Account(entries, 0)
  assert.isAtLeast(slots.size, 10)
  const started = existsSync(host) ? readFileSync(host, "utf8").trim().split("\n") : []
  assert.strictEqual(new Set(started).size, started.length)
  assert.includeMembers([...runIds.values()], started)
})

describe("killed over and over", () => {
  it.live(
    "a process loses no slot and starts no run twice",
    () =>
      Effect.gen(function* () {
        const path = yield* folder
        const [logs, host] = [join(path, "logs"), join(path, "host")]
        for (const slots of [1, 4, 2, 7, 3]) yield* killAfter([yield* run(logs, host)], slots)
        yield* check(logs, host)
      }),
    90_000
  )

  it.live(
    "two processes on one journal lose no slot and start no run twice: one takes over from the other",
    () =>
      Effect.gen(function* () {
        const path = yield* folder
        const [logs, host] = [join(path, "logs"), join(path, "host")]
        let running = [yield* run(logs, host), yield* run(logs, host)]
        for (const slots of [3, 5, 1, 4]) {
          const killed = yield* killAfter(running, slots)
          running = [...running.filter((one) => one !== killed), yield* run(logs, host)]
        }
        yield* check(logs, host)
      }),
    90_000
  )
})
