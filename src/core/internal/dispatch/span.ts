/**
 * Spans of what a run does.
 */
import { Effect, Tracer } from "effect"

/** A span, but only where a tracer sees it: without one it would be a third of what a step costs. */
export const spanned = <A, E, R>(
  name: string,
  attributes: () => Record<string, unknown>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) =>
    fiber.getRef(Tracer.Tracer) === Tracer.nativeTracer
      ? effect
      : (Effect.withSpan(effect, name, { attributes: attributes(), captureStackTrace: false }) as typeof effect)
  )
