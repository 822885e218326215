/**
 * A few lines at the bottom of the terminal that are drawn anew, under lines that stay. Where there is no terminal only
 * the lines that stay are written.
 */
import { Effect, Schedule } from "effect"

export interface Screen {
  /** Writes a line that stays. */
  readonly print: (line: string) => Effect.Effect<void>
  /** Sets what the lines at the bottom show, from now on and ten times a second. */
  readonly show: (lines: (now: number) => ReadonlyArray<string>) => Effect.Effect<void>
}

const clearLine = "\u001b[2K"
const upAndToTheLeft = "\u001b[1A\r"

/** Ends with its scope, and leaves the lines that stay. */
export const make = Effect.gen(function* () {
  const out = process.stdout
  let bottom: (now: number) => ReadonlyArray<string> = () => []
  let drawn = 0

  const erase = () => (upAndToTheLeft + clearLine).repeat(drawn)
  const draw = () => {
    const lines = bottom(Date.now()).map((line) => line.slice(0, (out.columns ?? 80) - 1) + "\n")
    drawn = lines.length
    return lines.join("")
  }
  const redraw = Effect.sync(() => out.write(erase() + draw()))

  if (out.isTTY) {
    yield* Effect.addFinalizer(() => Effect.sync(() => out.write(erase())))
    yield* Effect.forkScoped(Effect.repeat(redraw, Schedule.spaced("100 millis")))
  }
  return {
    print: (line) => Effect.sync(() => out.write(out.isTTY ? erase() + line + "\n" + draw() : line + "\n")),
    show: (lines) => Effect.sync(() => void (bottom = lines))
  } satisfies Screen
})
