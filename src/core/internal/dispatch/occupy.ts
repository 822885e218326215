/**
 * Work from the moment it gets its seat until it has left it.
 */
import { Deferred, Effect, type Exit, Fiber } from "effect"
import type { Case } from "../../Case.ts"
import type { Seat } from "../../Dispatcher.ts"
import { revOf } from "./decide.ts"
import { happened, type Memory, type Occupant, type OnRecheck, type Run } from "./run.ts"
import * as seat from "./seat.ts"
import { spanned } from "./span.ts"

/** What runs on a seat. */
export interface Work {
  readonly recheck: OnRecheck | null
  readonly memory: Memory
  /** The host's function. */
  readonly run: (seat: Seat<unknown>) => Effect.Effect<unknown, unknown>
}

export interface Piece {
  /** Journals what has to be known before; `undefined` when there is nothing to run. */
  readonly begin: (occupant: Occupant) => Effect.Effect<Work | undefined>
  /**
   * Journals how it left; `exit` is undefined when the host's function was not run or its seat was taken back. `leave`
   * frees the seat, in the same instant as that counts. Called once, and never fails.
   */
  readonly finish: (
    occupant: Occupant,
    exit: Exit.Exit<unknown, unknown> | undefined,
    leave: () => void
  ) => Effect.Effect<void>
}

/** What is not known to do anything yet. */
const nothing: Memory = {
  key: "",
  steps: () => undefined,
  holds: () => undefined,
  told: () => undefined,
  stepEnded: () => {
    throw new Error("a step ended of work that had not begun")
  }
}

/** Gives the case a seat, at that time, for a piece of work. The seat is free again when that is over; never fails. */
export const occupy = (run: Run, case_: Case, piece: Piece, now: number): Effect.Effect<unknown> => {
  const number = run.live.freeSeats.pop()
  if (number === undefined) return Effect.die("a case was claimed with no seat free")
  const occupant: Occupant = {
    case: case_.id,
    rev: revOf(case_),
    seat: number,
    recheck: null,
    memory: nothing,
    over: Deferred.makeUnsafe(),
    withdrawal: undefined,
    left: false,
    step: null,
    since: now
  }
  run.live.running.set(case_.id, number)
  run.occupants.set(case_.id, occupant)
  return Effect.forkDetach(Effect.uninterruptible(onSeat(run, piece, occupant)), { startImmediately: true })
}

// Without a generator, as all that a case goes through: at a few microseconds a case they would be a third of its cost.
const onSeat = (run: Run, piece: Piece, occupant: Occupant): Effect.Effect<void> => {
  const done = Effect.flatMap(piece.begin(occupant), (work) => {
    if (work === undefined) return Effect.undefined
    occupant.recheck = work.recheck
    occupant.memory = work.memory
    return occupant.withdrawal === undefined ? host(run, occupant, work) : Effect.undefined
  })
  return Effect.flatMap(done, (exit) => {
    occupant.left = true
    const finish = piece.finish(occupant, exit, () => {
      run.occupants.delete(occupant.case)
      run.live.running.delete(occupant.case)
      run.live.freeSeats.push(occupant.seat, occupant.seat)
    })
    return Effect.map(finish, () => happened(run))
  })
}

/**
 * Runs the host's function in a fiber of its own until it ends or the seat is taken back. Then its fiber is interrupted
 * from outside, whatever it catches, and only one that ignores even that outlives its seat: it is remembered as unwinding.
 */
const host = (run: Run, occupant: Occupant, work: Work): Effect.Effect<Exit.Exit<unknown, unknown> | undefined> => {
  const { case: id, rev, seat: number, recheck } = occupant
  const hosted = spanned(
    recheck === null ? "shiftboss.case" : "shiftboss.recheck",
    () => ({ case: id, rev, seat: number, ...recheck }),
    Effect.scoped(Effect.suspend(() => work.run(seat.make(run, occupant))))
  )
  return Effect.flatMap(Effect.forkDetach(Effect.interruptible(hosted), { startImmediately: true }), (fiber) => {
    const exit = fiber.pollUnsafe()
    if (exit !== undefined && occupant.withdrawal === undefined) return Effect.succeed(exit)
    run.alive.add(fiber)
    fiber.addObserver(() => {
      run.alive.delete(fiber)
      Deferred.doneUnsafe(occupant.over, Effect.void)
    })
    return Effect.flatMap(Deferred.await(occupant.over), () =>
      occupant.withdrawal === undefined ? Effect.succeed(fiber.pollUnsafe()) : unwind(run, occupant, fiber)
    )
  })
}

const unwind = Effect.fnUntraced(function* (run: Run, occupant: Occupant, fiber: Fiber.Fiber<unknown, unknown>) {
  fiber.interruptUnsafe()
  if (fiber.pollUnsafe() === undefined) {
    const gone = yield* Effect.timeoutOption(Effect.interruptible(Fiber.await(fiber)), run.options.grace)
    if (gone._tag === "None") unwinding(run, occupant, fiber)
  }
  return undefined
})

const unwinding = (run: Run, occupant: Occupant, fiber: Fiber.Fiber<unknown, unknown>) => {
  run.live.unwinding.add(occupant.case)
  fiber.addObserver(() => {
    run.live.unwinding.delete(occupant.case)
    ;(occupant.recheck === null ? run.live.woken : run.live.passedBy).push(occupant.case)
    happened(run)
  })
}
