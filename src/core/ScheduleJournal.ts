/**
 * Workflows that run on a schedule, slot by slot: every slot is exactly one of ran, skipped with a reason, or pending,
 * through crashes, restarts, pauses, edits and clocks that are set.
 */
import { Context, Duration, Effect, Layer } from "effect"
import { connection as makeConnection, type Connection } from "./internal/schedule/connection.ts"
import { check, type Schedule, type ScheduleOptions, type When } from "./internal/schedule/declarations.ts"
import { makeInProcess } from "./internal/schedule/inProcess.ts"
import { InvalidRequest, SchedulesUnavailable, UnknownSchedule } from "./internal/schedule/errors.ts"
import { ScheduleEvent } from "./internal/schedule/events.ts"
import { make } from "./internal/schedule/service.ts"
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
export type { Connection, Firing, Outcome, Schedule, ScheduleJournalShape, ScheduleOptions, Submitted, When }

/** How a journal is kept. */
export interface Options {
  /** The name of its log. Default: `schedules`. */
  readonly log?: string | undefined
  /** How long the host may take for one answer. Default: 30 s. */
  readonly hostTimeout?: Duration.Input | undefined
  /** How many requests the host gets at a time. One it has not answered after a second counts no more. Default: 16. */
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

const checkOptions = Effect.fnUntraced(function* ({
  log = "schedules",
  hostTimeout = "30 seconds",
  concurrency = 16
}: Options) {
  if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
    return yield* new InvalidRequest({ field: "concurrency", problem: "has to be a whole number from 1 on" })
  }
  const timeout = Duration.fromInput(hostTimeout)
  if (timeout._tag === "None" || !Duration.isFinite(timeout.value) || Duration.toMillis(timeout.value) <= 0) {
    return yield* new InvalidRequest({ field: "hostTimeout", problem: "has to be a duration above zero, and finite" })
  }
  return { log, hostTimeout: timeout.value, concurrency }
})

const makeJournal = Effect.fnUntraced(function* (schedules: ReadonlyArray<Schedule>, options: Options) {
  const declared = yield* check(schedules)
  const settings = yield* checkOptions(options)
  return ScheduleJournal.of(yield* make(yield* Storage, yield* Workflows, declared, settings))
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
  Layer.effect(ScheduleJournal, makeJournal(schedules, options))

/** A schedule whose runs are effects of this process. */
export type EffectSchedule<R> = When &
  ScheduleOptions & {
    /** A run: succeeded when it succeeds, cancelled when it was interrupted (as when the layer ends), failed else. */
    readonly run: (firing: Firing) => Effect.Effect<unknown, unknown, R>
  }

/** What the runs of all schedules need together. */
export type RunRequirements<W> = {
  readonly [K in keyof W]: W[K] extends EffectSchedule<infer R> ? R : never
}[keyof W]

/**
 * Schedules whose runs are effects of this process, by workflow. Which run was started and how it ended is kept in a
 * log of its own (the journal's name and `/runs`), so that no run starts twice: one that a crash cut off is `lost`,
 * and the next slot runs again.
 */
export function layerEffects<const W extends { readonly [workflowId: string]: EffectSchedule<unknown> }>(
  workflows: W,
  options?: Options
): Layer.Layer<ScheduleJournal, InvalidRequest | OpenError | SchedulesUnavailable, Storage | RunRequirements<W>>
export function layerEffects<R>(
  workflows: { readonly [workflowId: string]: EffectSchedule<R> },
  options: Options = {}
): Layer.Layer<ScheduleJournal, InvalidRequest | OpenError | SchedulesUnavailable, Storage | R> {
  const schedules = Object.entries(workflows).map(([workflowId, schedule]): Schedule => ({ ...schedule, workflowId }))
  return Layer.effect(
    ScheduleJournal,
    Effect.gen(function* () {
      const { log } = yield* checkOptions(options)
      const inProcess = yield* makeInProcess(
        yield* Storage,
        `${log}/runs`,
        (firing) => {
          const run = workflows[firing.workflowId]?.run(firing)
          return Effect.isEffect(run) ? run : Effect.die(`the run of "${firing.workflowId}" is no effect`)
        },
        yield* Effect.context<R>()
      )
      return yield* makeJournal(schedules, options).pipe(Effect.provideService(Workflows, inProcess))
    })
  )
}
