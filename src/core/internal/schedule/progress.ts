/**
 * What the journal knows of one schedule, and the rules that every such state keeps.
 */
import { Effect, Schema } from "effect"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Slot = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
const Millis = Schema.Int

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** The shortest and the longest interval a schedule may have. */
const shortestSeconds = 60
const longestSeconds = 86_400

export const EverySeconds = Schema.Int.check(Schema.isBetween({ minimum: shortestSeconds, maximum: longestSeconds }))

/** The failed runs of a streak are kept by their ids, so a streak has an end. */
const longestStreak = 100

export const FailuresInARow = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: longestStreak }))

/** A five-field cron expression, read in a time zone of the IANA database. */
export const CronCadence = Schema.Struct({ expression: Schema.String, zone: Schema.String })

/** Why a slot was not run. */
export const SkipReason = Schema.Literals(["missed", "overlap", "refused", "paused", "stopped", "removed"])
export type SkipReason = typeof SkipReason.Type

/** How a run ended. `lost`: the host had taken it and does not know it any more, as after a crash. */
export const RunEnding = Schema.Literals(["succeeded", "failed", "cancelled", "lost"])
export type RunEnding = typeof RunEnding.Type

/** A run about to be handed to the host; one without a slot was asked for by a person. */
export const PendingRun = Schema.TaggedStruct("Run", {
  slot: Schema.NullOr(Slot),
  runId: Schema.String,
  /** When it was due, in epoch milliseconds. */
  dueAt: Millis,
  input: Schema.Json
})
export type PendingRun = typeof PendingRun.Type

/** Slots about to be recorded as skipped, both ends included. */
export const PendingSkip = Schema.TaggedStruct("Skip", { first: Slot, last: Slot, reason: SkipReason })
export type PendingSkip = typeof PendingSkip.Type

const Pending = Schema.Union([PendingRun, PendingSkip])
export type Pending = typeof Pending.Type

/** What became of a slot, or of a row of slots skipped for one reason. */
export const SlotRecord = Schema.Union([
  Schema.TaggedStruct("Ran", {
    slot: Slot,
    runId: Schema.String,
    /** When the host took it, in epoch milliseconds. */
    at: Millis,
    ending: Schema.Union([Schema.Literal("running"), RunEnding])
  }),
  Schema.TaggedStruct("Skipped", {
    first: Slot,
    last: Slot,
    at: Millis,
    reason: SkipReason,
    /** What the host gave as its reason, when it refused. */
    detail: Schema.optionalKey(Schema.String)
  })
])
export type SlotRecord = typeof SlotRecord.Type

/** A stop by failures, kept when the schedule is resumed. */
const Stop = Schema.Struct({ at: Millis, slot: Slot, runIds: Schema.Array(Schema.String) })
export type Stop = typeof Stop.Type

/** Skipped slots by reason. */
export const Skipped = Schema.Struct({
  missed: Count,
  overlap: Count,
  refused: Count,
  paused: Count,
  stopped: Count,
  removed: Count
})
export type Skipped = typeof Skipped.Type

export const noneSkipped: Skipped = { missed: 0, overlap: 0, refused: 0, paused: 0, stopped: 0, removed: 0 }

const none = Effect.sync(() => [])

const Fields = Schema.Struct({
  workflowId: Schema.NonEmptyString,
  /** Exactly one of `everySeconds` and `cron` is there. */
  everySeconds: Schema.optionalKey(EverySeconds),
  cron: Schema.optionalKey(CronCadence),
  /** Counts the grids the slots were on: declaring, resuming, editing and a clock set far back each begin one. */
  generation: Slot,
  /** When slot `lastSlot + 1` is due on the present grid, in epoch milliseconds. Says nothing unless active. */
  nextAt: Millis,
  /** The newest slot taken up: run, skipped or pending. */
  lastSlot: Count,
  state: Schema.Literals(["active", "paused", "stopped"]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("active" as const))
  ),
  /** Whether the host still declares it. */
  declared: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  ran: Count,
  skipped: Skipped,
  /** How many failed runs in a row stop it. */
  failuresInARow: FailuresInARow,
  failuresInRow: Count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  failedRunIds: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(none)),
  stoppedAt: Schema.optionalKey(Millis),
  /** The slot of the failed run that stopped it. */
  stoppedSlot: Schema.optionalKey(Slot),
  /** The newest stops, oldest first. */
  stops: Schema.Array(Stop).pipe(Schema.withDecodingDefaultKey(none)),
  /** What a person said when pausing or resuming it last. */
  note: Schema.optionalKey(Schema.String),
  pending: Schema.optionalKey(Pending),
  activeRunId: Schema.optionalKey(Schema.String),
  /** The slot of the active run; absent for one asked for by a person. */
  activeSlot: Schema.optionalKey(Slot),
  /** When the host took the active run, in epoch milliseconds. */
  activeSince: Schema.optionalKey(Millis),
  /** How many runs were asked for by a person. */
  manualRuns: Count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** The newest slots, oldest first, without a gap. */
  recent: Schema.Array(SlotRecord).pipe(Schema.withDecodingDefaultKey(none))
})
export type ScheduleProgress = typeof Fields.Type

// -----------------------------------------------------------------------------
// reading it
// -----------------------------------------------------------------------------

/**
 * The id of a slot's run. The part after the last `@` holds neither an `@` nor anything of the host's, so that two
 * workflows never share a run id whatever they are called.
 */
export const runIdOf = (workflowId: string, generation: number, slot: number) => `${workflowId}@${generation}.${slot}`

/** The id of the n-th run asked for by a person. */
export const manualRunIdOf = (workflowId: string, count: number) => `${workflowId}@manual.${count}`

export const firstOf = (record: SlotRecord | PendingSkip) => (record._tag === "Ran" ? record.slot : record.first)
export const lastOf = (record: SlotRecord | PendingSkip) => (record._tag === "Ran" ? record.slot : record.last)

const totalSkipped = (skipped: Skipped) => Object.values(skipped).reduce((sum, count) => sum + count, 0)

/** How many slots the pending entry stands for. */
const pendingSlots = ({ pending }: ScheduleProgress) => {
  if (pending === undefined) return 0
  if (pending._tag === "Skip") return pending.last - pending.first + 1
  return pending.slot === null ? 0 : 1
}

// -----------------------------------------------------------------------------
// rules
// -----------------------------------------------------------------------------

interface Rule {
  readonly rule: string
  readonly holds: (progress: ScheduleProgress) => boolean
}

const allDistinct = (ids: ReadonlyArray<string>) => new Set(ids).size === ids.length
const isPresent = (value: string | undefined): value is string => value !== undefined
const isSlot = ({ pending }: ScheduleProgress) => pending?._tag === "Skip" || typeof pending?.slot === "number"

const runIds = (progress: ScheduleProgress) => [
  ...progress.stops.flatMap((stop) => stop.runIds),
  // the streak that made the last stop is a part of it already
  ...(progress.stoppedAt === undefined ? progress.failedRunIds : []),
  ...[progress.activeRunId, progress.pending?._tag === "Run" ? progress.pending.runId : undefined].filter(isPresent)
]

/** What is true of every schedule at every entry of the journal. */
const rules: ReadonlyArray<Rule> = [
  {
    rule: "it has either an interval or a cron expression",
    holds: (p) => (p.everySeconds === undefined) !== (p.cron === undefined)
  },
  {
    rule: "its slots are what ran, what was skipped and what is pending",
    holds: (p) => p.ran + totalSkipped(p.skipped) + pendingSlots(p) === p.lastSlot
  },
  { rule: "its streak is as long as its failed runs", holds: (p) => p.failuresInRow === p.failedRunIds.length },
  { rule: "no run id is there twice", holds: (p) => allDistinct(runIds(p)) },
  {
    rule: "a stop has its time and its slot",
    holds: (p) => (p.stoppedAt === undefined) === (p.stoppedSlot === undefined)
  },
  { rule: "a stopped one says when it stopped", holds: (p) => p.state !== "stopped" || p.stoppedAt !== undefined },
  { rule: "an active one is not stopped", holds: (p) => p.state !== "active" || p.stoppedAt === undefined },
  {
    rule: "a streak long enough has stopped it",
    holds: (p) => p.stoppedAt !== undefined || p.failuresInRow < p.failuresInARow
  },
  {
    rule: "a stop is the newest of its history, with the runs of the streak",
    holds: (p) => {
      const last = p.stops.at(-1)
      return (
        p.stoppedAt === undefined ||
        (last?.at === p.stoppedAt &&
          last.slot === p.stoppedSlot &&
          last.runIds.join("\n") === p.failedRunIds.join("\n"))
      )
    }
  },
  {
    rule: "stops are in the order of their slots, each with the runs that failed",
    holds: (p) => p.stops.every((stop, i) => stop.runIds.length > 0 && stop.slot > (p.stops[i - 1]?.slot ?? 0))
  },
  { rule: "no stop is ahead of the last slot", holds: (p) => (p.stops.at(-1)?.slot ?? 0) <= p.lastSlot },
  { rule: "a pending slot is on an active schedule", holds: (p) => !isSlot(p) || p.state === "active" },
  {
    rule: "a pending slot is the last one",
    holds: ({ pending, lastSlot }) => {
      if (pending === undefined) return true
      if (pending._tag === "Skip") return pending.first <= pending.last && pending.last === lastSlot
      return pending.slot === null || pending.slot === lastSlot
    }
  },
  {
    rule: "a pending run has the id of its slot",
    holds: ({ pending, workflowId, generation, manualRuns }) =>
      pending?._tag !== "Run" ||
      pending.runId ===
        (pending.slot === null ? manualRunIdOf(workflowId, manualRuns) : runIdOf(workflowId, generation, pending.slot))
  },
  {
    rule: "no run is pending beside an active one",
    holds: (p) => p.pending?._tag !== "Run" || p.activeRunId === undefined
  },
  {
    rule: "an active run says since when it runs, and nothing else does",
    holds: (p) => (p.activeRunId === undefined) === (p.activeSince === undefined)
  },
  {
    rule: "the slot of an active run is one of its slots",
    holds: (p) => p.activeSlot === undefined || (p.activeRunId !== undefined && p.activeSlot <= p.lastSlot)
  },
  {
    rule: "the newest slots are in order, without a gap, up to what is pending",
    holds: (p) =>
      p.recent.every((record, i) => {
        const next = p.recent[i + 1]
        return (
          firstOf(record) <= lastOf(record) &&
          lastOf(record) + 1 === (next === undefined ? p.lastSlot - pendingSlots(p) + 1 : firstOf(next))
        )
      })
  },
  {
    rule: "a slot runs only while its run is active",
    holds: (p) =>
      p.recent.every((record) => record._tag !== "Ran" || record.ending !== "running" || record.runId === p.activeRunId)
  }
]

/** The rules a state breaks, as the end of a sentence; `undefined` when it breaks none. */
export const brokenRules = (progress: ScheduleProgress): string | undefined => {
  const broken = rules.filter(({ holds }) => !holds(progress)).map(({ rule }) => rule)
  return broken.length === 0 ? undefined : broken.join(", and that ")
}

/**
 * What is known of one schedule. Every combination that cannot be is refused, in both directions: a state that breaks
 * a rule is neither read nor written. An entry without state, streak and ids is active, 0 and [].
 */
export const ScheduleProgress = Fields.check(
  Schema.makeFilter((progress: ScheduleProgress) => {
    const broken = brokenRules(progress)
    return broken === undefined ? undefined : `the schedule breaks the rule that ${broken}`
  })
)
