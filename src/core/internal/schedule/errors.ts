import { Schema } from "effect"

const listed = 10
const longestShown = 100

/** What a caller gave, as a message shows it: of what is not plain only the type, for it may throw when it is read. */
export const shown = (value: unknown): string => {
  if (typeof value === "string") return `"${value.slice(0, longestShown)}"`
  const isPlain = value === null || ["number", "boolean", "bigint", "undefined"].includes(typeof value)
  return isPlain ? String(value) : `of the type ${typeof value}`
}

/** No schedule of that id is declared. Not worth retrying. */
export class UnknownSchedule extends Schema.TaggedError<UnknownSchedule>()("UnknownSchedule", {
  workflowId: Schema.String,
  declared: Schema.Array(Schema.String)
}) {
  override get message(): string {
    const more = this.declared.length > listed ? `, and ${this.declared.length - listed} more` : ""
    const names = this.declared.slice(0, listed).map((name) => `"${name}"`)
    return (
      `no schedule "${this.workflowId}" is declared; declared are: ${names.join(", ") || "none"}${more}. ` +
      `Correct the id, or declare it and start again.`
    )
  }
}

/** What was asked for makes no sense. Not worth retrying. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  field: Schema.String,
  /** What is wrong, as the end of a sentence that begins with the field. */
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.field} ${this.problem}`
  }
}

const remedies = {
  NotConnected: "no schedules run in this process yet. Try again once they do",
  Ended: "the schedules of this process have ended. Ask the process that runs them now",
  JournalFailed: "the journal could not be written, and nothing has changed. Mend what the cause names and try again",
  JournalLost: "another process has taken the journal over. Ask that one, or end it and start this one anew",
  HostSilent: "the host did not answer about a run. Try again; what was written is taken up again by itself"
}

/** The schedules cannot be asked or changed at present. Worth retrying, unless `Ended` or `JournalLost`. */
export class SchedulesUnavailable extends Schema.TaggedError<SchedulesUnavailable>()("SchedulesUnavailable", {
  reason: Schema.Literals(["NotConnected", "Ended", "JournalFailed", "JournalLost", "HostSilent"]),
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    const cause = this.cause instanceof Error ? ` (${this.cause.message})` : ""
    return `${remedies[this.reason]}${cause}.`
  }
}
