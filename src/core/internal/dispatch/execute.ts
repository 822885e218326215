/**
 * One run, from opening the log to releasing it.
 */
import { Cause, Clock, Deferred, Duration, Effect, Exit, Fiber, Latch, PubSub, Scope, Semaphore } from "effect"
import type { Summary } from "../../Dispatcher.ts"
import { StopTimedOut } from "../../DispatcherError.ts"
import type { DispatcherEvent, RunEnd } from "../../DispatcherEvent.ts"
import type { Log, Storage } from "../../Storage.ts"
import { beginApply } from "./apply.ts"
import { clearRequests, requested, StopSignal } from "./control.ts"
import { type Action, makeLive, next, note } from "./decide.ts"
import * as gate from "./gate.ts"
import * as Inbox from "./inbox.ts"
import * as journal from "./journal.ts"
import { openWithState } from "./log.ts"
import { occupy } from "./occupy.ts"
import type { Checked } from "./options.ts"
import { recheck, recover } from "./recheck.ts"
import * as metrics from "./metrics.ts"
import { beginEnding, type ClosedWorkload, interruptAll, type Run } from "./run.ts"
import { beginSelect } from "./select.ts"
import type { Board, Session } from "./session.ts"
import type { State } from "./state.ts"
import { train } from "./train.ts"
import { summarize } from "./view.ts"

/** Timers are never longer, so that a machine that slept or a clock that was set is noticed. */
const longestSleep = Duration.seconds(30)

/** Where a run keeps its log and tells what happens. */
export interface Place {
  readonly storage: Storage["Service"]
  readonly log: string
  readonly board: Board
}

/** Runs the workload. What outlives its bounds keeps the log, so that nothing runs twice. */
export const execute = (place: Place, session: Session, workload: ClosedWorkload, options: Checked) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const scope = Scope.makeUnsafe()
      const stopSignal = yield* StopSignal
      const opening = yield* Effect.forkDetach(
        Effect.interruptible(
          Effect.andThen(
            place.storage.shared ? clearRequests(place.storage, place.log) : Effect.void,
            openWithState(place.storage, place.log)
          )
        ).pipe(Effect.provideService(Scope.Scope, scope)),
        { startImmediately: true }
      )
      const asked = Effect.raceFirst(Deferred.await(session.stopAsked), stopSignal)
      const opened = yield* Effect.exit(restore(Effect.raceFirst(Fiber.join(opening), Effect.as(asked, undefined))))
      if (Exit.isFailure(opened) || opened.value === undefined) {
        // Opening a log may hang: it is given up, and what it gets after all is released.
        yield* within(options.grace, Effect.andThen(Fiber.interrupt(opening), Scope.close(scope, Exit.void)))
        return Exit.isFailure(opened) ? yield* Effect.failCause(opened.cause) : yield* stoppedBeforeStart
      }
      const run = yield* makeRun(place.board, workload, options, opened.value)
      session.run = run
      for (const worker of [run.journal.writer, run.supervisor.worker]) {
        yield* Effect.forkIn(worker, scope, { startImmediately: true })
      }
      const watchers = yield* Effect.forEach(
        [
          enforceBounds(run),
          Effect.andThen(
            place.storage.shared ? Effect.raceFirst(asked, requested(place.storage, place.log)) : asked,
            Effect.sync(() => beginEnding(run, { _tag: "Stopped" }))
          )
        ],
        (watcher) => Effect.forkDetach(Effect.interruptible(watcher), { startImmediately: true })
      )
      const worked = yield* Effect.exit(restore(work(run)))
      if (Exit.isFailure(worked)) yield* abandon(run)
      for (const watcher of watchers) watcher.interruptUnsafe()
      const left = yield* release(run, scope)
      if (Exit.isFailure(worked)) {
        if (left !== undefined) yield* Effect.logWarning(left.message)
        return yield* Effect.failCause(worked.cause)
      }
      return yield* outcome(run, left)
    })
  )

const stoppedBeforeStart: Effect.Effect<Summary<never>> = Effect.succeed({
  end: { _tag: "Stopped" },
  completed: [],
  difficult: [],
  failed: [],
  waiting: [],
  applies: [],
  rechecks: []
})

const makeRun = Effect.fnUntraced(function* (
  board: Board,
  workload: ClosedWorkload,
  options: Checked,
  { log, state }: { readonly log: Log<DispatcherEvent>; readonly state: State }
) {
  const startedAt = yield* Clock.currentTimeMillis
  const context = yield* Effect.context<never>()
  const { improve } = workload
  const live = makeLive(
    options.seats,
    improve === undefined ? undefined : options.applyAt,
    improve?.recheck === undefined ? undefined : options.rechecks
  )
  const run: Run = {
    workload,
    options,
    state,
    live,
    gate: gate.make(),
    supervisor: Inbox.make((errands) => Effect.all(errands, { discard: true })),
    occupants: new Map(),
    alive: new Set(),
    applying: undefined,
    selecting: undefined,
    applies: [],
    startedAt,
    spentUsd: 0,
    rechecked: [],
    judging: Semaphore.makeUnsafe(1),
    changes: Semaphore.makeUnsafe(1),
    closing: false,
    row: [],
    ending: undefined,
    endingBegan: Deferred.makeUnsafe(),
    overdue: Deferred.makeUnsafe(),
    look: Latch.makeUnsafe(false),
    changed: () => void PubSub.publishUnsafe(board.pulses, "changed"),
    journal: journal.make(log, state, {
      counted: (event) => {
        note(state, live, event)
        metrics.count(event, context)
      },
      publish: (entries) => PubSub.publishAll(board.entries, entries),
      broken: (error) => {
        const isEnding = run.ending !== undefined
        beginEnding(run, { _tag: "Broken", cause: Cause.fail(error), end: undefined })
        // Nothing of what goes on can be kept any more.
        if (isEnding) interruptAll(run)
      }
    })
  }
  return run
})

/** Begins the run, works until nothing can happen any more, and says so in the log. */
const work = Effect.fnUntraced(function* (run: Run) {
  const version = run.workload.version === undefined ? undefined : yield* ask(run, run.workload.version)
  const { phases } = run.state
  yield* written(run, {
    _tag: "RunStarted",
    at: yield* Clock.currentTimeMillis,
    start: run.state.start + 1,
    version: version ?? run.state.version,
    found: {
      open: run.state.cases.size - Object.values(phases).reduce((sum, ids) => sum + ids.size, 0),
      parked: phases.parked.size,
      woken: phases.woken.size,
      held: phases.held.size,
      failed: phases.failed.size
    },
    again: run.state.applying?.apply ?? null
  })
  if (run.live.rechecks !== undefined) yield* answered(run, recover(run, run.live.rechecks))
  const stuck = yield* loop(run)
  const end: RunEnd | undefined = stuck ? { _tag: "StopTimedOut", cases: [...run.live.unwinding] } : endOf(run)
  if (end !== undefined) yield* written(run, { _tag: "RunEnded", at: yield* Clock.currentTimeMillis, end })
})

/** Asks something of the host, unless the run comes to its end first. */
const ask = Effect.fnUntraced(function* <A>(run: Run, question: Effect.Effect<A, unknown>) {
  const fiber = yield* Effect.forkDetach(question)
  run.alive.add(fiber)
  fiber.addObserver(() => void run.alive.delete(fiber))
  return yield* Effect.ensuring(
    Effect.raceFirst(Fiber.join(fiber), Effect.as(Deferred.await(run.endingBegan), undefined)),
    Effect.sync(() => fiber.interruptUnsafe())
  )
})

const endOf = (run: Run): RunEnd | undefined => {
  const { ending } = run
  if (ending === undefined)
    return run.live.spent ? { _tag: "BudgetSpent", spentUsd: run.spentUsd } : { _tag: "Finished" }
  return ending._tag === "Stopped" ? { _tag: "Stopped" } : ending.end
}

const written = (run: Run, event: DispatcherEvent): Effect.Effect<void> =>
  answered(run, Effect.ignore(run.journal.commit([event])))

/** Waits for something to be written, but not beyond the bounds of a stop: the storage may not answer at all. */
const answered = Effect.fnUntraced(function* (run: Run, write: Effect.Effect<unknown>) {
  const writing = yield* Effect.forkDetach(write, { startImmediately: true })
  if (writing.pollUnsafe() !== undefined) return
  yield* Effect.raceFirst(Fiber.await(writing), Deferred.await(run.overdue))
})

/** Works until nothing can happen any more. True when only fibers that ignore interruption could change that. */
const loop = Effect.fnUntraced(function* (run: Run) {
  while (!Deferred.isDoneUnsafe(run.overdue)) {
    run.look.closeUnsafe()
    const now = yield* Clock.currentTimeMillis
    const action = next(run.state, run.live, now)
    switch (action._tag) {
      case "Claim":
        yield* claim(run, action, now)
        break
      case "Apply":
        yield* beginApply(run, run.workload.improve!)
        break
      case "Select":
        yield* beginSelect(run)
        break
      case "Wait":
        if (action.until === Infinity) yield* run.look.await
        else yield* lookWithin(run, Duration.min(longestSleep, Duration.millis(action.until - now)))
        break
      case "End":
        // Only a fiber that ignores interruption could still change something: it is waited for as long as in a stop.
        if (action.stuck && (yield* lookWithin(run, run.options.stopWithin))) break
        run.closing = true
        return action.stuck
    }
  }
  return false
})

/** A recheck may be of a case that is selected no more: then it only has to be said. */
const claim = (run: Run, { case: id, lane }: Extract<Action, { readonly _tag: "Claim" }>, now: number) => {
  const { rechecks, selection } = run.live
  const host = run.workload.improve?.recheck
  if (lane === "recheck" && rechecks !== undefined && host !== undefined) {
    return occupy(run, selection.byId.get(id) ?? { id }, recheck(run, id, rechecks, host), now)
  }
  if (lane === "fresh") selection.fresh--
  const case_ = selection.byId.get(id)!
  return occupy(run, case_, train(run, case_, now), now)
}

/** True when something happened within that time. */
const lookWithin = (run: Run, time: Duration.Duration): Effect.Effect<boolean> =>
  Effect.raceFirst(Effect.as(run.look.await, true), Effect.as(Effect.sleep(time), false))

/** Once the run comes to its end: steps get `stopWithin`, what is interrupted `grace`, and the storage as much again. */
const enforceBounds = Effect.fnUntraced(function* (run: Run) {
  const ending = yield* Deferred.await(run.endingBegan)
  const hopeless = ending._tag === "Broken" && (ending.end === undefined || ending.end._tag === "SystemDown")
  if (!hopeless) yield* Effect.sleep(run.options.stopWithin)
  interruptAll(run)
  yield* Effect.sleep(Duration.times(run.options.grace, 2))
  Deferred.doneUnsafe(run.overdue, Effect.void)
  run.look.openUnsafe()
})

/** The run's own fiber was interrupted: everything is, and gets `grace` to unwind. */
const abandon = Effect.fnUntraced(function* (run: Run) {
  beginEnding(run, { _tag: "Stopped" })
  interruptAll(run)
  const unwound = Effect.gen(function* () {
    while (run.live.running.size > 0 || run.live.applying || run.live.selecting) {
      run.look.closeUnsafe()
      yield* run.look.await
    }
  })
  yield* Effect.timeoutOption(Effect.interruptible(unwound), Duration.times(run.options.grace, 2))
})

/** Whether the effect ended within that time; one that did not goes on by itself. */
const within = Effect.fnUntraced(function* (time: Duration.Duration, effect: Effect.Effect<unknown>) {
  const fiber = yield* Effect.forkDetach(effect, { startImmediately: true })
  if (fiber.pollUnsafe() !== undefined) return true
  const exit = yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(fiber)), time)
  return exit._tag === "Some"
})

/** Releases the log, or says what still needs it: then it is released when that is gone. */
const release = Effect.fnUntraced(function* (run: Run, scope: Scope.Closeable) {
  const close = Scope.close(scope, Exit.void)
  run.closing = true
  if (run.journal.writing()) yield* within(run.options.grace, run.journal.idle)
  const storage = run.journal.writing()
  if (run.alive.size === 0 && !storage) {
    const closed = yield* within(run.options.grace, close)
    return closed ? undefined : new StopTimedOut({ cases: [], apply: null, storage: true })
  }
  const cases = [...new Set([...run.live.unwinding, ...run.live.running.keys()])]
  const apply = run.applying?.apply ?? null
  yield* Effect.forkDetach(
    Effect.gen(function* () {
      for (const fiber of run.alive) yield* Fiber.await(fiber)
      yield* run.journal.idle
      yield* close
    })
  )
  return new StopTimedOut({ cases, apply, storage })
})

const outcome = (run: Run, left: StopTimedOut | undefined): Effect.Effect<Summary<never>, unknown> => {
  const cause = causeOf(run)
  if (cause === undefined) return left === undefined ? Effect.succeed(summarize(run)) : Effect.fail(left)
  const broken = Effect.failCause(cause)
  return left === undefined ? broken : Effect.andThen(Effect.logWarning(left.message), broken)
}

/** Why the run failed: what broke it, or a storage that failed while it came to its end for another reason. */
const causeOf = (run: Run): Cause.Cause<unknown> | undefined => {
  if (run.ending?._tag === "Broken") return run.ending.cause
  const failure = run.journal.failure()
  return failure === undefined ? undefined : Cause.fail(failure)
}
