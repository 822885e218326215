/**
 * What a dispatcher tells Effect's metrics: what its log says, as soon as that counts.
 */
import { type Context, Metric } from "effect"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"

/** Adds one to a metric of whoever's context this is. */
type Count = (context: Context.Context<never>) => void

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })

const counts = (metric: Metric.Counter<number>): Count => {
  return (context) => metric.updateUnsafe(1, context)
}

/** Made once for each way: a metric finds its place among all others by a key that it keeps. */
const counted = <How extends string>(metric: Metric.Counter<number>, ...ways: ReadonlyArray<How>) =>
  Object.fromEntries(ways.map((how) => [how, counts(Metric.withAttributes(metric, { how }))])) as {
    readonly [how in How]: Count
  }

const cases = counted(
  counter("shiftboss_cases", "Cases that left their seat, by how."),
  ...(["completed", "difficult", "failed", "parked", "held", "stopped"] as const)
)
const applies = counted(
  counter("shiftboss_applies", "Applies that ended, by how."),
  ...(["Changed", "Skipped", "Failed"] as const)
)
const rechecks = counted(
  counter("shiftboss_rechecks", "Rechecks that ended, by how."),
  ...(["Passed", "Regressed", "Void"] as const)
)
const steps = counts(counter("shiftboss_steps", "Steps that ended."))

/** Of a case that left its seat with nothing to say: it will be taken up again as it is. */
export const stopped: Count = cases.stopped

const countOf = (event: DispatcherEvent): Count | undefined => {
  switch (event._tag) {
    case "StepEnded":
    case "RecheckStepEnded":
      return steps
    case "CaseCompleted":
      return cases.completed
    case "CaseDifficult":
      return cases.difficult
    case "CaseFailed":
      return cases.failed
    case "CaseParked":
      return cases.parked
    case "CaseHeld":
      return cases.held
    case "ApplyEnded":
      return applies[event.applied._tag]
    case "ApplyFailed":
      return applies.Failed
    case "RecheckEnded":
      return rechecks[event.outcome._tag]
    default:
      return undefined
  }
}

export const count = (event: DispatcherEvent, context: Context.Context<never>): void => countOf(event)?.(context)
