import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { assert, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { DispatcherEvent, Storage } from "shiftboss"
import { folder, storageIn } from "./support/folders.ts"

/** What a process says until it ends, or is killed in the middle of whatever follows so many lines. */
const linesOf = async (logs: string, kill = Infinity): Promise<ReadonlyArray<string>> => {
  const child = spawn(
    process.execPath,
    [
      "--import",
      new URL("./support/from-source.mjs", import.meta.url).href,
      new URL("./children/recheck-process.ts", import.meta.url).pathname,
      logs
    ],
    { stdio: ["ignore", "pipe", "inherit"] }
  )
  const exited = once(child, "exit")
  const lines: Array<string> = []
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (lines.length === kill) child.kill("SIGKILL")
  }
  await exited
  return lines
}

it.live(
  "a process that is killed over and over ends with the same verdicts and one repair, and buys no run twice",
  () =>
    Effect.gen(function* () {
      const logs = yield* folder
      const said: Array<string> = []
      for (const lines of [1, 3, 4, 2, Infinity]) said.push(...(yield* Effect.promise(() => linesOf(logs, lines))))
      const given = new Set<string>()
      for (const line of said) {
        const [what, key = ""] = line.split(" ")
        if (what === "run") assert.isFalse(given.has(key), `${key} ran again`)
        if (what === "given") given.add(key)
      }
      assert.deepStrictEqual(
        [...new Set(said.filter((line) => line.startsWith("apply")))],
        ["apply 001 of ask/1/rule", "apply 002 of a@recheck-001"]
      )
      const events = yield* Stream.runCollect(
        Storage.readTyped(storageIn(logs), "dispatch", {
          entry: DispatcherEvent.DispatcherEvent,
          version: DispatcherEvent.version
        })
      )
      const ended = events.flatMap((event) =>
        event._tag === "RecheckEnded" ? [`${event.case} ${event.apply} ${event.outcome._tag}`] : []
      )
      assert.strictEqual(new Set(ended).size, ended.length)
      assert.includeMembers(ended, ["a 001 Regressed", "a 002 Passed", "b 001 Passed", "c 001 Passed"])
    }),
  60_000
)
