/**
 * The conservation law, read off the entries of a journal without any of its code: every slot is one of ran, skipped
 * and pending, exactly once, and none before its time.
 */
import type { ScheduleJournal } from "shiftboss"

export interface Account {
  readonly slots: Map<number, string>
  readonly runIds: Map<number, string>
  /** The times of slots not taken up, in order; endless, so it is asked by number. */
  readonly dueAt: (slot: number) => number
  readonly isFiring: boolean
}

interface Grid {
  readonly first: number
  readonly at: number
  readonly every: number
}

/** Goes through the entries of one schedule, slot by slot. Throws at the first one that breaks the law. */
export const account = (entries: ReadonlyArray<ScheduleJournal.ScheduleEvent>): Account => {
  const slots = new Map<number, string>()
  const runIds = new Map<number, string>()
  let grid: Grid = { first: 1, at: Infinity, every: 1 }
  let [state, isDeclared] = ["active", false]
  let pending: { readonly slots: ReadonlyArray<number>; readonly runId?: string } | undefined
  const broken = (what: string) => new Error(`${what}: ${JSON.stringify(entries.slice(-6))}`)
  const dueAt = (slot: number) => grid.at + (slot - grid.first) * grid.every
  const begin = (at: number, every = grid.every) => (grid = { first: slots.size + 1, at, every })
  const settle = (outcome: string) => {
    for (const slot of pending?.slots ?? []) {
      if (slots.get(slot) !== "pending") throw broken(`slot ${slot} is settled twice`)
      slots.set(slot, outcome)
    }
    pending = undefined
  }
  for (const entry of entries) {
    switch (entry._tag) {
      case "ScheduleDeclared":
        if (entry.nextAt <= entry.at) throw broken("declaring fires at once")
        begin(entry.nextAt, (entry.everySeconds ?? 0) * 1000)
        isDeclared = true
        break
      case "ScheduleResumed":
        if (entry.nextAt <= entry.at) throw broken("resuming fires at once")
        begin(entry.nextAt)
        state = "active"
        break
      case "GridMoved":
        if (entry.nextAt - entry.at < grid.every) throw broken("a slot comes too soon after the clock was set back")
        begin(entry.nextAt)
        break
      case "SchedulePaused":
      case "ScheduleStopped":
        state = "resting"
        break
      case "ScheduleRemoved":
        isDeclared = false
        break
      case "SlotPending": {
        if (pending !== undefined) throw broken("two are pending")
        const { plan } = entry
        if (plan._tag === "Run" && plan.slot === null) {
          pending = { slots: [], runId: plan.runId }
          break
        }
        const [first, last] = plan._tag === "Skip" ? [plan.first, plan.last] : [plan.slot ?? 0, plan.slot ?? 0]
        if (state !== "active" || !isDeclared) throw broken("a slot is taken up while the schedule rests")
        if (first !== slots.size + 1) throw broken(`slot ${first} follows ${slots.size}`)
        if (last - first > 100_000) throw broken("more slots than a test goes through")
        const taken = Array.from({ length: last - first + 1 }, (_, i) => first + i)
        for (const slot of taken) {
          if (dueAt(slot) > entry.at) throw broken(`slot ${slot} is taken up before its time`)
          if (slots.has(slot)) throw broken(`slot ${slot} is taken up twice`)
          slots.set(slot, "pending")
        }
        if (plan._tag === "Run") runIds.set(first, plan.runId)
        pending = { slots: taken, ...(plan._tag === "Run" ? { runId: plan.runId } : {}) }
        break
      }
      case "RunAccepted":
        if (pending?.runId !== entry.runId) throw broken("a run is accepted that was not pending")
        settle("ran")
        break
      case "RunRefused":
        settle(`skipped: ${entry.reason}`)
        break
      case "SlotsSkipped":
        settle(`skipped: ${entry.reason}`)
        break
    }
  }
  return { slots, runIds, dueAt, isFiring: state === "active" && isDeclared }
}
