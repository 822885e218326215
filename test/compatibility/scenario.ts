/**
 * A program that leaves logs behind: the services at work on a storage, under a clock and a seed of its own, so that it
 * leaves the same bytes each time.
 */
import type { Effect, Scope } from "effect"
import type { Storage } from "shiftboss"
import type { FormatName } from "./formats.ts"

export interface Scenario {
  /** Names its folder in the corpus. */
  readonly name: string
  /** What it leaves, and which format that is. */
  readonly logs: { readonly [log: string]: FormatName }
  readonly play: Effect.Effect<void, unknown, Storage.Storage | Scope.Scope>
}

/** When every scenario begins: the first of January 2026. */
export const beginning = 1_767_225_600_000
