/**
 * A turn on a seat: its attempts are the retry policy's, its waits are the dispatcher's.
 */
import { Clock, Effect } from "effect"
import type { SeatTurn } from "../../Dispatcher.ts"
import { TurnFailed } from "../../DispatcherError.ts"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import { RetryPolicy } from "../../RetryPolicy.ts"
import type { TurnDone, TurnOutcome } from "../../Turn.ts"
import { breakWith, type Occupant, type Run } from "./run.ts"

/** The turn has to wait until then: off its seat. */
export interface Waits {
  readonly _tag: "Waits"
  readonly until: number
}

/**
 * Runs the turn until it has answered or has to wait. A journal of turns that cannot be written ends the run, as the
 * dispatcher's own does.
 */
export const run = Effect.fnUntraced(function* (run: Run, occupant: Occupant, name: string, asked: SeatTurn) {
  const policy = yield* RetryPolicy
  const turnId = `${occupant.memory.key}/${name}`
  const { reads: _, stage = stageOf(name), ...turn } = asked
  return yield* policy.run({ ...turn, id: turnId, rules: { ...turn.rules, inlineWait: 0 } }).pipe(
    Effect.matchEffect({
      onSuccess: (outcome) => Effect.andThen(tell(run, occupant, stage, outcome), settle(outcome)),
      onFailure: (error) => {
        if (error._tag === "Held") return Effect.succeed<Waits>({ _tag: "Waits", until: error.until })
        if (error._tag === "TurnRunning") return Effect.die(error)
        breakWith(run, error)
        return Effect.never
      }
    })
  )
})

/** `answer-2` is of the stage `answer`: in a loop, names are numbered. */
const stageOf = (name: string): string => name.replace(/[-_. ]?\d+$/, "") || name

const settle = (outcome: TurnOutcome): Effect.Effect<TurnDone, TurnFailed> => {
  const { turnId, status, rule, detail, fix, until } = outcome
  if (status !== "succeeded") return Effect.fail(new TurnFailed({ turnId, status, rule, detail, fix, until }))
  return Effect.succeed({
    turnId,
    text: outcome.text,
    sessionId: outcome.sessionId,
    model: outcome.result?.model ?? null,
    costUsd: outcome.totals.costUsd.total,
    estimatedCostUsd: outcome.totals.estimatedCostUsd,
    attempts: outcome.attempts.length
  })
}

/**
 * Journals what its attempts used, each once: a turn that is taken up again tells all of them again. What attempts of
 * earlier runs cost was charged to those.
 */
const tell = Effect.fnUntraced(function* (run: Run, occupant: Occupant, stage: string, outcome: TurnOutcome) {
  const told = occupant.memory.told()?.get(outcome.turnId) ?? 0
  const attempts = outcome.attempts.filter(({ number }) => number > told)
  if (attempts.length === 0) return
  for (const { startedAt, costUsd, estimatedCostUsd } of attempts) {
    if (startedAt >= run.startedAt) run.spentUsd += costUsd ?? estimatedCostUsd ?? 0
  }
  run.live.spent = run.spentUsd >= run.options.budgetUsd
  const spent: DispatcherEvent = {
    _tag: "TurnSpent",
    at: yield* Clock.currentTimeMillis,
    case: occupant.case,
    rev: occupant.rev,
    recheck: occupant.recheck?.apply ?? null,
    turnId: outcome.turnId,
    stage,
    attempt: attempts.at(-1)!.number,
    spent: attempts.map(({ model, usage, usageSoFar, costUsd, estimatedCostUsd }) => ({
      ...{ model, usage, usageSoFar, costUsd, estimatedCostUsd }
    }))
  }
  // A log that cannot be written has ended the run, and the step that this is part of hears of it.
  yield* Effect.ignore(run.journal.commit([spent]))
})
