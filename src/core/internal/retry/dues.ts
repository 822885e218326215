/**
 * What is due by one of two clocks, whichever comes first, and found without looking at all of it: thousands of turns may wait.
 */
import { Heap } from "../Heap.ts"

export interface Due {
  readonly turnId: string
  /** By the wall clock. */
  readonly due: number
  /** By a clock that is never set. */
  readonly latest: number
}

export interface Dues<A extends Due> {
  /** In place of what there was of that turn. */
  readonly add: (one: A) => void
  readonly remove: (one: A) => void
  readonly has: (one: A) => boolean
  readonly of: (turnId: string) => A | undefined
  readonly all: () => ReadonlyArray<A>
  readonly size: () => number
  /** What is over when the clocks show this, to be asked once and removed, and the milliseconds until anything else is. */
  readonly take: (now: number, running: number) => { readonly over: ReadonlySet<A>; readonly left: number }
}

export const makeDues = <A extends Due>(): Dues<A> => {
  const turns = new Map<string, A>()
  /** What was removed is left in and passed over. */
  const byDue = new Heap<A>()
  const byLatest = new Heap<A>()

  const has = (one: A) => turns.get(one.turnId) === one

  const push = (one: A) => {
    byDue.push(one.due, one)
    byLatest.push(one.latest, one)
  }

  const takeFrom = (heap: Heap<A>, now: number, over: Set<A>): number => {
    for (let one = heap.peek(); one !== undefined && (heap.least <= now || !has(one)); one = heap.peek()) {
      heap.pop()
      if (has(one)) over.add(one)
    }
    return heap.least - now
  }

  return {
    add: (one) => {
      turns.set(one.turnId, one)
      push(one)
      // Waits that end early must not pile up in a heap whose times are far away.
      if (byDue.size + byLatest.size < 4 * turns.size + 1000) return
      byDue.clear()
      byLatest.clear()
      turns.forEach(push)
    },
    remove: (one) => {
      if (has(one)) turns.delete(one.turnId)
    },
    has,
    of: (turnId) => turns.get(turnId),
    all: () => [...turns.values()],
    size: () => turns.size,
    take: (now, running) => {
      const over = new Set<A>()
      return { over, left: Math.min(takeFrom(byDue, now, over), takeFrom(byLatest, running, over)) }
    }
  }
}
