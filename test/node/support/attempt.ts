import { Duration } from "effect"
import type { AgentLauncher } from "shiftboss"

export const id = "11111111-2222-4333-8444-555555555555"

export const attemptOf = (given: Partial<AgentLauncher.Attempt> = {}): AgentLauncher.Attempt => ({
  turnId: "turn",
  number: 1,
  prompt: "say hello",
  session: { _tag: "New", id },
  limits: { silence: Duration.minutes(10), wallClock: Duration.hours(1) },
  ...given
})
