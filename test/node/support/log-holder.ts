// Opens a log as a process of its own: `log-holder.ts <folder> <log> <append|hold|once>`. Prints "held", then each number once
// its append was acknowledged; or what opening failed with.
import { Effect, Stream } from "effect"
import { Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"

const [folder = "", name = "", mode = "hold"] = process.argv.slice(2)
const say = (line: string) => Effect.sync(() => process.stdout.write(`${line}\n`))

const program = Effect.scoped(
  Effect.gen(function* () {
    const storage = yield* Storage.Storage
    const log = yield* storage.open(name)
    yield* say("held")
    const count = yield* Stream.runCount(log.replay)
    if (mode === "hold") return yield* Effect.never
    const last = mode === "once" ? count + 1 : Infinity
    for (let number = count; number < last; number++) {
      yield* log.append([number])
      yield* say(String(number))
    }
  })
).pipe(
  Effect.catch((error) => say(`${error._tag}: ${error.message}`)),
  Effect.provide(FileStorage.layer(folder))
)

// Keeps the process alive while nothing but the test decides its end.
setInterval(() => undefined, 60_000)
await Effect.runPromise(program)
process.exit(0)
