/**
 * Failures of the host's functions on seats, as far as they concern the whole run.
 */
import { Cause, Exit } from "effect"
import { SystemDown } from "../../Case.ts"
import { BreakerTripped } from "../../DispatcherError.ts"
import { breakWith, type Run } from "./run.ts"

/** What everything stands on is down, says the host. */
export const downOf = (exit: Exit.Exit<unknown, unknown>): SystemDown | undefined => {
  if (Exit.isSuccess(exit)) return undefined
  for (const reason of exit.cause.reasons) {
    if (Cause.isFailReason(reason) && reason.error instanceof SystemDown) return reason.error
  }
  return undefined
}

/** A failure that nothing went through since the last one: as many in a row as the breaker allows end the run. */
export const charge = (run: Run, failure: Run["row"][number]): void => {
  run.row = [...run.row, failure]
  if (run.row.length >= run.options.failuresInARow) breakWith(run, new BreakerTripped({ failures: run.row }))
}
