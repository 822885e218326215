/**
 * One try of a recheck on a seat: what is journaled before the host's function is called, and of what it said.
 */
import { Cause, Clock, Effect, Exit, Predicate } from "effect"
import type { RecheckEvent } from "../../RecheckEvent.ts"
import type { Arm } from "../../RecheckRule.ts"
import * as Verdict from "../../Verdict.ts"
import { begin, overtaken, type Rules, settle } from "../recheck/decide.ts"
import { nameOf, type OpenRecheck } from "../recheck/state.ts"
import { standingOf } from "./decide.ts"
import { charge, downOf } from "./failures.ts"
import type { Piece, Work } from "./occupy.ts"
import {
  breakWith,
  cut,
  happened,
  type Memory,
  type Occupant,
  type OnRecheck,
  type Run,
  shown,
  withdraw
} from "./run.ts"
import { keyOf } from "./state.ts"

type RecheckOf = NonNullable<NonNullable<Run["workload"]["improve"]>["recheck"]>

/** The next try of the case's recheck. Its end gives the seat back: woken cases and an apply do not wait for all tries. */
export const recheck = (run: Run, id: string, rules: Rules, host: RecheckOf): Piece => {
  let work: Work | undefined
  return {
    before: (occupant) =>
      run.judging.withPermit(
        Effect.suspend(() => {
          const open = run.state.rechecks.open.get(id)
          if (open === undefined) return Effect.succeed(false)
          const standing = standingOf(run.state, run.live, id)
          const { events, arm } = begin(run.state.rechecks, open, standing, rules, occupant.since)
          const isReady = events.length === 0 ? Effect.succeed(true) : journaled(run, events, rules)
          return Effect.map(isReady, (ready) => {
            if (ready && arm !== null) work = workOf(run, open, arm, host)
            return ready
          })
        })
      ),
    work: () => work,
    finish: (occupant, exit, { leave }) => {
      const left = () => {
        leave()
        run.live.passedBy.push(id)
      }
      const finished = Effect.andThen(
        ended(run, occupant, exit, rules, left),
        Effect.sync(() => happened(run))
      )
      return Effect.forkDetach(finished, { startImmediately: true, uninterruptible: true })
    }
  }
}

/** Journals how the try left its seat. */
const ended = Effect.fnUntraced(function* (
  run: Run,
  occupant: Occupant,
  exit: Exit.Exit<unknown, unknown> | undefined,
  rules: Rules,
  leave: () => void
) {
  const { recheck, withdrawal } = occupant
  if (recheck === null) return leave()
  if (withdrawal?._tag === "Held") return yield* held(run, occupant, recheck, withdrawal, leave)
  if (withdrawal !== undefined || exit === undefined) return leave()
  const down = downOf(exit)
  if (down !== undefined) {
    breakWith(run, down)
    return leave()
  }
  const said = yield* readingOf(run, recheck.arm, exit)
  const charges = Exit.isSuccess(exit) || !Cause.hasInterruptsOnly(exit.cause)
  yield* run.judging.withPermit(judged(run, occupant, recheck, said, { rules, charges, leave }))
})

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

interface Judging {
  readonly rules: Rules
  /** Whether a recheck that broke counts for the breaker. */
  readonly charges: boolean
  readonly leave: () => void
}

/** Journals what the try said, then what that brings to an end. Both are counted before another try is judged. */
const judged = Effect.fnUntraced(function* (
  run: Run,
  occupant: Occupant,
  one: OnRecheck,
  said: Reading,
  { rules, charges, leave }: Judging
) {
  const { case: id } = occupant
  const at = yield* Clock.currentTimeMillis
  // Others of its apply may have ended it meanwhile.
  const open = run.state.rechecks.open.get(id)
  if (open?.change.apply !== one.apply) return leave()
  // Its case may have changed during the try, which then says nothing of what the case is now.
  const over = overtaken(open, standingOf(run.state, run.live, id), at)
  if (over !== undefined) {
    yield* journaled(run, [over], rules)
    return leave()
  }
  if (said.outcome === "pass" || said.outcome === "failure") run.row = []
  yield* journaled(run, [{ _tag: "TryEnded", at, case: id, ...one, ...said }], rules, charges)
  leave()
})

/** Says what a crash kept from being said, before anything is claimed. */
export const recover = (run: Run, rules: Rules): Effect.Effect<unknown> =>
  run.judging.withPermit(
    Effect.flatMap(Clock.currentTimeMillis, (at) => journaled(run, settle(run.state.rechecks, rules, at), rules))
  )

/** Journals the events, and whatever they bring to an end. True when all of it counts: a log that cannot be written has ended the run. */
const journaled = Effect.fnUntraced(function* (
  run: Run,
  events: ReadonlyArray<RecheckEvent>,
  rules: Rules,
  charges = true
) {
  for (let next = events; next.length > 0;) {
    const written = next
    const counted = yield* Effect.match(
      run.journal.commit(written, () => written.forEach((event) => noteEnd(run, event, charges))),
      { onFailure: () => false, onSuccess: () => true }
    )
    if (!counted) return false
    next = settle(run.state.rechecks, rules, yield* Clock.currentTimeMillis, written)
  }
  return true
})

/** One that broke counts for the breaker; another try of one that is over, or of another apply, would say nothing any more. */
const noteEnd = (run: Run, event: RecheckEvent, charges: boolean): void => {
  if (event._tag !== "RecheckEnded" && event._tag !== "RecheckMoved") return
  const { case: id, apply } = event
  const occupant = run.occupants.get(id)
  if (occupant?.recheck?.apply === apply && !occupant.left) withdraw(occupant, { _tag: "Stopped" })
  if (event._tag === "RecheckMoved") return
  const { outcome } = event
  run.rechecked.push({ case: id, apply, outcome })
  if (charges && outcome._tag === "Void" && outcome.why === "broke") charge(run, { case: id, reason: outcome.reason })
}

type Reading = Pick<Extract<RecheckEvent, { readonly _tag: "TryEnded" }>, "outcome" | "reason" | "score" | "repair">

const broke = (reason: string): Reading => ({ outcome: "error", reason, score: null })

/** What the host's function ended with. Whatever it is, it says something, or that it broke. */
const readingOf = (run: Run, arm: Arm, exit: Exit.Exit<unknown, unknown>): Effect.Effect<Reading> =>
  Effect.suspend(() => {
    if (Exit.isFailure(exit)) return Effect.succeed(broke(shown(exit.cause)))
    const verdict = exit.value
    if (!isVerdict(verdict)) {
      return Effect.succeed(
        broke("recheck answered with no verdict: return Verdict.right(), wrong, void or unread, with a rubric of items")
      )
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
    isRubric((answer as { readonly rubric?: unknown }).rubric))

/** Anything else could be taken for a pass, or for a failure, that nobody meant. */
const isRubric = (rubric: unknown): boolean =>
  Array.isArray(rubric) &&
  Array.from<unknown>(rubric).every((item) => Predicate.hasProperty(item, "passed") && typeof item.passed === "boolean")
