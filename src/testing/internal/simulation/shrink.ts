/**
 * Makes a failing tape short: what can be left out without the run coming out well is left out.
 */
import { Effect } from "effect"
import type { Decision, Tape } from "./decisions.ts"

/** Decisions of one kind often do not matter at all: whose pre-emption it is, is no kind. */
const kindOf = ({ label }: Decision): string => label.replace(/\.\d+$/, "")

/**
 * Leaves out one kind of decision after the other, then parts of the tape, halves first and single decisions last (Zeller, "Simplifying and isolating failure-inducing
 * input", 2002), then makes what is left as small as it can be. Asks at most `runs` times whether a tape still fails.
 */
export const shrink = Effect.fnUntraced(function* <R>(
  tape: Tape,
  fails: (tape: Tape) => Effect.Effect<boolean, never, R>,
  runs: number
) {
  const shortest = { tape, runs }
  const attempt = (tape: Tape) =>
    Effect.suspend(() => {
      if (shortest.runs-- <= 0) return Effect.succeed(false)
      return Effect.tap(fails(tape), (still) => Effect.sync(() => void (still && (shortest.tape = tape))))
    })
  /** From the end: what comes after the decision that matters does not matter itself. */
  const leaveOut = Effect.fnUntraced(function* (size: number) {
    const before = shortest.tape.length
    for (let end = before; end > 0; end -= size) {
      const start = Math.max(0, end - size)
      yield* attempt([...shortest.tape.slice(0, start), ...shortest.tape.slice(end)])
    }
    return shortest.tape.length < before
  })
  for (const kind of new Set(tape.map(kindOf))) {
    yield* attempt(shortest.tape.filter((decision) => kindOf(decision) !== kind))
  }
  for (let size = shortest.tape.length; size > 1; size = Math.floor(size / 2)) yield* leaveOut(size)
  while ((yield* leaveOut(1)) && shortest.runs > 0) continue
  for (const [at, decision] of shortest.tape.entries()) {
    if (decision.value > 1) yield* attempt(shortest.tape.with(at, { ...decision, value: 1 }))
  }
  return shortest.tape
})
