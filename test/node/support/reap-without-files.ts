// Reaps the process of the given pid while this host has no file left to open: `reap-without-files.ts <pid>`.
import { closeSync, openSync } from "node:fs"
import { Effect } from "effect"
import { AgentLauncher } from "shiftboss"
import { PlainText } from "shiftboss/node"
import { bootId, entryOf } from "../../../src/node/internal/processTable.ts"

const pid = Number(process.argv[2])
const identity: AgentLauncher.Identity = {
  ...{ _tag: "Process", pid, startTime: entryOf(pid)?.startTime ?? "" },
  bootId: bootId()
}

const open: Array<number> = []
const exhaust = (): void => {
  try {
    while (true) open.push(openSync("/dev/null", "r"))
  } catch {
    // There are none left, which is what was wanted.
  }
}

const program = Effect.gen(function* () {
  const { reap } = yield* AgentLauncher.AgentLauncher
  exhaust()
  setTimeout(() => open.forEach(closeSync), 300)
  return yield* reap(identity)
}).pipe(Effect.provide(PlainText.layer({ command: "true", grace: 0 })))

process.stdout.write(`${await Effect.runPromise(program)}\n`)
