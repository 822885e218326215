import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { ScheduleJournal, Storage } from "shiftboss"
import { Account } from "../core/schedule/law.ts"
import { folder, storageIn } from "./support/folders.ts"

const minute = 60_000

const run = (logs: string, host: string, begin: number) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      spawn(
        process.execPath,
        [
          "--import",
          new URL("./support/from-source.mjs", import.meta.url).href,
          new URL("./children/schedule-process.ts", import.meta.url).pathname,
          logs,
          host,
          String(begin)
        ],
        { stdio: ["ignore", "pipe", "inherit"] }
      )
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** Waits for so many slots and kills the process in the middle of whatever it does then; the time it had reached. */
const killAfter = Effect.fnUntraced(function* (child: ChildProcess, slots: number) {
  return yield* Effect.promise(async () => {
    if (child.stdout === null) throw new Error("the child has no output")
    let [seen, now] = [0, 0]
    for await (const line of createInterface({ input: child.stdout })) {
      now = Number(line)
      if (++seen === slots) child.kill("SIGKILL")
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit")
    assert.isAtLeast(seen, slots, "the process ended by itself")
    return now
  })
})

it.live("a process that is killed over and over loses no slot and starts no run twice", () =>
  Effect.gen(function* () {
    const path = yield* folder
    const [logs, host] = [join(path, "logs"), join(path, "host")]
    let now = 20_000 * 86_400_000
    for (const slots of [1, 4, 2, 7, 3]) {
      const child = yield* run(logs, host, now)
      now = (yield* killAfter(child, slots)) + minute
    }
    const entries = yield* Stream.runCollect(
      Storage.readTyped(storageIn(logs), "schedules", { entry: ScheduleJournal.ScheduleEvent, version: 1 })
    )
    const { slots, runIds } = new Account(entries, 0)
    assert.isAtLeast(slots.size, 10)
    const started = existsSync(host) ? readFileSync(host, "utf8").trim().split("\n") : []
    assert.strictEqual(new Set(started).size, started.length)
    assert.includeMembers([...runIds.values()], started)
  })
)
