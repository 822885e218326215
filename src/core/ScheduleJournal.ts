/**
 * Workflows that run on a schedule, slot by slot: every slot is exactly one of ran, skipped with a reason, or pending,
 * through crashes, restarts, pauses, edits and clocks that are set.
 */
import { Context, Duration, Effect, Layer, Result } from "effect"
import { connection as makeConnection, type Connection } from "./internal/schedule/connection.ts"
import { check, isObject, type Schedule, type ScheduleOptions, type When } from "./internal/schedule/declarations.ts"
import { type EffectFiring, makeInProcess, type Workflow } from "./internal/schedule/inProcess.ts"
import { InvalidRequest, SchedulesUnavailable, shown, UnknownSchedule } from "./internal/schedule/errors.ts"
import { ScheduleEvent } from "./internal/schedule/events.ts"
import { make, type Settings } from "./internal/schedule/service.ts"
import type { ScheduleJournalShape } from "./internal/schedule/shape.ts"
import { ScheduleProgress } from "./internal/schedule/progress.ts"
import { type Firing, type Outcome, type Submitted, Workflows } from "./internal/schedule/workflows.ts"
import { type OpenError, Storage } from "./Storage.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

export { ScheduleEvent, ScheduleProgress }
export type { Calendar, Interval } from "./internal/schedule/declarations.ts"
export type { EventsMissed, LiveEvent, Notice } from "./internal/schedule/notices.ts"
export type { Explanation, Summary } from "./internal/schedule/view.ts"
export type {
  Connection,
  EffectFiring,
  Firing,
  Outcome,
  Schedule,
  ScheduleJournalShape,
  ScheduleOptions,
  Submitted,
  When
}

/** How a journal is kept. */
export interface Options {
  /** The name of its log. Default: `schedules`. */
  readonly log?: string | undefined
  /** How long the host may take for one answer. Default: 30 s. */
  readonly hostTimeout?: Duration.Input | undefined
  /** How many schedules are looked at at a time. One that waits for the host for over a second counts no more. At most 1000. Default: 16. */
  readonly concurrency?: number | undefined
}

// -----------------------------------------------------------------------------
// errors
// -----------------------------------------------------------------------------

export { InvalidRequest, SchedulesUnavailable, UnknownSchedule }

// -----------------------------------------------------------------------------
// service and port
// -----------------------------------------------------------------------------

/** Runs workflows on their schedules and answers for every slot. */
export class ScheduleJournal extends Context.Service<ScheduleJournal, ScheduleJournalShape>()(
  "shiftboss/core/ScheduleJournal"
) {}

export { Workflows }

// -----------------------------------------------------------------------------
// constructors
// -----------------------------------------------------------------------------

/**
 * A journal that callers can hold before the one that runs is there: each request fails with SchedulesUnavailable
 * until it is connected, and again after it has ended.
 */
export const connection: Effect.Effect<Connection> = makeConnection

// -----------------------------------------------------------------------------
// layers
// -----------------------------------------------------------------------------

/** Checks what a caller gave. What throws when it is read makes no sense either. */
const checked = <A>(field: string, check: () => Result.Result<A, InvalidRequest>) =>
  Effect.flatMap(
    Effect.try({
      try: check,
      catch: (cause) =>
        new InvalidRequest({
          field,
          problem: `cannot be read: ${cause instanceof Error ? cause.message : shown(cause)}`
        })
    }),
    Effect.fromResult
  )

/** Each is a fiber of the loop, and kept for as long as it runs. */
const mostConcurrency = 1000

const checkOptions = (options: Options): Result.Result<Settings, InvalidRequest> => {
  const invalid = (field: string, problem: string) => Result.fail(new InvalidRequest({ field, problem }))
  if (!isObject(options)) return invalid("options", `is ${shown(options)}; it has to be an object`)
  const { log = "schedules", hostTimeout = "30 seconds", concurrency = 16 } = options
  if (typeof log !== "string") return invalid("log", `is ${shown(log)}; it has to be a string`)
  if (!Number.isSafeInteger(concurrency) || concurrency < 1 || concurrency > mostConcurrency) {
    return invalid("concurrency", `has to be a whole number from 1 to ${mostConcurrency}`)
  }
  const timeout = Duration.fromInput(hostTimeout)
  if (timeout._tag === "None" || !Duration.isFinite(timeout.value) || !(Duration.toMillis(timeout.value) > 0)) {
    return invalid("hostTimeout", "has to be a duration above zero, and finite")
  }
  return Result.succeed({ log, hostTimeout: timeout.value, concurrency })
}

const checkAll = Effect.fnUntraced(function* (schedules: ReadonlyArray<Schedule>, options: Options) {
  const declared = yield* checked("schedules", () => check(schedules))
  return { declared, settings: yield* checked("options", () => checkOptions(options)) }
})

/**
 * Schedules whose runs the host keeps (`Workflows`). Building it opens the journal, for as long as the layer lives, and
 * declares the schedules: one that is new or whose interval has changed begins a grid, one that is no longer there
 * rests. Nothing fires before `run` or `tick`.
 *
 * Fails when a declaration makes no sense, when another process holds the journal, and when it is damaged or newer.
 */
export const layer = (
  schedules: ReadonlyArray<Schedule>,
  options: Options = {}
): Layer.Layer<ScheduleJournal, InvalidRequest | OpenError | SchedulesUnavailable, Storage | Workflows> =>
  Layer.effect(
    ScheduleJournal,
    Effect.gen(function* () {
      const { declared, settings } = yield* checkAll(schedules, options)
      return yield* make(yield* Storage, yield* Workflows, declared, settings)
    })
  )

/** A schedule whose runs are effects of this process. */
export type EffectSchedule<R> = When &
  ScheduleOptions & {
    /** A run: succeeded when it succeeds, cancelled when it was interrupted (as when the layer ends), failed else. */
    readonly run: (firing: EffectFiring) => Effect.Effect<unknown, unknown, R>
    /**
     * Whether `run` goes on from where it was when it is called again with the same run id, as a turn of `RetryPolicy`
     * with that id does. One that the end of its process cut off is then called again by the next process, with `again`,
     * until three processes have crashed under it. Default: false; such a run is cancelled, or lost after a crash.
     */
    readonly resumable?: boolean | undefined
  }

/** What the runs of all schedules need together. */
export type RunRequirements<W> = {
  readonly [K in keyof W]: W[K] extends EffectSchedule<infer R> ? R : never
}[keyof W]

const checkEffects = <R>(workflows: { readonly [workflowId: string]: EffectSchedule<R> }) => {
  const invalid = (field: string, problem: string) => Result.fail(new InvalidRequest({ field, problem }))
  const schedules: Array<Schedule> = []
  const runs = new Map<string, Workflow<R>>()
  if (!isObject(workflows)) return invalid("workflows", "has to be an object with a declaration for each workflow")
  for (const [workflowId, schedule] of Object.entries(workflows)) {
    const field = `schedule "${workflowId}"`
    if (!isObject(schedule)) return invalid(field, "has to be a declaration")
    const { run, resumable = false } = schedule
    if (typeof run !== "function") return invalid(`${field}.run`, `is ${shown(run)}; it has to be a function`)
    if (typeof resumable !== "boolean") return invalid(`${field}.resumable`, "has to be true or false")
    schedules.push({ ...schedule, workflowId })
    runs.set(workflowId, { run: (firing) => schedule.run(firing), resumable })
  }
  return Result.succeed({ schedules, runs })
}

/**
 * Schedules whose runs are effects of this process, by workflow. Which run was started and how it ended is kept in a
 * log of its own (the journal's name and `/runs`), so that none is started twice, unless it is `resumable`: one that a
 * crash cut off is `lost`, and the next slot runs again.
 */
export function layerEffects<const W extends { readonly [workflowId: string]: EffectSchedule<unknown> }>(
  workflows: W,
  options?: Options
): Layer.Layer<ScheduleJournal, InvalidRequest | OpenError | SchedulesUnavailable, Storage | RunRequirements<W>>
export function layerEffects<R>(
  workflows: { readonly [workflowId: string]: EffectSchedule<R> },
  options: Options = {}
): Layer.Layer<ScheduleJournal, InvalidRequest | OpenError | SchedulesUnavailable, Storage | R> {
  return Layer.effect(
    ScheduleJournal,
    Effect.gen(function* () {
      const { schedules, runs } = yield* checked("workflows", () => checkEffects(workflows))
      const { declared, settings } = yield* checkAll(schedules, options)
      const storage = yield* Storage
      const inProcess = yield* makeInProcess(storage, `${settings.log}/runs`, runs, yield* Effect.context<R>())
      return yield* make(storage, inProcess, declared, settings)
    })
  )
}
