/**
 * Random choices from a seed (mulberry32): the same seed makes the same plan.
 */
export interface Random {
  /** From 0 up to, and without, `below`. */
  readonly number: (below: number) => number
  readonly pick: <A>(choices: ReadonlyArray<A>) => A
}

export const makeRandom = (seed: number): Random => {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    number: (below) => next() * below,
    pick: (choices) => {
      const chosen = choices[Math.floor(next() * choices.length)]
      if (chosen === undefined) throw new RangeError("there is nothing to choose from")
      return chosen
    }
  }
}
