/**
 * Work from the moment it gets its seat until it has left it.
 */
import { Effect, type Exit, Fiber } from "effect"
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
  /** Journals what has to be known before; false when it is not to run after all. Absent when there is nothing to say. */
  readonly before: ((occupant: Occupant) => Effect.Effect<boolean>) | undefined
  /** Asked once, after `before`; `undefined` when there is nothing to run. */
  readonly work: () => Work | undefined
  /**
   * Journals how it left, without waiting for the storage; `exit` is undefined when the host's function was not run or its
   * seat was taken back. Called once, and never fails.
   */
  readonly finish: (
    occupant: Occupant,
    exit: Exit.Exit<unknown, unknown> | undefined,
    leaving: Leaving
  ) => Effect.Effect<unknown>
}

export interface Leaving {
  /** Gives the seat to others while the end is being written; until `leave` it still runs, as far as anybody sees. */
  readonly freeSeat: () => void
  /** It runs no more, and its seat is free. */
  readonly leave: () => void
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
export const occupy = (run: Run, case_: Case, piece: Piece, now: number): Effect.Effect<unknown> =>
  Effect.uninterruptible(
    Effect.suspend(() => {
      const number = run.live.freeSeats.pop()
      if (number === undefined) return Effect.die("a case was claimed with no seat free")
      const occupant: Occupant = {
        case: case_.id,
        rev: revOf(case_),
        seat: number,
        recheck: null,
        memory: nothing,
        takeBack: undefined,
        withdrawal: undefined,
        left: false,
        step: null,
        since: now
      }
      run.live.running.set(case_.id, number)
      run.occupants.set(case_.id, occupant)
      if (piece.before === undefined) return start(run, occupant, piece)
      run.live.beginning++
      const begun = Effect.flatMap(piece.before(occupant), (ready) =>
        ready ? start(run, occupant, piece) : over(run, occupant, piece, undefined)
      ).pipe(
        Effect.ensuring(
          Effect.sync(() => {
            run.live.beginning--
            run.look.openUnsafe()
          })
        )
      )
      return Effect.forkDetach(begun, { startImmediately: true, uninterruptible: true })
    })
  )

/**
 * Runs the host's function in a fiber of its own until it ends or the seat is taken back. Then its fiber is interrupted
 * from outside, whatever it catches, and only one that ignores even that outlives its seat: it is remembered as unwinding.
 */
const start = (run: Run, occupant: Occupant, piece: Piece): Effect.Effect<unknown> => {
  const work = occupant.withdrawal === undefined ? piece.work() : undefined
  if (work === undefined) return over(run, occupant, piece, undefined)
  occupant.recheck = work.recheck
  occupant.memory = work.memory
  return Effect.flatMap(Effect.forkDetach(hosted(run, occupant, work), { startImmediately: true }), (fiber) => {
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return over(run, occupant, piece, exit)
    run.alive.add(fiber)
    fiber.addObserver((exit) => {
      run.alive.delete(fiber)
      run.supervisor.hand(over(run, occupant, piece, exit))
    })
    occupant.takeBack = () => {
      fiber.interruptUnsafe()
      run.supervisor.hand(enforceGrace(run, occupant, piece, fiber))
    }
    if (occupant.withdrawal !== undefined) occupant.takeBack()
    return Effect.void
  })
}

const hosted = (run: Run, occupant: Occupant, work: Work) => {
  const { case: id, rev, seat: number, recheck } = occupant
  return spanned(
    recheck === null ? "shiftboss.case" : "shiftboss.recheck",
    () => ({ case: id, rev, seat: number, ...recheck }),
    Effect.scoped(Effect.suspend(() => work.run(seat.make(run, occupant))))
  )
}

/** The work is over, or never began. One that outlived its seat can be seated again. */
const over = (run: Run, occupant: Occupant, piece: Piece, exit: Exit.Exit<unknown, unknown> | undefined) =>
  Effect.suspend(() => {
    if (occupant.left) return Effect.sync(() => unwound(run, occupant))
    occupant.left = true
    return piece.finish(occupant, occupant.withdrawal === undefined ? exit : undefined, leaving(run, occupant))
  })

/** Seats are given on while the ends of so many cases are still being written: a crash takes those up again. */
const mostEnding = 1024

const leaving = (run: Run, { case: id, seat: number }: Occupant): Leaving => {
  const { freeSeats, running } = run.live
  let sits = true
  const free = () => {
    if (sits) freeSeats.push(number, number)
    sits = false
  }
  return {
    freeSeat: () => {
      if (running.size >= mostEnding + run.options.seats) return
      free()
      run.look.openUnsafe()
    },
    leave: () => {
      run.occupants.delete(id)
      running.delete(id)
      free()
    }
  }
}

/** Waits for a fiber that was interrupted, and gives its seat to others when it does not end. */
const enforceGrace = (run: Run, occupant: Occupant, piece: Piece, fiber: Fiber.Fiber<unknown, unknown>) =>
  Effect.suspend(() => {
    if (occupant.left) return Effect.void
    const ended = Effect.timeoutOption(Fiber.await(fiber), run.options.grace)
    const leftBehind = Effect.suspend(() => {
      if (occupant.left) return Effect.void
      run.live.unwinding.add(occupant.case)
      return over(run, occupant, piece, undefined)
    })
    return Effect.forkDetach(
      Effect.flatMap(ended, () => Effect.uninterruptible(leftBehind)),
      { startImmediately: true }
    )
  })

const unwound = (run: Run, { case: id }: Occupant): void => {
  const { passedBy, unwinding, woken } = run.live
  unwinding.delete(id)
  // In whichever lane it is by now.
  woken.push(id)
  passedBy.push(id)
  happened(run)
}
