/** Adds a timer to those in the order in which they are due: behind all that are due at the same time. */
export const addTimer = <T extends { readonly due: number }>(timers: Array<T>, timer: T): void => {
  let low = 0
  let high = timers.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (timers[middle]!.due <= timer.due) low = middle + 1
    else high = middle
  }
  timers.splice(low, 0, timer)
}
