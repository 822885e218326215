/**
 * Numbers that agents told, made fit to be added up and waited for: one that is none is unknown.
 */
import type { AgentResult } from "../../AgentLauncher.ts"
import { Failure } from "../../Failure.ts"
import type { Usage } from "../../Usage.ts"

/** A limit that is said to end after this (the year 2286) ends at a time that was misread. */
const farthest = 10_000_000_000_000

/** Something used; a number below zero would give the budget back what others have spent. */
const amount = (told: number | null): number | null =>
  told !== null && Number.isFinite(told) && told >= 0 ? told : null

export const soundUsage = (usage: Usage): Usage => ({
  input: amount(usage.input),
  output: amount(usage.output),
  cacheRead: amount(usage.cacheRead),
  cacheWrite: amount(usage.cacheWrite),
  reasoning: amount(usage.reasoning)
})

export const soundResult = (result: AgentResult): AgentResult => ({
  ...result,
  usage: result.usage && soundUsage(result.usage),
  costUsd: amount(result.costUsd),
  turns: amount(result.turns)
})

export const soundFailure = (failure: Failure): Failure => {
  const { resetAt, ...rest } = failure
  return resetAt !== undefined && Math.abs(resetAt) <= farthest ? failure : new Failure(rest)
}
