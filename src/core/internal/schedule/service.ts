/**
 * The running journal: who is looked at when, and what people ask of it.
 */
import { Clock, type Duration, Effect, Exit, Latch } from "effect"
import type { Storage } from "../../Storage.ts"
import { Agenda } from "./agenda.ts"
import { makeControl } from "./control.ts"
import * as Decide from "./decide.ts"
import { SchedulesUnavailable } from "./errors.ts"
import * as Host from "./host.ts"
import * as Journal from "./journal.ts"
import * as KeyedLock from "./keyedLock.ts"
import * as Lanes from "./lanes.ts"
import { look, type Parts } from "./look.ts"
import * as Notices from "./notices.ts"
import { now as clockNow } from "./now.ts"
import type { ScheduleProgress } from "./progress.ts"
import * as Slots from "./slots.ts"
import type { Workflows } from "./workflows.ts"

/** The clocks are compared at least this often: a timer knows nothing of a clock that was set or a machine asleep. */
const longestSleepMillis = 30_000
/** A wall clock that is slewed moves less than this between two looks. */
const stepMillis = 1000
/** How soon a schedule that could not be brought forward is looked at again. */
const retryMillis = 5000

export interface Settings {
  readonly log: string
  readonly hostTimeout: Duration.Duration
  readonly concurrency: number
}

/** The run is asked after when it is 1 s old, 2 s, 4 s … and at last every 30 s; so, too, when the clock was set back. */
const askAgainAt = (since: number, now: number) =>
  now + Math.min(Math.max(Math.abs(now - since), 1000), longestSleepMillis)

const nextLookAt = (progress: ScheduleProgress | undefined, now: number): number => {
  if (progress === undefined) return Infinity
  const slotAt = progress.state === "active" && progress.declared ? progress.nextAt : Infinity
  const { pending, activeSince } = progress
  // A pending slot comes before any other.
  if (pending !== undefined) return askAgainAt(pending._tag === "Run" ? pending.dueAt : now, now)
  return activeSince === undefined ? slotAt : Math.min(slotAt, askAgainAt(activeSince, now))
}

/** Whether the journal still takes requests, and how many it is at. */
const makeOperations = () => {
  const idle = Latch.makeUnsafe(true)
  let running = 0
  let isEnded = false
  const ended = Effect.suspend(() => Effect.fail(new SchedulesUnavailable({ reason: "Ended" })))
  const begin = Effect.suspend((): Effect.Effect<void, SchedulesUnavailable> => {
    if (isEnded) return ended
    running++
    idle.closeUnsafe()
    return Effect.void
  })
  return {
    whileOpen: <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SchedulesUnavailable, R> =>
      Effect.suspend((): Effect.Effect<A, E | SchedulesUnavailable, R> => (isEnded ? ended : effect)),
    operation: <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SchedulesUnavailable, R> =>
      // An interruption between two steps must not leave one counted that is over: drain would wait for it.
      Effect.acquireUseRelease(
        begin,
        () => effect,
        () => Effect.sync(() => --running === 0 && idle.openUnsafe())
      ),
    /** Takes no more. */
    end: Effect.sync(() => {
      isEnded = true
    }),
    idle: idle.await
  }
}

/** Tells when the wall clock moved against the time that passed. */
const makeClockWatch = Effect.fnUntraced(function* (stepped: (byMillis: number, now: number) => Effect.Effect<void>) {
  const readings = Effect.all([clockNow, Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))])
  let [lastWall, lastPassed] = yield* readings
  return Effect.gen(function* () {
    const [wall, passed] = yield* readings
    const byMillis = wall - lastWall - (passed - lastPassed)
    lastWall = wall
    lastPassed = passed
    if (Math.abs(byMillis) >= stepMillis) yield* stepped(byMillis, wall)
    return wall
  })
})

/**
 * Hands out looks at what is due. One that has not come to its end when the scope closes is due again, for the next who
 * asks: it was taken from the agenda, and would never come up otherwise.
 */
const makeDue = <A>(
  agenda: Agenda,
  schedule: (workflowId: string, at: number) => void,
  lookAt: (workflowId: string) => Effect.Effect<A>,
  isSilent: (workflowId: string) => boolean
) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Set<string>()),
      (left) => Effect.map(clockNow, (now) => left.forEach((workflowId) => schedule(workflowId, now)))
    ),
    (left) => (now: number) =>
      agenda.take(now).map((workflowId): Lanes.Look<A> => {
        left.add(workflowId)
        const effect = Effect.tap(lookAt(workflowId), () => Effect.sync(() => left.delete(workflowId)))
        return { isSilent: isSilent(workflowId), effect }
      })
  )

/** Looks at schedules when their time has come, and lets requests in between. */
const makeLooks = Effect.fnUntraced(function* (
  parts: Parts,
  operation: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SchedulesUnavailable, R>
) {
  const { journal, notices } = parts
  const locked = KeyedLock.make()
  const agenda = new Agenda()
  const changed = Latch.makeUnsafe(false)

  const schedule = (workflowId: string, at: number) => {
    agenda.set(workflowId, at)
    changed.openUnsafe()
  }
  /** One that was made again and again would otherwise put the look off for ever. */
  const scheduleNoLater = (workflowId: string, at: number) => {
    if (at < agenda.at(workflowId)) schedule(workflowId, at)
  }
  const nextOf = (workflowId: string, now: number) => nextLookAt(journal.schedules().get(workflowId), now)

  const watchClock = yield* makeClockWatch(
    Effect.fnUntraced(function* (byMillis, now) {
      yield* notices.publish({ _tag: "ClockStepped", at: now, byMillis })
      if (byMillis > 0) return
      // Slots that were near may be far away now, and only a look moves them.
      for (const workflowId of journal.schedules().keys()) agenda.set(workflowId, now)
    })
  )

  /** Never fails: what goes wrong with one schedule is told, and tried again, while the others go on. */
  const lookAt = (workflowId: string): Effect.Effect<SchedulesUnavailable | undefined> =>
    locked(workflowId)(Effect.andThen(journal.refresh, look(parts, workflowId))).pipe(
      // A slot that is still due waits for the host.
      Effect.ensuring(
        Effect.map(clockNow, (now) => schedule(workflowId, Math.max(nextOf(workflowId, now), now + 1000)))
      ),
      Effect.as(undefined),
      operation,
      Effect.catchCause(
        Effect.fnUntraced(function* (cause) {
          const now = yield* clockNow
          yield* notices.publish({ _tag: "LookFailed", at: now, workflowId, cause })
          schedule(workflowId, now + retryMillis)
          const error = cause.reasons.find((reason) => reason._tag === "Fail")?.error
          return error ?? new SchedulesUnavailable({ reason: "JournalFailed", cause })
        })
      )
    )

  return {
    agenda,
    changed,
    schedule,
    watchClock,
    makeDue: makeDue(agenda, schedule, lookAt, parts.host.isSilent),
    /** Runs a request about a schedule alone, and looks at it again when that is due. */
    change: <A, E>(workflowId: string, request: Effect.Effect<A, E>) =>
      locked(workflowId)(Effect.andThen(journal.refresh, request)).pipe(
        Effect.onExit((exit) =>
          Effect.map(clockNow, (now) => {
            // What was written may be more than memory knows: a schedule that rests there may be active in the journal.
            const isKnown = journal.schedules().has(workflowId)
            const latest = isKnown && Exit.isFailure(exit) ? now + retryMillis : Infinity
            scheduleNoLater(workflowId, Math.max(Math.min(nextOf(workflowId, now), latest), now))
          })
        ),
        operation
      )
  }
})

/** Follows the declarations, and says when each schedule is to be looked at first. */
const declareAll = Effect.fnUntraced(function* (
  { journal, declared }: Parts,
  schedule: (workflowId: string, at: number) => void
) {
  const now = yield* clockNow
  yield* journal.commit((schedules) =>
    [...new Set([...schedules.keys(), ...declared.keys()])].flatMap((workflowId) =>
      Decide.declare(schedules.get(workflowId), declared.get(workflowId), now)
    )
  )
  for (const [workflowId, progress] of journal.schedules()) {
    const isUnsettled = progress.pending !== undefined || progress.activeRunId !== undefined
    // The clock may have been set back while nobody looked.
    const isFar = progress.state === "active" && Slots.nearer(progress, progress.nextAt, now) !== undefined
    schedule(workflowId, isUnsettled || isFar ? now : nextLookAt(progress, now))
  }
})

export const make = Effect.fnUntraced(function* (
  storage: Storage["Service"],
  workflows: Workflows["Service"],
  declared: ReadonlyMap<string, Decide.Declaration>,
  { log, hostTimeout, concurrency }: Settings
) {
  const notices = yield* Notices.make
  const journal = yield* Journal.make(storage, log, notices)
  const host = Host.make(workflows, notices, hostTimeout)
  const parts: Parts = { journal, host, declared, notices }
  const { operation, whileOpen, end, idle } = makeOperations()
  const { agenda, changed, schedule, watchClock, makeDue, change } = yield* makeLooks(parts, operation)
  yield* declareAll(parts, schedule)
  const drain = Effect.all([end, changed.open, idle], { discard: true })
  // What is under way is bounded by the timeouts of the host; a storage that does not answer is not waited for.
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.interruptible(Effect.timeout(drain, hostTimeout))))

  const tick = Effect.gen(function* () {
    yield* journal.refresh
    const due = yield* makeDue
    const failures = yield* Lanes.takeAll(due(yield* watchClock), concurrency)
    const failure = failures.find((error) => error !== undefined)
    if (failure !== undefined) return yield* failure
  }).pipe(Effect.scoped, operation)

  /** A storage that fails may work again; a journal that another process has taken is not ours any more. */
  const unlessLost = Effect.catchIf(
    journal.refresh,
    (error) => error.reason !== "JournalLost",
    () => Effect.void
  )

  /** Looks run beside the loop, so that a host that hangs on one schedule makes no other one late. */
  const run = Effect.gen(function* () {
    const due = yield* makeDue
    const lanes = yield* Lanes.make<SchedulesUnavailable | undefined>(concurrency)
    while (true) {
      changed.closeUnsafe()
      yield* unlessLost
      const now = yield* whileOpen(watchClock)
      for (const look of due(now)) yield* lanes.add(look)
      const wait = Math.min(Math.max(agenda.earliest - now, 0), longestSleepMillis)
      yield* Effect.raceFirst(Effect.sleep(wait), changed.await)
    }
  }).pipe(Effect.scoped)

  const read = <A, E>(effect: Effect.Effect<A, E>) => whileOpen(Effect.andThen(journal.refresh, effect))
  return { run, tick, drain, events: notices.stream, ...makeControl(parts, { change, read }) }
})
