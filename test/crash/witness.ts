/**
 * What the logs have to hold by what was told outside of them: all that was acknowledged, nothing that was never
 * attempted, each call whole or not at all, in the order of the calls.
 */
import type { Storage } from "shiftboss"
import type { Told } from "./told.ts"

interface Call {
  readonly operation: "append" | "replace"
  readonly entries: ReadonlyArray<string>
  acknowledged: boolean
}

type Texts = ReadonlyArray<string>

export interface Witness {
  readonly hear: (told: Told) => void
  /** Ids of attempts begin again with each process. */
  readonly died: () => void
  readonly logs: () => Iterable<string>
  /** What is wrong with the content of the log as it was found after a crash. From then on it is what was there. */
  readonly compare: (log: string, found: ReadonlyArray<Storage.Json>) => string | undefined
}

const startsAt = (found: Texts, from: number, entries: Texts) =>
  entries.every((entry, index) => found[from + index] === entry)

/** The content after the calls so far is not a beginning of what was found. */
const astray = -1

const after = (found: Texts, position: number, { operation, entries }: Call): number => {
  const from = operation === "replace" ? 0 : position
  return from !== astray && startsAt(found, from, entries) ? from + entries.length : astray
}

/** Follows every content that the calls can have led to, as the number of entries found that it is made of. */
const problemOf = (found: Texts, base: Texts, calls: ReadonlyArray<Call>): string | undefined => {
  let positions = new Set([startsAt(found, 0, base) ? base.length : astray])
  let problem: string | undefined
  const note = (what: string) => {
    if (positions.size === 1 && positions.has(astray)) problem ??= what
    else problem = undefined
  }
  note(`one of the ${base.length} entries that were there has changed or is missing`)
  for (const call of calls) {
    const reached = Array.from(positions, (position) => after(found, position, call))
    positions = new Set(call.acknowledged ? reached : [...positions, ...reached])
    note(`acknowledged, and not there: ${call.operation} ${call.entries.join(" ")}`)
  }
  if (positions.has(found.length)) return undefined
  return problem ?? `never attempted, or not as a whole: ${found.slice(Math.max(...positions)).join(" ")}`
}

export const makeWitness = (): Witness => {
  const bases = new Map<string, Texts>()
  const calls = new Map<string, Array<Call>>()
  const living = new Map<number, Call>()
  return {
    hear: (told) => {
      if (told._tag === "Attempted") {
        const entries = told.entries.map((entry) => JSON.stringify(entry))
        const call: Call = { operation: told.operation, entries, acknowledged: false }
        living.set(told.id, call)
        calls.set(told.log, [...(calls.get(told.log) ?? []), call])
      }
      if (told._tag === "Acknowledged") {
        const call = living.get(told.id)
        if (call === undefined) throw new Error(`attempt ${told.id} was acknowledged, but never made`)
        call.acknowledged = true
      }
    },
    died: () => living.clear(),
    logs: () => new Set([...bases.keys(), ...calls.keys()]),
    compare: (log, found) => {
      const texts = found.map((entry) => JSON.stringify(entry))
      const problem = problemOf(texts, bases.get(log) ?? [], calls.get(log) ?? [])
      bases.set(log, texts)
      calls.delete(log)
      return problem
    }
  }
}
