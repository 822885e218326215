/**
 * What can go wrong with a run, and with a change to what a dispatcher knows.
 */
import { Schema } from "effect"

/** An option is out of its range: nothing was opened. */
export class InvalidOption extends Schema.TaggedError<InvalidOption>()("InvalidOption", {
  option: Schema.String,
  value: Schema.Unknown,
  allowed: Schema.String
}) {
  override get message(): string {
    return `the option ${this.option} is ${String(this.value)}; give ${this.allowed}.`
  }
}

/** The selection contradicts itself or the log. Nothing of it was taken up; worth retrying when it is mended. */
export class InvalidSelection extends Schema.TaggedError<InvalidSelection>()("InvalidSelection", {
  case: Schema.String,
  problem: Schema.Literals(["duplicate id", "rev went back", "invalid rev", "invalid id"]),
  detail: Schema.String
}) {
  override get message(): string {
    return `the selection is not valid at case "${this.case}" (${this.problem}): ${this.detail}`
  }
}

/** An apply failed: its requests are pending again. Worth retrying when the reason is mended. */
export class ApplyFailed extends Schema.TaggedError<ApplyFailed>()("ApplyFailed", {
  apply: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `apply ${this.apply} failed: ${this.reason}\nIts requests stay pending and the next run takes them again.`
  }
}

/** Too many cases failed in a row: something they share is broken. They are taken again at the next start. */
export class BreakerTripped extends Schema.TaggedError<BreakerTripped>()("BreakerTripped", {
  failures: Schema.Array(Schema.Struct({ case: Schema.String, reason: Schema.String }))
}) {
  override get message(): string {
    const list = this.failures.map((failure) => `${failure.case}: ${failure.reason.split("\n")[0]}`).join("; ")
    return (
      `${this.failures.length} cases failed in a row with no step going through between (${list}). ` +
      `Mend what they share and start again: failed cases are taken up with their steps kept.`
    )
  }
}

/** A stop ran out of its bound: something ignores interruption. The log stays held until it is gone, so that nothing runs twice. */
export class StopTimedOut extends Schema.TaggedError<StopTimedOut>()("StopTimedOut", {
  cases: Schema.Array(Schema.String),
  apply: Schema.NullOr(Schema.String),
  /** The storage did not answer. */
  storage: Schema.Boolean
}) {
  override get message(): string {
    const still = [
      ...this.cases.map((id) => `case ${id}`),
      ...(this.apply === null ? [] : [`apply ${this.apply}`]),
      ...(this.storage ? ["the storage"] : [])
    ].join(", ")
    return (
      `the run was ended, but this ignores interruption and goes on: ${still}. ` +
      `Its log stays held until that is gone; to free it at once, end the process.`
    )
  }
}

/** Nothing is known of the case. */
export class UnknownCase extends Schema.TaggedError<UnknownCase>()("UnknownCase", { case: Schema.String }) {
  override get message(): string {
    return `no case "${this.case}" is in the log or in the selection; ids are compared letter by letter.`
  }
}

/** The case is not in a state that allows the change. */
export class CaseNotChanged extends Schema.TaggedError<CaseNotChanged>()("CaseNotChanged", {
  case: Schema.String,
  change: Schema.Literals(["retry", "forget"]),
  state: Schema.String
}) {
  override get message(): string {
    return this.change === "retry"
      ? `case "${this.case}" is ${this.state}; only a difficult case can be given a new round (a failed one is taken again by itself).`
      : `case "${this.case}" is ${this.state}; stop the run or wait for it to leave its seat, then forget it.`
  }
}
