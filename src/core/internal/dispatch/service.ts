/**
 * The dispatcher and its improvements as services: one run at a time, and answers before, during and after it.
 */
import { Clock, Deferred, Effect, PubSub, type Scope, Stream } from "effect"
import type { Case } from "../../Case.ts"
import type {
  Dispatcher,
  Entry,
  Explanation,
  Gap,
  Options,
  RunError,
  Snapshot,
  Summary,
  Workload
} from "../../Dispatcher.ts"
import { CaseNotChanged, UnknownCase } from "../../DispatcherError.ts"
import { type Apply, type ChangeError, type Improvements, type ReadError, UnknownRequest } from "../../Improvements.ts"
import type { Rechecks } from "../../Rechecks.ts"
import { type Json, Storage } from "../../Storage.ts"
import { LogHeld } from "../../StorageError.ts"
import { all, initial as seenRechecks, isOpen, see as seeRecheck } from "../recheck/view.ts"
import { requestStop } from "./control.ts"
import * as decide from "./decide.ts"
import { execute, type Place } from "./execute.ts"
import { codecOf } from "./json.ts"
import { openWithState, read, readState } from "./log.ts"
import * as options from "./options.ts"
import { changed, type ChangeEvent, type ClosedWorkload, type Run } from "./run.ts"
import { isFresh } from "./select.ts"
import { type Ended, make as makeSession, makeBoard, type Session } from "./session.ts"
import { isBeingTaken, type State } from "./state.ts"
import { snapshotOf } from "./view.ts"

/** What the services of one log share: at most one session at a time. */
interface Home extends Place {
  current: Session | undefined
}

export const make = Effect.fnUntraced(function* (log: string) {
  const home: Home = { storage: yield* Storage, log, board: yield* makeBoard, current: undefined }
  const dispatcher: Dispatcher["Service"] = {
    run: makeRun(home),
    stop: Effect.suspend(() => {
      const session = home.current
      if (session === undefined) return Effect.void
      Deferred.doneUnsafe(session.stopAsked, Effect.void)
      return Deferred.await(session.ended)
    }),
    requestStop: Effect.suspend(() => {
      // Logs that no other process shares are not watched for requests: the run they could mean is this one.
      if (home.storage.shared) return requestStop(home.storage, log)
      return home.current === undefined ? Effect.void : Deferred.succeed(home.current.stopAsked, undefined)
    }),
    events: (after) => events(home, after),
    history: (after) => history(home, after),
    snapshot: snapshot(home),
    changes: changes(home),
    explain: Effect.fn("Dispatcher.explain")((id: string) => explain(home, id)),
    retry: Effect.fn("Dispatcher.retry")((id: string) => change(home, retried(id))),
    forget: Effect.fn("Dispatcher.forget")((id: string) => change(home, forgotten(id)))
  }
  const improvements: Improvements["Service"] = {
    pending: Effect.map(stateOf(home), (state) => [...state.pending.values()]),
    applies: applies(home),
    cancel: Effect.fn("Improvements.cancel")((id: string) => change(home, cancelled(id)))
  }
  const rechecks: Rechecks["Service"] = {
    all: Effect.map(foldRechecks(home), all),
    open: Effect.map(foldRechecks(home), (seen) => all(seen).filter(isOpen)),
    unstable: Effect.map(stateOf(home), (state) => [...state.rechecks.unstable])
  }
  return { dispatcher, improvements, rechecks }
})

// -----------------------------------------------------------------------------
// running
// -----------------------------------------------------------------------------

const makeRun = (home: Home): Dispatcher["Service"]["run"] =>
  Effect.fn("Dispatcher.run")(
    <C extends Case, A extends Json | void, Req, EC, RC, RT, RA, RR>(
      workload: Workload<C, A, Req, EC, RC, RT, RA, RR>,
      given: Options = {}
    ) =>
      Effect.flatMap(options.check(given, workload.improve?.controls === true), (checked) =>
        Effect.acquireUseRelease(
          begin(home),
          (session) => execute(home, session, close(workload), checked),
          (session) => end(home, session)
        )
      ) as Effect.Effect<Summary<A>, RunError | EC, RC | Exclude<RT | RA | RR, Scope.Scope>>
  )

const begin = (home: Home) =>
  Effect.suspend(() => {
    if (home.current !== undefined) return Effect.fail(alreadyRunning(home.log))
    home.current = makeSession()
    return Effect.succeed(home.current)
  })

const end = (home: Home, session: Session) =>
  Effect.suspend(() => {
    home.current = undefined
    return Effect.all([
      PubSub.publish(home.board.entries, { _tag: "Ended", cursor: session.run?.state.cursor ?? 0 }),
      PubSub.publish(home.board.pulses, "ended"),
      Deferred.succeed(session.ended, undefined)
    ])
  })

/**
 * Forgets what the workload's functions need and fail with: they run in fibers forked by the caller's, which has it,
 * and the types of `Dispatcher.run` say it. The selection is the only source of cases, so `train` gets what it expects.
 */
const close = <C extends Case, A extends Json | void, Req, EC, RC, RT, RA, RR>(
  workload: Workload<C, A, Req, EC, RC, RT, RA, RR>
): ClosedWorkload => ({
  ...(workload as unknown as ClosedWorkload),
  version: workload.version as ClosedWorkload["version"],
  improve: workload.improve && {
    request: codecOf(workload.improve.request),
    apply: workload.improve.apply as NonNullable<ClosedWorkload["improve"]>["apply"],
    recheck: workload.improve.recheck as NonNullable<ClosedWorkload["improve"]>["recheck"]
  }
})

const alreadyRunning = (log: string) =>
  new LogHeld({
    log,
    host: "this host",
    process: "a run of this process",
    since: 0,
    remedy: "Wait for it, stop it, or give this dispatcher a log of its own (Dispatcher.layerNamed)."
  })

// -----------------------------------------------------------------------------
// seeing
// -----------------------------------------------------------------------------

const stateOf = (home: Home) =>
  Effect.suspend(() => {
    const state = home.current?.run?.state
    return state === undefined ? readState(home.storage, home.log) : Effect.succeed(state)
  })

const snapshot = (home: Home) => Effect.map(stateOf(home), (state) => snapshotOf(state, home.current?.run))

const explain = Effect.fnUntraced(function* (home: Home, id: string) {
  const state = yield* stateOf(home)
  const run = home.current?.run
  const found = decide.explain(state, run?.live, id, yield* Clock.currentTimeMillis)
  if (found === undefined) return yield* new UnknownCase({ case: id })
  const step = run?.occupants.get(id)?.step ?? null
  return (found._tag === "Running" ? { ...found, step } : found) satisfies Explanation
})

const history = (home: Home, after = 0): Stream.Stream<Entry, ReadError> =>
  Stream.mapAccum(
    read(home.storage, home.log),
    () => 0,
    (before, event) => {
      const cursor = before + 1
      return [cursor, cursor > after ? [{ _tag: "Entry" as const, cursor, event }] : []] as const
    }
  )

/** Subscribes before it reads the log, so that nothing falls between the two; what comes twice is left out. */
const events = (home: Home, after: number | undefined): Stream.Stream<Entry | Gap, ReadError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const live = Stream.fromSubscription(yield* PubSub.subscribe(home.board.entries))
      const past = after === undefined ? Stream.empty : history(home, after)
      const last = after ?? home.current?.run?.state.cursor
      return Stream.concat(
        past,
        Stream.takeUntil(live, (entry) => entry._tag === "Ended")
      ).pipe(Stream.mapAccum(() => last, withGaps))
    })
  )

type Sequence = readonly [last: number | undefined, out: ReadonlyArray<Entry | Gap>]

const withGaps = (last: number | undefined, entry: Entry | Ended): Sequence => {
  if (last !== undefined && entry.cursor <= last) return [last, []]
  const next = entry._tag === "Ended" ? entry.cursor + 1 : entry.cursor
  const missed = last !== undefined && next > last + 1
  const gap: ReadonlyArray<Gap> = missed ? [{ _tag: "Gap", after: last, next }] : []
  return [entry.cursor, entry._tag === "Ended" ? gap : [...gap, entry]]
}

/** A pulse only says that something changed: the snapshot is made when the subscriber asks for the next. */
const changes = (home: Home): Stream.Stream<Snapshot> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const pulses = Stream.fromSubscription(yield* PubSub.subscribe(home.board.pulses))
      let last = home.current?.run
      const seen = Stream.mapEffect(pulses, (pulse) =>
        Effect.sync(() => {
          last = home.current?.run ?? last
          return { pulse, snapshot: last && snapshotOf(last.state, pulse === "ended" ? undefined : last) }
        })
      )
      return Stream.concat(
        last === undefined ? Stream.empty : Stream.succeed(snapshotOf(last.state, last)),
        seen.pipe(
          Stream.takeUntil(({ pulse }) => pulse === "ended"),
          Stream.mapAccum(
            () => undefined,
            (state, { snapshot }) => [state, snapshot === undefined ? [] : [snapshot]] as const
          )
        )
      )
    })
  )

const applies = (home: Home) =>
  Effect.map(
    Stream.runFold(
      read(home.storage, home.log),
      () => new Map<string, Apply>(),
      (all, event) => {
        switch (event._tag) {
          case "ApplyStarted":
            return all.set(event.apply, {
              name: event.apply,
              requests: event.requests,
              outcome: { _tag: "Begun" },
              at: event.at
            })
          case "ApplyEnded":
          case "ApplyFailed": {
            const outcome =
              event._tag === "ApplyEnded" ? event.applied : { _tag: "Failed" as const, reason: event.reason }
            return all.set(event.apply, {
              name: event.apply,
              requests: all.get(event.apply)?.requests ?? [],
              outcome,
              at: event.at
            })
          }
          default:
            return all
        }
      }
    ),
    (all) => [...all.values()]
  )

const foldRechecks = (home: Home) => Stream.runFold(read(home.storage, home.log), seenRechecks, seeRecheck)

// -----------------------------------------------------------------------------
// changing
// -----------------------------------------------------------------------------

/** What a change adds to the log, or why it cannot be made. */
type Change<E> = (state: State, run: Run | undefined, at: number) => Effect.Effect<ChangeEvent, E>

/** Through the run under way, so that both agree; without one by opening the log for the moment. */
const change = <E>(home: Home, make: Change<E>): Effect.Effect<void, E | ChangeError> =>
  Effect.suspend(() => {
    const session = home.current
    const run = session?.run
    if (session === undefined || run === undefined) return changeLog(home, make)
    const afterwards = Effect.andThen(Deferred.await(session.ended), changeLog(home, make))
    if (run.closing) return afterwards
    return Effect.flatten(
      run.changes.withPermit(
        Effect.suspend(() => (run.closing ? Effect.succeed(afterwards) : Effect.as(changeRun(run, make), Effect.void)))
      )
    )
  })

/** What is decided here stands: nothing else that could touch the case is being written. */
const changeRun = Effect.fnUntraced(function* <E>(run: Run, make: Change<E>): Effect.fn.Return<void, E | ChangeError> {
  const event = yield* make(run.state, run, yield* Clock.currentTimeMillis)
  const selected = run.live.selection.byId.get(event.case)
  const counted = selected !== undefined && isFresh(run, selected)
  yield* changed(run, [event], () => {
    if (counted) run.live.selection.fresh--
  })
})

const changeLog = <E>(home: Home, make: Change<E>): Effect.Effect<void, E | ChangeError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { log, state } = yield* openWithState(home.storage, home.log)
      yield* log.append([yield* make(state, undefined, yield* Clock.currentTimeMillis)])
    })
  )

const retried =
  (id: string): Change<UnknownCase | CaseNotChanged> =>
  (state, _run, at) => {
    const record = state.cases.get(id)
    if (record === undefined) return Effect.fail(new UnknownCase({ case: id }))
    return record.phase === "difficult"
      ? Effect.succeed({ _tag: "CaseRetried", at, case: id, rev: record.rev })
      : Effect.fail(new CaseNotChanged({ case: id, change: "retry", state: record.phase }))
  }

const forgotten =
  (id: string): Change<UnknownCase | CaseNotChanged> =>
  (state, run, at) => {
    const record = state.cases.get(id)
    if (run?.live.running.has(id) === true || run?.live.unwinding.has(id) === true) {
      return Effect.fail(new CaseNotChanged({ case: id, change: "forget", state: "on a seat" }))
    }
    return record === undefined
      ? Effect.fail(new UnknownCase({ case: id }))
      : Effect.succeed({ _tag: "CaseForgotten", at, case: id, rev: record.rev })
  }

const cancelled =
  (id: string): Change<UnknownRequest> =>
  (state, _run, at) => {
    const request = state.pending.get(id)
    return request === undefined || isBeingTaken(state, id)
      ? Effect.fail(new UnknownRequest({ request: id }))
      : Effect.succeed({ _tag: "RequestCancelled", at, case: request.case, rev: request.rev, request: id })
  }
