/**
 * The turns that wait for a wall, and which of them are woken when one changes.
 */
export interface Waiters {
  /** It was told to wait by one of these walls. */
  readonly add: (turnId: string, walls: ReadonlyArray<string>) => void
  /** It does not wait any more. Answers the walls it was woken for and has not asked again since. */
  readonly remove: (turnId: string) => ReadonlyArray<string>
  /**
   * Was it woken since it was told to wait, if only between that answer and the wait? One that was told so before this
   * process is woken from now on.
   */
  readonly isWoken: (turnId: string) => boolean
  readonly wakeAll: () => void
  /** Only one can be the next probe: to wake thousands each time would be of no use to the others. */
  readonly wakeNext: (wall: string) => void
}

interface Waiter {
  readonly walls: ReadonlyArray<string>
  woken: boolean
}

export const makeWaiters = (wake: (turnId: string) => void): Waiters => {
  const waiters = new Map<string, Waiter>()

  const wakeOne = (turnId: string) => {
    const waiter = waiters.get(turnId)
    if (waiter === undefined) return
    waiter.woken = true
    wake(turnId)
  }

  const add = (turnId: string, walls: ReadonlyArray<string>) => void waiters.set(turnId, { walls, woken: false })

  return {
    add,
    remove: (turnId) => {
      const waiter = waiters.get(turnId)
      waiters.delete(turnId)
      return waiter?.woken ? waiter.walls : []
    },
    isWoken: (turnId) => {
      if (!waiters.has(turnId)) add(turnId, [])
      return waiters.get(turnId)?.woken === true
    },
    // Copied first: one that is woken may ask at once, and be told to wait again.
    wakeAll: () => [...waiters.keys()].forEach(wakeOne),
    wakeNext: (wall) => {
      for (const [turnId, { walls, woken }] of waiters) {
        if (!woken && walls.includes(wall)) return wakeOne(turnId)
      }
    }
  }
}
