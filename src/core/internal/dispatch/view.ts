/**
 * What is shown of a run, and of a log without one. Costs what is shown, never a walk over all cases.
 */
import type { Snapshot, Summary } from "../../Dispatcher.ts"
import type { Run } from "./run.ts"
import type { State } from "./state.ts"
import { rows } from "./usage.ts"

const oldest = (state: State, run: Run | undefined, ids: Set<string>): number | null => {
  for (const id of ids) if (run?.occupants.has(id) !== true) return state.cases.get(id)?.since ?? null
  return null
}

/** A woken case keeps its phase while it runs: on a seat it no longer waits. */
const waitingIn = (run: Run | undefined, ids: Set<string>): number => {
  let running = 0
  for (const id of run?.occupants.keys() ?? []) if (ids.has(id)) running++
  return ids.size - running
}

const isOnSeat = (run: Run | undefined, id: string): boolean => (run?.occupants.get(id)?.recheck ?? null) !== null

const waitingRechecks = ({ rechecks: { open } }: State, run: Run | undefined): number => {
  let running = 0
  for (const id of run?.occupants.keys() ?? []) if (open.has(id) && isOnSeat(run, id)) running++
  return open.size - running
}

const oldestRecheck = ({ rechecks: { open } }: State, run: Run | undefined): number | null => {
  for (const { case: id, queuedAt } of open.values()) if (!isOnSeat(run, id)) return queuedAt
  return null
}

/** Without a run: as the log says. */
export const snapshotOf = (state: State, run: Run | undefined): Snapshot => {
  const { phases } = state
  return {
    run: run === undefined ? "none" : run.live.ending ? "stopping" : "running",
    seats: run === undefined ? [] : seatsOf(run),
    waiting: {
      woken: waitingIn(run, phases.woken),
      fresh: run?.live.selection.fresh ?? 0,
      parked: waitingIn(run, phases.parked),
      held: waitingIn(run, phases.held),
      rechecks: waitingRechecks(state, run),
      requests: state.pending.size
    },
    oldestWaiting: {
      woken: oldest(state, run, phases.woken),
      rechecks: oldestRecheck(state, run),
      fresh: run === undefined || run.live.selection.fresh === 0 ? null : run.live.selection.readAt,
      parked: oldest(state, run, phases.parked),
      held: oldest(state, run, phases.held)
    },
    applying: run?.applying === undefined ? null : { apply: run.applying.apply, state: run.applying.state },
    counts: { completed: phases.completed.size, difficult: phases.difficult.size, failed: phases.failed.size },
    rechecks: { ...state.rechecks.counts },
    usage: rows(state.usage),
    version: state.version,
    spentUsd: run?.spentUsd ?? 0,
    end: state.end
  }
}

const seatsOf = (run: Run): Snapshot["seats"] => {
  const seats: Array<Snapshot["seats"][number]> = Array.from({ length: run.options.seats }, () => null)
  for (const { seat, case: id, recheck, step, since, left } of run.occupants.values()) {
    if (!left) seats[seat - 1] = { case: id, recheck, step, since }
  }
  return seats
}

export const summarize = (run: Run): Summary<never> => {
  const { cases, end, phases } = run.state
  const reasons = (ids: Set<string>) => Array.from(ids, (id) => ({ case: id, reason: cases.get(id)?.reason ?? "" }))
  return {
    end: end ?? { _tag: "Finished" },
    // The log holds what `train` completed with, so the value is of the type that the workload says.
    completed: Array.from(phases.completed, (id) => ({ case: id, value: cases.get(id)?.value as never })),
    difficult: reasons(phases.difficult),
    failed: reasons(phases.failed),
    waiting: [...phases.parked, ...phases.woken, ...phases.held],
    applies: run.applies,
    rechecks: run.rechecked
  }
}
