/**
 * All scenarios. Whoever adds an event adds it to one of them, or one of their own here, and writes the corpus anew.
 */
import type { Scenario } from "./scenario.ts"
import { dispatcher, stops } from "./scenarios/dispatcher.ts"
import { plain } from "./scenarios/plain.ts"
import { rechecks } from "./scenarios/rechecks.ts"
import { keptSchedules, pendingSkip, runs, schedules } from "./scenarios/schedules.ts"
import { keptTurns, turns } from "./scenarios/turns.ts"

export const scenarios: ReadonlyArray<Scenario> = [
  ...[plain, dispatcher, rechecks, stops, turns, keptTurns, schedules, keptSchedules, pendingSkip, runs]
]
