// A main program for the tests of signals: `main-program.ts <mode>`. Prints what happens to it, line by line.
import { Effect } from "effect"
import { Dispatcher } from "shiftboss"
import { NodeMain } from "shiftboss/node"

const say = (line: string) => Effect.sync(() => process.stdout.write(`${line}\n`))

/** Waits for the signal that stops, says so, and does the rest. */
const stopped = <A>(rest: Effect.Effect<A>) =>
  Effect.gen(function* () {
    const stop = yield* Dispatcher.StopSignal
    yield* say("ready")
    yield* stop
    yield* say("stopping")
    return yield* rest
  })

const modes: Readonly<Record<string, Effect.Effect<unknown, string>>> = {
  /** Is still stopping when a second signal would have interrupted it. */
  stops: Effect.andThen(stopped(Effect.sleep("600 millis")), say("stopped")),
  waits: Effect.onInterrupt(stopped(Effect.never), () => say("interrupted")),
  ignores: Effect.uninterruptible(stopped(Effect.never)),
  fails: Effect.fail("it went wrong"),
  succeeds: Effect.sync(() => setTimeout(() => process.stdout.write("later\n"), 50))
}

// Keeps the process alive where only the end of the program may end it.
if (process.argv[2] !== "succeeds") setInterval(() => undefined, 60_000)
NodeMain.runMain(modes[process.argv[2] ?? ""] ?? Effect.die("no such mode"))
