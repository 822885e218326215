/**
 * The unit of work: what a host hands in, and what it says about how it went.
 */
import { Schema } from "effect"

/** A unit of work. A host's own type only has to have these two fields. */
export interface Case {
  /** Stable, and unique in a selection. */
  readonly id: string
  /** A whole number of at least 1, the default. A higher one means that the case changed: what was done for the lower is dropped. */
  readonly rev?: number | undefined
}

/** The case needs nothing more. `value` is kept in memory and in the summary: leave it out when it is stored elsewhere. */
export interface Completed<out A = void> {
  readonly _tag: "Completed"
  readonly value: A
}

/** The case cannot be done by working on it alone: a person has to look at it. */
export interface Difficult {
  readonly _tag: "Difficult"
  readonly reason: string
}

/** How a case ended. A `train` that fails instead ends it as failed: it is taken again at the next start. */
export type CaseResult<A = void> = Completed<A> | Difficult

export const completed: {
  (): Completed<void>
  <A extends Schema.Json>(value: A): Completed<A>
} = (value?: Schema.Json): Completed<never> => ({ _tag: "Completed", value: value as never })

export const difficult = (reason: string): Difficult => ({ _tag: "Difficult", reason })

/**
 * What every case stands on is gone (the machine, the account, the network): ends the whole run at the first sign,
 * and no case is charged for it. Worth retrying when it is back.
 */
export class SystemDown extends Schema.TaggedError<SystemDown>()("SystemDown", { reason: Schema.String }) {
  override get message(): string {
    return `the run ended because what every case stands on is down: ${this.reason}. Start it again when that is mended.`
  }
}
