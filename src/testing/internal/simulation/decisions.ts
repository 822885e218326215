/**
 * The one source of chance in a simulation. Every decision has a plain answer, 0; only the others are kept, so that a run is
 * told by the few places where it was not plain.
 */

/** A decision that was not the plain one: the `at`-th of its label, counted from 1. */
export interface Decision {
  readonly label: string
  readonly at: number
  readonly value: number
}

export type Tape = ReadonlyArray<Decision>

// -----------------------------------------------------------------------------
// tapes as text
// -----------------------------------------------------------------------------

const label = /^[a-z][\w.-]*$/i

/** `order@57=2 crash@1`; a value of 1 is left out. */
export const printTape = (tape: Tape): string =>
  tape.map(({ label, at, value }) => `${label}@${at}${value === 1 ? "" : `=${value}`}`).join(" ")

/** Nothing when the text is no tape. */
export const parseTape = (text: string): Tape | undefined => {
  const tape: Array<Decision> = []
  for (const word of text.split(" ").filter((word) => word !== "")) {
    const match = /^([a-z][\w.-]*)@(\d+)(?:=(\d+))?$/i.exec(word)
    if (match?.[1] === undefined) return undefined
    tape.push({ label: match[1], at: Number(match[2]), value: Number(match[3] ?? "1") })
  }
  return tape
}

// -----------------------------------------------------------------------------
// chance
// -----------------------------------------------------------------------------

const hashOf = (text: string, start: number): number => {
  let hash = start
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619)
  return hash
}

/** sfc32 (PractRand): small, fast, and good enough to choose with. */
export class Chance {
  private a: number
  private b = 0x243f6a88
  private c = 0xb7e15162
  private counter: number

  /** Each name is a sequence of its own: one draw more under a name leaves all others as they were. */
  constructor(seed: number, name: string) {
    this.a = hashOf(name, 0x811c9dc5 ^ seed)
    this.counter = Math.trunc(seed / 2 ** 32) | 0
    for (let round = 0; round < 16; round++) this.next()
  }

  private next(): number {
    const sum = (this.a + this.b + this.counter) | 0
    this.counter = (this.counter + 1) | 0
    this.a = this.b ^ (this.b >>> 9)
    this.b = (this.c + (this.c << 3)) | 0
    this.c = (((this.c << 21) | (this.c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** From 0 to below 1, with the 53 bits that such a number has. */
  fraction(): number {
    return ((this.next() >>> 5) * 67_108_864 + (this.next() >>> 6)) / 9_007_199_254_740_992
  }

  below(end: number): number {
    return Math.floor(this.fraction() * end)
  }
}

// -----------------------------------------------------------------------------
// decisions
// -----------------------------------------------------------------------------

interface Label {
  readonly chance: Chance
  readonly taped: ReadonlyMap<number, number> | undefined
  count: number
}

const offset = 0x811c9dc5 | 0

export class Decisions {
  /** Those that were not plain, in the order they were made. */
  readonly made: Array<Decision> = []
  /** Equal for two runs exactly when they decided the same in the same order. */
  trace = offset

  readonly seed: number
  private readonly taped: ReadonlyMap<string, ReadonlyMap<number, number>> | undefined
  private readonly labels = new Map<string, Label>()

  /** With a tape nothing is drawn: what it does not say is plain. */
  constructor(seed: number, tape?: Tape) {
    this.seed = seed
    if (tape === undefined) return
    const taped = new Map<string, Map<number, number>>()
    for (const { label, at, value } of tape) {
      const values = taped.get(label) ?? new Map<number, number>()
      taped.set(label, values.set(at, value))
    }
    this.taped = taped
  }

  /** A number from 0 to below `below`: one that `draw` chose, or what the tape says. */
  decide(name: string, below: number, draw: (chance: Chance) => number): number {
    const label = this.labelOf(name)
    const at = ++label.count
    const value = label.taped === undefined ? draw(label.chance) : Math.min(label.taped.get(at) ?? 0, below - 1)
    this.note(value)
    if (value !== 0) this.made.push({ label: name, at, value })
    return value
  }

  /** Whether the tape has a 1 there; `undefined` without a tape. For decisions too many to make one by one. */
  isTaped(name: string, at: number): boolean | undefined {
    return this.taped === undefined ? undefined : this.taped.get(name)?.has(at) === true
  }

  /** A decision that was found to be due by other means. */
  found(name: string, at: number): void {
    this.note(at)
    this.made.push({ label: name, at, value: 1 })
  }

  /** Makes something that happened part of the trace. */
  note(value: number): void {
    this.trace = (Math.imul(this.trace ^ value, 16777619) + 1) | 0
  }

  private labelOf(name: string): Label {
    const known = this.labels.get(name)
    if (known !== undefined) return known
    if (!label.test(name)) {
      throw new RangeError(`a decision is called "${name}"; give it letters, digits, points and dashes only`)
    }
    const taped = this.taped === undefined ? undefined : (this.taped.get(name) ?? new Map<number, number>())
    const made: Label = { chance: new Chance(this.seed, name), taped, count: 0 }
    this.labels.set(name, made)
    return made
  }
}
