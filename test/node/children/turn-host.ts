// Runs the turn "t" as a process of its own: `turn-host.ts <folder> <mode>`. Prints the process id of each agent.
import { Effect, Layer } from "effect"
import { RetryPolicy } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { sleeper } from "./sleeper.ts"

const [folder = "", mode = "works"] = process.argv.slice(2)
const launched = (pid: number) => void process.stdout.write(`${pid}\n`)
const agents = {
  works: { launched },
  waits: { launched, fails: "Network" },
  holds: { launched, fails: "RateLimited" },
  begins: { launched, stuck: true }
} as const
const agent = sleeper(agents[mode as keyof typeof agents])

// Keeps the process alive while nothing but the test decides its end.
setInterval(() => undefined, 60_000)
await Effect.runPromise(
  RetryPolicy.run({ id: "t", prompt: "sleep" }).pipe(
    Effect.provide(RetryPolicy.layer.pipe(Layer.provide([agent, FileStorage.layer(folder)])))
  )
)
