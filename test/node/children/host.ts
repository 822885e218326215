/**
 * A host that is killed: starts the script of its argument and prints its identity. It opens the barrier only when its
 * second argument says so, and then waits.
 */
import { Effect } from "effect"
import { start } from "../../../src/node/internal/child.ts"
import { bootId } from "../../../src/node/internal/processTable.ts"

const [script = "", mode] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const child = yield* start({
    program: "/bin/sh",
    arguments: ["-c", script],
    directory: process.cwd(),
    env: { PATH: process.env["PATH"] ?? "" },
    stdin: undefined,
    onStdout: (chunk) => process.stdout.write(chunk),
    onStderr: () => {}
  })
  if (mode === "release") yield* child.release
  process.stdout.write(`${JSON.stringify({ _tag: "Process", ...child.root, bootId: bootId() })}\n`)
  return yield* Effect.never
})

await Effect.runPromise(program)
