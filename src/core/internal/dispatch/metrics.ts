/**
 * What a dispatcher tells Effect's metrics.
 */
import { type Effect, Metric } from "effect"

/** Made once for each way: a metric finds its place among all others by a key that it keeps. */
const counted = <How extends string>(
  metric: Metric.Counter<number>,
  ...ways: ReadonlyArray<How>
): { readonly [how in How]: Effect.Effect<void> } =>
  Object.fromEntries(ways.map((how) => [how, Metric.update(Metric.withAttributes(metric, { how }), 1)])) as {
    readonly [how in How]: Effect.Effect<void>
  }

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })

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

export const stepsEnded: Effect.Effect<void> = Metric.update(counter("shiftboss_steps", "Steps that ended."), 1)

export const caseLeft = (how: keyof typeof cases): Effect.Effect<void> => cases[how]

export const applyEnded = (how: keyof typeof applies): Effect.Effect<void> => applies[how]

export const recheckEnded = (how: keyof typeof rechecks): Effect.Effect<void> => rechecks[how]
