/**
 * An apply from the moment it is due until its requests are taken.
 */
import { Cause, Clock, Effect, Exit, Schema } from "effect"
import { ApplyFailed } from "../../DispatcherError.ts"
import { Applied, type Request } from "../../Improvements.ts"
import type { RecheckEvent } from "../../RecheckEvent.ts"
import { queue } from "../recheck/decide.ts"
import * as decide from "./decide.ts"
import { downOf } from "./failures.ts"
import { beginEnding, breakWith, happened, type Run, shown } from "./run.ts"
import { spanned } from "./span.ts"
import { applyName, type Applying } from "./state.ts"

type Improve = NonNullable<Run["workload"]["improve"]>

/** Begins an apply in a fiber of its own: nothing is claimed until it has ended. */
export const beginApply = (run: Run, improve: Improve) => Effect.uninterruptible(beginning(run, improve))

const beginning = Effect.fnUntraced(function* (run: Run, improve: Improve) {
  run.live.applying = true
  const again = run.state.applying !== undefined
  run.applying = {
    apply: run.state.applying?.apply ?? applyName(run.state.applies + 1),
    state: "waiting",
    fiber: undefined
  }
  run.changed()
  const fiber = yield* Effect.forkDetach(run.gate.write(apply(run, improve, again)))
  run.alive.add(fiber)
  if (run.applying !== undefined) run.applying.fiber = fiber
  fiber.addObserver((exit) => {
    const name = run.applying?.apply ?? ""
    run.alive.delete(fiber)
    run.applying = undefined
    run.live.applying = false
    // The host's failures are journaled; what is left is a storage that failed, which has ended the run before, or a
    // version that could not be read.
    if (Exit.isFailure(exit)) {
      const end = { _tag: "ApplyFailed", apply: name, reason: shown(exit.cause) } as const
      beginEnding(run, { _tag: "Broken", cause: exit.cause, end })
    }
    happened(run)
  })
})

const apply = Effect.fnUntraced(function* (run: Run, improve: Improve, again: boolean) {
  if (run.live.ending) return
  const begun = again ? run.state.applying : yield* begin(run)
  if (begun === undefined) return
  if (run.applying !== undefined) run.applying.state = "running"
  run.applies.push(begun.apply)
  run.changed()
  const exit = yield* Effect.exit(
    spanned(
      "shiftboss.apply",
      () => ({ apply: begun.apply, requests: begun.requests.length, again }),
      call(run, improve, begun, again)
    )
  )
  const at = yield* Clock.currentTimeMillis
  const { apply: name } = begun
  if (Exit.isSuccess(exit)) {
    const woken = begun.requests.flatMap((id) => run.state.pending.get(id)?.case ?? [])
    // One by one: to queue all that is woken and held anew would make each apply cost what waits beside it.
    const end = { _tag: "ApplyEnded", at, apply: name, applied: exit.value } as const
    // Not while a try is judged: what that brings to an end goes by the last apply.
    yield* run.judging.withPermit(
      Effect.suspend(() =>
        run.journal.commit([end, ...rechecksOf(run, name, exit.value, at)], () => {
          for (const id of woken) run.live.woken.push(id)
        })
      )
    )
    return
  }
  // Cut off: it stays begun, and is called again with the same name and batch at the next start.
  if (Cause.hasInterruptsOnly(exit.cause)) return
  const down = downOf(exit)
  if (down !== undefined) return breakWith(run, down)
  const reason = shown(exit.cause)
  yield* run.journal.commit([{ _tag: "ApplyFailed", at, apply: name, reason }])
  breakWith(run, new ApplyFailed({ apply: name, reason }))
})

/** Queued with the end of the apply, so that no crash falls between. */
const rechecksOf = (run: Run, apply: string, applied: Applied, at: number): ReadonlyArray<RecheckEvent> => {
  const { rechecks } = run.live
  if (applied._tag !== "Changed" || applied.from === applied.to) return []
  if (rechecks === undefined || rechecks.rechecks === 0) return []
  const { cases, phases } = run.state
  const revOf = (id: string) => {
    const selected = run.live.selection.byId.get(id)
    const record = cases.get(id)
    return selected !== undefined && record?.phase === "completed" && record.rev === decide.revOf(selected)
      ? record.rev
      : undefined
  }
  return [queue(run.state.rechecks, apply, { ids: phases.completed, revOf }, rechecks, at)]
}

/** Journals the batch before the host sees it: everything that is pending now. */
const begin = Effect.fnUntraced(function* (run: Run) {
  const version = run.workload.version === undefined ? run.state.version : yield* run.workload.version
  // Not while a change is being written: what it takes away would be in the batch.
  return yield* run.changes.withPermit(
    Effect.gen(function* () {
      if (run.state.pending.size === 0) return undefined // all were cancelled while it waited
      const begun: Applying = {
        apply: applyName(run.state.applies + 1),
        version,
        requests: [...run.state.pending.keys()]
      }
      yield* run.journal.commit([{ _tag: "ApplyStarted", at: yield* Clock.currentTimeMillis, ...begun }])
      return begun
    })
  )
})

const isApplied = Schema.is(Applied)

const call = Effect.fnUntraced(function* (run: Run, improve: Improve, begun: Applying, again: boolean) {
  const requests: Array<Request<unknown>> = []
  for (const id of begun.requests) {
    const request = run.state.pending.get(id)
    if (request === undefined) continue
    requests.push({ ...request, payload: yield* improve.request.decode(request.payload) })
  }
  const applied = yield* Effect.scoped(improve.apply({ name: begun.apply, again, version: begun.version, requests }))
  if (isApplied(applied)) return applied
  return yield* Effect.die(
    new Error(
      `apply ${begun.apply} answered with no outcome: return Improvements.changed(…) or Improvements.skipped(…)`
    )
  )
})
