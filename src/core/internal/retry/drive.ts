/**
 * Takes one turn to its end: decides, journals, and then acts.
 */
import { Clock, Deferred, Duration, Effect, Random } from "effect"
import { Failure } from "../../Failure.ts"
import { complete } from "../../RetryRules.ts"
import type { Attempt, AttemptEnding, End, Event, State, Turn, Wait } from "../../Turn.ts"
import type { WorkspaceError, WorkspaceShape } from "../../Workspace.ts"
import { runAttempt, stopped, type Watch } from "./attempt.ts"
import type { Place } from "./cooldown.ts"
import { type Decision, decide, type Launch } from "./decide.ts"
import { wallUntil } from "./hold.ts"
import type { JournalError } from "./journal.ts"
import { promptFor } from "./prompt.ts"
import { redactor } from "./redact.ts"
import { priced } from "./totals.ts"
import type { Waits, Woken } from "./waits.ts"
import { isForWall } from "./wall.ts"

/** What a turn is driven with. */
export interface Drive extends Watch {
  readonly workspace: WorkspaceShape
  readonly waits: Waits
  /** Is the network back? Asked while a network failure is waited out. */
  readonly probe: Effect.Effect<boolean> | undefined
}

/** Where driving a turn comes to: it is over, or it waits. */
export type Driven = { readonly _tag: "Over"; readonly state: State; readonly end: End } | Waiting

/** All that is needed to go on after a wait: the rest of what drives a turn is let go, since there may be thousands. */
export interface Waiting {
  readonly _tag: "Waits"
  readonly state: State
  readonly wait: Wait
  /** Milliseconds. */
  readonly left: number
  /** Short enough to be waited for in the call. */
  readonly inline: boolean
}

/** Goes on with the turn from whatever is journaled of it. `turn.rules` are complete. */
export const driveTurn = Effect.fnUntraced(function* (drive: Drive, turn: Turn, account: string) {
  return yield* proceed(drive, turn, yield* takeUp(drive, turn, account))
})

const proceed = Effect.fnUntraced(function* (
  drive: Drive,
  turn: Turn,
  from: State
): Effect.fn.Return<Driven, JournalError> {
  let state = from
  while (true) {
    if (state.end !== null) return { _tag: "Over", state, end: state.end }
    const moment = { now: yield* Clock.currentTimeMillis, jitter: yield* Random.next }
    const decision = decide(turn, state, moment)
    if (decision._tag === "Wait") {
      const { wait, remaining: left, inline } = decision
      if (wait !== state.wait) state = yield* drive.journal.append({ _tag: "WaitStarted", turnId: turn.id, wait })
      return { _tag: "Waits", state, wait, left, inline }
    }
    state = yield* act(drive, turn, state, decision)
  }
})

const act = Effect.fnUntraced(function* (
  drive: Drive,
  turn: Turn,
  state: State,
  decision: Exclude<Decision, { readonly _tag: "Wait" }>
) {
  switch (decision._tag) {
    case "End":
      return yield* drive.journal.append({ _tag: "TurnEnded", turnId: turn.id, end: decision.end })
    case "Recover":
      return yield* recover(drive, turn, state, decision.attempt, dead)
    case "Launch":
      return yield* launched(drive, turn, state, decision)
  }
})

/** The turn as it is to be gone on with: begun, taken up after a stop, or in a new round. */
const takeUp = Effect.fnUntraced(function* (drive: Drive, turn: Turn, account: string) {
  const { journal } = drive
  const state = yield* journal.state(turn.id)
  const at = yield* Clock.currentTimeMillis
  if (state === undefined) {
    return yield* begin(drive, turn, (head) => ({ _tag: "TurnStarted", turnId: turn.id, at, head, account }))
  }
  const { end } = state
  // Interrupted together with its host, which had just the time to say so.
  const cut = end === null && state.attempts.at(-1)?.ending?.failure?.kind === "Stopped" && !state.resumed
  if (cut || end?.status === "stopped") return yield* journal.append({ _tag: "TurnResumed", turnId: turn.id, at })
  // A hold for good ends with the limit, or with another account, which has limits of its own.
  const open = end?.status === "held" && ((end.until ?? 0) <= at || account !== state.account)
  if (end?.status !== "failed" && !open) return state
  const round = { _tag: "RoundStarted", turnId: turn.id, at, round: state.round + 1, account } as const
  return state.attempts.length === 0
    ? yield* begin(drive, turn, (head) => ({ ...round, head }))
    : yield* journal.append(round)
})

/** Begins a turn of which nothing was launched yet. Without the commit it starts from nobody could tell what it has done. */
const begin = ({ journal, workspace }: Drive, turn: Turn, begun: (head: string | null) => Event) =>
  Effect.matchEffect(workspace.head(turn.directory), {
    onSuccess: (head) => journal.append(begun(head)),
    onFailure: (error) =>
      Effect.flatMap(Clock.currentTimeMillis, (at) =>
        journal.append(begun(null), failedNow(turn, at, unreadable(turn, error)))
      )
  })

// -----------------------------------------------------------------------------
// launches
// -----------------------------------------------------------------------------

const launched = Effect.fnUntraced(function* (drive: Drive, turn: Turn, state: State, launch: Launch) {
  const { cooldown, journal } = drive
  const moment = { now: yield* Clock.currentTimeMillis, jitter: yield* Random.next }
  const place = { account: state.account ?? "", model: launch.model }
  const waited = state.wait !== null && !isForWall(state.wait)
  const answer = cooldown.ask(turn.id, place, { ...moment, waited })
  if (answer._tag === "Wait") {
    const { rule, until: due, failure } = answer
    const { wait: before } = state
    const held = before?.hold ? { heldSince: before.heldSince ?? before.since } : {}
    const wait = { rule, hold: true, since: moment.now, ...held, due, failure }
    return yield* journal.append({ _tag: "WaitStarted", turnId: turn.id, wait })
  }
  return yield* Effect.ensuring(
    launchPassed(drive, turn, state, launch, place),
    Effect.sync(() => cooldown.left(turn.id))
  )
})

/** Launches what no wall holds back any more, unless the workspace or an old agent does. */
const launchPassed = Effect.fnUntraced(function* (
  drive: Drive,
  turn: Turn,
  state: State,
  launch: Launch,
  place: Place
) {
  const { cooldown, journal } = drive
  const at = yield* Clock.currentTimeMillis
  const ready = yield* Effect.raceFirst(
    prepare(drive, turn, state, launch),
    Effect.as(Deferred.await(drive.stop), undefined)
  )
  // A stop that came meanwhile: nothing is launched any more.
  if (ready === undefined || (yield* Deferred.isDone(drive.stop))) return yield* journal.append(stopNow(turn.id, at))
  if (typeof ready !== "string") return yield* journal.append(failedNow(turn, at, ready))
  const after = yield* runAttempt(drive, turn, complete(turn.rules), state, launch, ready)
  const attempt = after.attempts.at(-1)
  if (attempt?.ending === null) return yield* recover(drive, turn, after, attempt, stoppedUnseen)
  const until = wallUntil(complete(turn.rules), after)
  const failure = attempt?.ending?.failure
  const now = yield* Clock.currentTimeMillis
  if (until !== undefined && failure) cooldown.raise(turn.id, place, failure, now, until)
  return after
})

/** The prompt of what is to be launched, or what is in its way. */
const prepare = Effect.fnUntraced(function* (drive: Drive, turn: Turn, state: State, launch: Launch) {
  const { workspace } = drive
  if (launch.reap) {
    for (const attempt of state.attempts) {
      if (!(yield* provenGone(drive, attempt))) return notGone(attempt)
    }
  }
  if (state.attempts.length === 0) return promptFor(turn.prompt, state, launch, "nothing was done yet")
  const obstacle = yield* inTheWay(workspace, turn)
  if (obstacle !== undefined) return obstacle
  const seen = Effect.catch(workspace.evidence(turn.directory, state.head), (error) => Effect.succeed(error.reason))
  return promptFor(turn.prompt, state, launch, yield* seen)
})

interface Obstacle {
  readonly rule: string
  readonly detail: string
  readonly fix: string
}

/** What would make a repeat fail as the last attempt did, or do something twice that nobody could see was done. */
const inTheWay = (workspace: WorkspaceShape, turn: Turn): Effect.Effect<Obstacle | undefined> =>
  Effect.match(workspace.locked(turn.directory), {
    onSuccess: (locked) =>
      locked && {
        rule: "workspace-locked",
        detail: `The workspace cannot be written: ${locked.lock} is in the way.`,
        fix: locked.fix
      },
    onFailure: (error) => unreadable(turn, error)
  })

const unreadable = (turn: Turn, error: WorkspaceError): Obstacle => ({
  rule: "workspace-unreadable",
  detail: redactor(turn.env)(error.message),
  fix: "See that the directory is there and that its repository can be read, then run the turn again."
})

const failedNow = (turn: Turn, at: number, obstacle: Obstacle): Event => ({
  ...{ _tag: "TurnEnded", turnId: turn.id, end: { at, status: "failed", until: null, ...obstacle } }
})

const stopNow = (turnId: string, at: number): Event => ({
  _tag: "TurnEnded",
  turnId,
  end: {
    ...{ at, status: "stopped", rule: "stopped", detail: "It was stopped as asked.", until: null },
    fix: "Run the turn again to go on where it was."
  }
})

// -----------------------------------------------------------------------------
// recovery
// -----------------------------------------------------------------------------

const provenGone = ({ launcher }: Watch, attempt: Attempt) =>
  attempt.identity === null
    ? Effect.succeed(true)
    : Effect.map(launcher.reap(attempt.identity), (found) => found !== "unknown")

const notGone = (attempt: Attempt): Obstacle => ({
  rule: "old-agent-not-proven-gone",
  detail: `It is not known whether the agent of attempt ${attempt.number} still works (${JSON.stringify(attempt.identity)}).`,
  fix: "See that it is gone, by hand if need be, then run the turn again: two agents must not work in one session."
})

/** What is known of an attempt whose ending nobody saw, by whether anything of it ran. */
type Unseen = (ran: boolean) => Pick<AttemptEnding, "failure" | "hostDied">

const dead: Unseen = (ran) => ({
  failure: new Failure({
    ...{ kind: "Interrupted", scope: "session", raw: null },
    detail: ran ? "Its host ended while it ran." : "Its host ended before it was launched."
  }),
  hostDied: true
})

const stoppedUnseen: Unseen = () => ({ failure: stopped })

/** Judges an attempt whose ending nobody saw. Without an identity the agent never came past its barrier. */
const recover = Effect.fnUntraced(function* (drive: Drive, turn: Turn, state: State, attempt: Attempt, unseen: Unseen) {
  const gone = yield* provenGone(drive, attempt)
  const at = yield* Clock.currentTimeMillis
  if (!gone) return yield* drive.journal.append(failedNow(turn, at, notGone(attempt)))
  const ran = attempt.identity !== null
  const ending = priced(state, { at, result: null, ran, ...unseen(ran) }, drive.prices)
  return yield* drive.journal.append({ _tag: "AttemptEnded", turnId: turn.id, ending })
})

// -----------------------------------------------------------------------------
// waits
// -----------------------------------------------------------------------------

/** Between two looks whether the network is back. */
const probeEvery = 30_000

const isProbed = ({ probe }: Drive, { failure }: Wait) => probe !== undefined && failure?.kind === "Network"

/** Is the network back? What asks for it mostly hangs while it is not, which must not stretch the wait, nor keep a stop waiting. */
const probed = ({ probe, stop }: Drive, left: number): Effect.Effect<boolean> => {
  if (probe === undefined) return Effect.succeed(false)
  const answer = Effect.catchCause(probe, (cause) =>
    Effect.as(Effect.logWarning("the network probe failed", cause), false)
  )
  return Effect.raceAllFirst([
    answer,
    Effect.as(Effect.sleep(Math.min(left, probeEvery)), false),
    Effect.as(Deferred.await(stop), false)
  ])
}

/** How long is waited before the turn is looked at again. */
const slice = (drive: Drive, { wait, left }: Waiting) => (isProbed(drive, wait) ? Math.min(left, probeEvery) : left)

/** Waits; meanwhile nothing is kept but what this is called with. A stop or a change that came before is not missed. */
export const pause = (drive: Drive, turnId: string, waiting: Waiting): Effect.Effect<Woken> =>
  Effect.suspend(() => {
    const { stop, cooldown, waits } = drive
    const { wait } = waiting
    return Deferred.isDoneUnsafe(stop) || (isForWall(wait) && cooldown.changed(turnId))
      ? Effect.succeed("early")
      : waits.until(turnId, wait.due, slice(drive, waiting))
  })

/** Goes on with the turn after a wait, or after a part of it. */
export const driveOn = Effect.fnUntraced(function* (
  drive: Drive,
  turn: Turn,
  waiting: Waiting,
  woken: Woken
): Effect.fn.Return<Driven, JournalError> {
  const { journal } = drive
  const { wait } = waiting
  const now = yield* Clock.currentTimeMillis
  const ended = (rule: string) =>
    Effect.flatMap(journal.append({ _tag: "WaitEnded", turnId: turn.id, at: now, rule }), (state) =>
      proceed(drive, turn, state)
    )
  if (yield* Deferred.isDone(drive.stop)) {
    return yield* proceed(drive, turn, yield* journal.append(stopNow(turn.id, now)))
  }
  if (woken === "early") return yield* ended("cooldown-changed")
  // Never more than was left before: a clock that steps back does not stretch the wait, one that steps forward ends it.
  const left = Math.min(waiting.left - slice(drive, waiting), wait.due - now)
  if (left > 0) {
    const [took, isBack] = yield* Effect.timed(probed(drive, left))
    return isBack ? yield* ended("network-probe") : { ...waiting, left: left - Duration.toMillis(took) }
  }
  return yield* now < wait.due ? ended("clock-stepped-back") : proceed(drive, turn, waiting.state)
})
