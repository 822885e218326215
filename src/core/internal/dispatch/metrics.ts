/**
 * What a dispatcher tells Effect's metrics.
 */
import { type Effect, Metric } from "effect"

const cases = Metric.counter("shiftboss_cases", {
  description: "Cases that left their seat, by how.",
  incremental: true
})
const steps = Metric.counter("shiftboss_steps", { description: "Steps that ended.", incremental: true })
const applies = Metric.counter("shiftboss_applies", { description: "Applies that ended, by how.", incremental: true })

export const stepsEnded: Effect.Effect<void> = Metric.update(steps, 1)

export const caseLeft = (how: string): Effect.Effect<void> => Metric.update(Metric.withAttributes(cases, { how }), 1)

export const applyEnded = (how: string): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(applies, { how }), 1)

const rechecks = Metric.counter("shiftboss_rechecks", {
  description: "Rechecks that ended, by how.",
  incremental: true
})

export const recheckEnded = (how: string): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(rechecks, { how }), 1)
