/**
 * What a simulation can find, and what keeps it from finding anything.
 */
import { Schema } from "effect"

/** An assertion that comes back from a schema is a plain object, and some have no prototype to make a string of. */
const printed = (cause: unknown): string => {
  if (typeof cause === "string") return cause
  const hasMessage = typeof cause === "object" && cause !== null && "message" in cause
  return hasMessage && typeof cause.message === "string" ? cause.message : JSON.stringify(cause)
}

/** Nothing can run and nothing sleeps, but the program has not ended. */
export class Stuck extends Schema.TaggedError<Stuck>()("Stuck", {
  /** When, in milliseconds since the start. */
  millis: Schema.Finite,
  promises: Schema.Boolean
}) {
  override get message(): string {
    const outside = this.promises
      ? "or for something outside the simulation, such as a timer, a file or a socket"
      : "or for a promise: a simulation does not wait for those, unless they settle by themselves and it is given { promises: true }"
    return (
      `after ${this.millis} ms of its time the program has not ended, and nothing in it can go on: ` +
      `it waits for something that never comes, ${outside}.`
    )
  }
}

/** The program goes on and on. */
export class Endless extends Schema.TaggedError<Endless>()("Endless", {
  steps: Schema.Finite,
  millis: Schema.Finite
}) {
  override get message(): string {
    return (
      `the program has not ended after ${this.steps} turns of its fibers, in ${this.millis} ms of its time. ` +
      `Either something in it repeats without end, or it needs more: mostSteps sets the bound.`
    )
  }
}

/** The program ended, and fibers that it or one of its processes forked did not. */
export class LeftRunning extends Schema.TaggedError<LeftRunning>()("LeftRunning", {
  /** What they run, as far as it has a name. */
  fibers: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return (
      `the program ended and left ${this.fibers.length} of its fibers running (${this.fibers.join(", ")}): ` +
      `fork them in a scope, or interrupt them.`
    )
  }
}

/** A seed under which the program fails. */
export class Falsified extends Schema.TaggedError<Falsified>()("Falsified", {
  seed: Schema.Finite,
  /** The decisions that are enough for it, as `replay` takes them. */
  replay: Schema.String,
  /** How many decisions of the seed were not plain, and how many of them are left. */
  decisions: Schema.Struct({ made: Schema.Finite, left: Schema.Finite }),
  cause: Schema.Defect()
}) {
  override get message(): string {
    const { made, left } = this.decisions
    return (
      `seed ${this.seed} fails: ${printed(this.cause)}\n` +
      `Of its ${made} decisions ${left} are enough for that. To run them again, give check { replay: ${JSON.stringify(this.replay)} }.`
    )
  }
}

/** The same seed did not do the same again. */
export class NotRepeatable extends Schema.TaggedError<NotRepeatable>()("NotRepeatable", { seed: Schema.Finite }) {
  override get message(): string {
    return (
      `seed ${this.seed} does not do the same twice: take time from Clock and chance from Random, make everything the ` +
      `program works on inside it, and wait for nothing outside.`
    )
  }
}

/** The text names no run. */
export class InvalidReplay extends Schema.TaggedError<InvalidReplay>()("InvalidReplay", { replay: Schema.String }) {
  override get message(): string {
    return `"${this.replay}" cannot be replayed: give a seed, or what a failure printed, such as "17: order@57=2".`
  }
}

/** No seed came to this: what is checked there was never checked. */
export class NeverMarked extends Schema.TaggedError<NeverMarked>()("NeverMarked", {
  marks: Schema.Array(Schema.String),
  seeds: Schema.Finite
}) {
  override get message(): string {
    return (
      `${this.seeds} seeds never came to: ${this.marks.join(", ")}. ` +
      `Run more of them, or make the program come there more often.`
    )
  }
}
