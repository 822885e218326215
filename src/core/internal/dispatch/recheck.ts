/**
 * One try of a recheck on a seat: what is journaled before the host's function is called, and of what it said.
 */
import { Clock, Effect, Exit, Predicate } from "effect"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { RecheckEvent } from "../../RecheckEvent.ts"
import type { Arm } from "../../RecheckRule.ts"
import * as Verdict from "../../Verdict.ts"
import { begin, type Rules, settle, type Standing } from "../recheck/decide.ts"
import { nameOf, type OpenRecheck } from "../recheck/state.ts"
import { revOf } from "./decide.ts"
import { charge, downOf } from "./failures.ts"
import { recheckEnded } from "./metrics.ts"
import type { Piece, Work } from "./occupy.ts"
import { breakWith, cut, type Memory, type Occupant, type OnRecheck, type Run, shown, withdraw } from "./run.ts"
import { keyOf } from "./state.ts"

type RecheckOf = NonNullable<NonNullable<Run["workload"]["improve"]>["recheck"]>

/** The next try of the case's recheck. Its end gives the seat back: woken cases and an apply do not wait for all tries. */
export const recheck = (run: Run, id: string, rules: Rules, host: RecheckOf): Piece => ({
  begin: (occupant) =>
    run.judging.withPermit(
      Effect.suspend(() => {
        const open = run.state.rechecks.open.get(id)
        if (open === undefined) return Effect.undefined
        const { events, arm } = begin(run.state.rechecks, open, standingOf(run, id), rules, occupant.since)
        const isReady = events.length === 0 ? Effect.succeed(true) : journaled(run, events)
        return Effect.map(isReady, (ready) => (ready && arm !== null ? workOf(run, open, arm, host) : undefined))
      })
    ),
  finish: Effect.fnUntraced(function* (occupant, exit, free) {
    const { recheck, withdrawal } = occupant
    const leave = () => {
      free()
      run.live.passedBy.push(id)
    }
    if (recheck === null) return leave()
    if (withdrawal?._tag === "Held") return yield* held(run, occupant, recheck, withdrawal, leave)
    if (withdrawal !== undefined || exit === undefined) return leave()
    const down = downOf(exit)
    if (down === undefined) return yield* run.judging.withPermit(judged(run, occupant, recheck, exit, rules, leave))
    breakWith(run, down)
    return leave()
  })
})

const standingOf = (run: Run, id: string): Standing | undefined => {
  const record = run.state.cases.get(id)
  const selected = run.live.selection.byId.get(id)
  if (record === undefined) return undefined
  return {
    rev: Math.max(record.rev, selected === undefined ? 0 : revOf(selected)),
    completed: record.phase === "completed",
    selected: selected !== undefined
  }
}

const workOf = (run: Run, open: OpenRecheck, arm: Arm, host: RecheckOf): Work | undefined => {
  const case_ = run.live.selection.byId.get(open.case)
  if (case_ === undefined) return undefined
  const { apply, to, patch = null } = open.change
  const { number } = open.tries[arm]
  const version = arm === "new" ? to : open.baseline
  return {
    recheck: { apply, arm, try: number },
    memory: memoryOf(run, open, arm),
    run: (seat) => host({ case: case_, apply, arm, version, patch, try: number }, seat)
  }
}

/** A grading that is done again is another piece of work: its turns are asked in sessions of their own. */
const memoryOf = (run: Run, open: OpenRecheck, arm: Arm): Memory => {
  const { case: id, rev, told } = open
  const { apply } = open.change
  const { number, reading, steps, holds } = open.tries[arm]
  const key = nameOf(keyOf(id, rev, run.state.cases.get(id)?.round ?? 1), apply)
  return {
    key: `${key}/${arm}-${number}${reading === 1 ? "" : `.${reading}`}`,
    steps: () => steps,
    holds: () => holds,
    told: () => told,
    stepEnded: (at, ended) => ({ _tag: "RecheckStepEnded", at, case: id, apply, arm, ...ended })
  }
}

const held = (
  run: Run,
  { case: id }: Occupant,
  { apply, arm }: OnRecheck,
  { name, until }: { readonly name: string; readonly until: number },
  leave: () => void
) =>
  Effect.flatMap(Clock.currentTimeMillis, (at) =>
    Effect.catch(run.journal.commit([{ _tag: "RecheckHeld", at, case: id, apply, arm, name, until }], leave), () =>
      Effect.sync(leave)
    )
  )

/** Journals what the try said, then what that brings to an end. Both are counted before another try is judged. */
const judged = Effect.fnUntraced(function* (
  run: Run,
  occupant: Occupant,
  one: OnRecheck,
  exit: Exit.Exit<unknown, unknown>,
  rules: Rules,
  leave: () => void
) {
  const { case: id } = occupant
  const at = yield* Clock.currentTimeMillis
  // Others of its apply may have ended it meanwhile.
  if (run.state.rechecks.open.get(id)?.change.apply !== one.apply) return leave()
  const said = yield* readingOf(run, one.arm, exit)
  const ended = yield* journaled(run, [{ _tag: "TryEnded", at, case: id, ...one, ...said }], () => {
    if (said.outcome === "pass" || said.outcome === "failure") run.row = []
  })
  const events = ended ? settle(run.state.rechecks, id, rules, at) : []
  if (events.length === 0) return leave()
  if (!(yield* journaled(run, events, leave))) leave()
})

/** True when the events count. A log that cannot be written has ended the run. */
const journaled = Effect.fnUntraced(function* (run: Run, events: ReadonlyArray<RecheckEvent>, onCounted?: () => void) {
  const broken = events.flatMap((event) => {
    const isBroken = event._tag === "RecheckEnded" && event.outcome._tag === "Void" && event.outcome.why === "broke"
    return isBroken ? [{ case: event.case, reason: event.outcome.reason }] : []
  })
  const counted = yield* Effect.match(
    run.journal.commit(events, () => {
      onCounted?.()
      for (const event of events) if (event._tag === "RecheckEnded") noteEnd(run, event)
      for (const failure of broken) charge(run, failure)
    }),
    { onFailure: () => false, onSuccess: () => true }
  )
  if (counted) for (const event of events) if (event._tag === "RecheckEnded") yield* recheckEnded(event.outcome._tag)
  return counted
})

/** Another try of a recheck that is over would say nothing any more. */
const noteEnd = (run: Run, { case: id, apply, outcome }: Extract<DispatcherEvent, { _tag: "RecheckEnded" }>): void => {
  run.rechecked.push({ case: id, apply, outcome })
  const occupant = run.occupants.get(id)
  if (occupant?.recheck?.apply === apply && !occupant.left) withdraw(occupant, { _tag: "Stopped" })
}

type Reading = Pick<Extract<RecheckEvent, { readonly _tag: "TryEnded" }>, "outcome" | "reason" | "score" | "repair">

const broke = (reason: string): Reading => ({ outcome: "error", reason, score: null })

/** What the host's function ended with. Whatever it is, it says something, or that it broke. */
const readingOf = (run: Run, arm: Arm, exit: Exit.Exit<unknown, unknown>): Effect.Effect<Reading> =>
  Effect.suspend(() => {
    if (Exit.isFailure(exit)) return Effect.succeed(broke(shown(exit.cause)))
    const verdict = exit.value
    if (!isVerdict(verdict)) {
      return Effect.succeed(broke("recheck answered with no verdict: return Verdict.right(), wrong, void or unread"))
    }
    if (verdict._tag === "Void" || verdict._tag === "Unread") {
      const outcome = verdict._tag === "Void" ? "void" : "unread"
      return Effect.succeed<Reading>({ outcome, reason: cut(String(verdict.reason)), score: null })
    }
    const score = Verdict.score(verdict)
    if (Verdict.countsAs(verdict) === "pass") return Effect.succeed<Reading>({ outcome: "pass", reason: null, score })
    if (arm === "control") return Effect.succeed<Reading>({ outcome: "failure", reason: null, score })
    return Effect.match(run.workload.improve!.request.encode(verdict.repair), {
      onFailure: (error) => broke(`the repair does not fit the schema of requests: ${cut(error.message)}`),
      onSuccess: (repair): Reading => ({ outcome: "failure", reason: null, score, repair })
    })
  }).pipe(Effect.catchCause((cause) => Effect.succeed(broke(shown(cause)))))

const isVerdict = (answer: unknown): answer is Verdict.Verdict<unknown> =>
  Predicate.isTagged(answer, "Void") ||
  Predicate.isTagged(answer, "Unread") ||
  ((Predicate.isTagged(answer, "Right") || Predicate.isTagged(answer, "Wrong")) &&
    Array.isArray((answer as { readonly rubric?: unknown }).rubric))
