/**
 * What a process is to a scenario: services that are made anew on the logs of the last.
 */
import { Effect, Layer } from "effect"
import { AgentLauncher, Shiftboss } from "shiftboss"
import { ScriptedLauncher } from "shiftboss/testing"
import { passing } from "../../core/dispatch/support.ts"

const launcher = ScriptedLauncher.layer((attempt) =>
  AgentLauncher.succeeded(`answered ${attempt.turnId}`, { costUsd: 1.5, sessionId: "session-1", model: "model-1" })
)

/** Runs the program in a process of its own, and lets time pass until it has ended. */
export const start = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  passing(Effect.provide(program, Layer.fresh(Shiftboss.layer.pipe(Layer.provide(launcher)))))
