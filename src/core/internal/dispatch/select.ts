/**
 * Reads the selection and checks it against itself and the log.
 */
import { Clock, Effect, Exit } from "effect"
import type { Case } from "../../Case.ts"
import { InvalidSelection } from "../../DispatcherError.ts"
import { revOf, select, type Selection } from "./decide.ts"
import { beginEnding, breakWith, changed, type ChangeEvent, type Run, shown } from "./run.ts"
import type { State } from "./state.ts"

/** Reads the selection in a fiber of its own: a host's database may take its time, and a stop does not wait for it. */
export const beginSelect = (run: Run) => Effect.uninterruptible(beginning(run))

const beginning = Effect.fnUntraced(function* (run: Run) {
  run.live.selecting = true
  // What happens while it is read makes it worth reading again; nothing else does.
  run.live.surveyed = true
  const fiber = yield* Effect.forkDetach(Effect.scoped(read(run)))
  run.selecting = fiber
  run.alive.add(fiber)
  fiber.addObserver((exit) => {
    run.alive.delete(fiber)
    run.selecting = undefined
    run.live.selecting = false
    run.live.selected = true
    if (Exit.isFailure(exit)) {
      const reason = shown(exit.cause)
      beginEnding(run, { _tag: "Broken", cause: exit.cause, end: { _tag: "SelectionFailed", reason } })
    }
    run.look.openUnsafe()
    run.changed()
  })
})

const read = Effect.fnUntraced(function* (run: Run) {
  const cases = yield* run.workload.cases
  if (isSame(run.live.selection, cases)) return
  yield* run.changes.withPermit(Effect.flatMap(Clock.currentTimeMillis, (at) => take(run, cases, at)))
})

/** Makes the cases the selection, in the same instant in which the new revs among them count. */
const take = Effect.fnUntraced(function* (run: Run, cases: ReadonlyArray<Case>, at: number) {
  const checked = check(run, cases, at)
  if (checked instanceof InvalidSelection) return breakWith(run, checked)
  const revised = checked.revised
    .filter((case_) => !run.live.running.has(case_.id) && !run.live.unwinding.has(case_.id))
    .map((case_): ChangeEvent => ({
      _tag: "CaseRevised",
      at,
      case: case_.id,
      rev: revOf(case_),
      from: run.state.cases.get(case_.id)?.rev ?? 1
    }))
  const taken = () => select(run.state, run.live, checked.selection)
  if (revised.length === 0) return taken()
  yield* changed(run, revised, taken)
})

/** The same cases again: nothing to check, nothing new. Compared one by one, for a host may change its array in place. */
const isSame = (known: Selection, cases: ReadonlyArray<Case>): boolean =>
  known.cases.length === cases.length && known.cases.every((case_, index) => case_ === cases[index])

const problem = (state: State, byId: ReadonlyMap<string, Case>, case_: Case): InvalidSelection | undefined => {
  const rev = revOf(case_)
  if (typeof case_.id !== "string" || case_.id === "") {
    return new InvalidSelection({
      case: String(case_.id),
      problem: "invalid id",
      detail: "an id is a string that is not empty; give each case one that never changes."
    })
  }
  if (!Number.isSafeInteger(rev) || rev < 1) {
    return new InvalidSelection({
      case: case_.id,
      problem: "invalid rev",
      detail: `its rev is ${String(rev)}; a rev is a whole number of at least 1, and 1 when it is left out.`
    })
  }
  if (byId.has(case_.id)) {
    return new InvalidSelection({
      case: case_.id,
      problem: "duplicate id",
      detail: "another case before it has the same id; give each its own, or select it once."
    })
  }
  const known = state.cases.get(case_.id)?.rev ?? 1
  if (rev < known) {
    return new InvalidSelection({
      case: case_.id,
      problem: "rev went back",
      detail: `its rev is ${rev}, but the log knows rev ${known}; give it a rev of at least that.`
    })
  }
  return undefined
}

const check = (run: Run, cases: ReadonlyArray<Case>, readAt: number) => {
  const { state } = run
  const byId = new Map<string, Case>()
  const revised: Array<Case> = []
  let fresh = 0
  for (const case_ of cases) {
    const wrong = problem(state, byId, case_)
    if (wrong !== undefined) return wrong
    byId.set(case_.id, case_)
    if (isFresh(run, case_)) fresh++
    const known = state.cases.get(case_.id)
    if (known !== undefined && known.rev < revOf(case_)) revised.push(case_)
  }
  return { selection: { cases: [...cases], byId, next: 0, fresh, readAt }, revised }
}

/** It waits to be claimed for the first time, or for the first time since it changed. */
export const isFresh = ({ occupants, state }: Run, case_: Case): boolean => {
  const rev = revOf(case_)
  const occupant = occupants.get(case_.id)
  if (occupant !== undefined && occupant.recheck === null) return occupant.rev < rev
  const known = state.cases.get(case_.id)
  if (known === undefined || known.phase === "open" || known.rev < rev) return true
  return known.phase === "failed" && known.failedIn < state.start
}
