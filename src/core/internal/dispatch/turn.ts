/**
 * A turn on a seat: its attempts are the retry policy's, its waits are the dispatcher's.
 */
import { Effect } from "effect"
import type { SeatTurn } from "../../Dispatcher.ts"
import { TurnFailed } from "../../DispatcherError.ts"
import { RetryPolicy } from "../../RetryPolicy.ts"
import type { TurnDone, TurnOutcome } from "../../Turn.ts"
import { breakWith, type Run, spentUsd } from "./run.ts"

/** The turn has to wait until then: off its seat. */
export interface Waits {
  readonly _tag: "Waits"
  readonly until: number
}

/**
 * Runs the turn until it has answered or has to wait. A journal of turns that cannot be written ends the run, as the
 * dispatcher's own does.
 */
export const run = Effect.fnUntraced(function* (run: Run, turnId: string, asked: SeatTurn) {
  const policy = yield* RetryPolicy
  const { reads: _, ...turn } = asked
  return yield* policy.run({ ...turn, id: turnId, rules: { ...turn.rules, inlineWait: 0 } }).pipe(
    Effect.matchEffect({
      onSuccess: (outcome) => settle(run, outcome),
      onFailure: (error) => {
        if (error._tag === "Held") return Effect.succeed<Waits>({ _tag: "Waits", until: error.until })
        if (error._tag === "TurnRunning") return Effect.die(error)
        breakWith(run, error)
        return Effect.never
      }
    })
  )
})

const settle = (run: Run, outcome: TurnOutcome): Effect.Effect<TurnDone, TurnFailed> => {
  charge(run, outcome)
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

/** What attempts of earlier runs cost was charged to those. */
const charge = (run: Run, { turnId, attempts }: TurnOutcome): void => {
  const ours = attempts.filter((attempt) => attempt.startedAt >= run.startedAt)
  run.spent.set(
    turnId,
    ours.reduce((sum, attempt) => sum + (attempt.costUsd ?? attempt.estimatedCostUsd ?? 0), 0)
  )
  run.live.spent = spentUsd(run) >= run.options.budgetUsd
}
