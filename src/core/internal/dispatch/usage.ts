/**
 * What turns used, by what they were part of, stage and model: a fold of the events that tell of it.
 */
import type { UsageRow } from "../../Dispatcher.ts"
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Total } from "../../Turn.ts"

type TurnSpent = Extract<DispatcherEvent, { readonly _tag: "TurnSpent" }>

const fields = ["input", "output", "cacheRead", "cacheWrite", "reasoning"] as const

/** What is known of one sort of usage, and of how many attempts it is the whole. */
interface Part {
  known: number | null
  whole: number
}

/** What is known of the attempts of one row. */
interface Sum {
  readonly of: UsageRow["of"]
  readonly stage: string
  readonly model: string | null
  attempts: number
  readonly parts: { readonly [part in (typeof fields)[number] | "costUsd"]: Part }
  estimatedCostUsd: number | null
}

export type State = Map<string, Sum>

export const initial = (): State => new Map()

const nothing = (): Part => ({ known: null, whole: 0 })

const sumOf = (state: State, of: UsageRow["of"], stage: string, model: string | null): Sum => {
  const key = JSON.stringify([of, stage, model])
  const known = state.get(key)
  if (known !== undefined) return known
  const parts = {
    ...{ input: nothing(), output: nothing(), cacheRead: nothing(), cacheWrite: nothing() },
    ...{ reasoning: nothing(), costUsd: nothing() }
  }
  const sum: Sum = { of, stage, model, attempts: 0, parts, estimatedCostUsd: null }
  state.set(key, sum)
  return sum
}

const count = (part: Part, value: number | null | undefined, isWhole: boolean): void => {
  if (value === null || value === undefined) return
  part.known = (part.known ?? 0) + value
  if (isWhole) part.whole++
}

export const add = (state: State, { recheck, stage, spent }: TurnSpent): void => {
  for (const { model, usage, usageSoFar, costUsd, estimatedCostUsd } of spent) {
    const sum = sumOf(state, recheck === null ? "cases" : "rechecks", stage, model)
    sum.attempts++
    for (const field of fields) count(sum.parts[field], (usage ?? usageSoFar)?.[field], usage !== null)
    count(sum.parts.costUsd, costUsd, true)
    if (estimatedCostUsd !== null) sum.estimatedCostUsd = (sum.estimatedCostUsd ?? 0) + estimatedCostUsd
  }
}

/** The rows, those of cases first, each as its first turn came. */
export const rows = (state: State): ReadonlyArray<UsageRow> => {
  const all = Array.from(state.values(), rowOf)
  return [...all.filter((row) => row.of === "cases"), ...all.filter((row) => row.of === "rechecks")]
}

const rowOf = ({ of, stage, model, attempts, parts, estimatedCostUsd }: Sum): UsageRow => {
  const total = ({ known, whole }: Part): Total => ({ total: whole === attempts ? known : null, known })
  const { input, output, cacheRead, cacheWrite, reasoning } = parts
  const usage = {
    ...{ input: total(input), output: total(output), cacheRead: total(cacheRead) },
    ...{ cacheWrite: total(cacheWrite), reasoning: total(reasoning) }
  }
  return { of, stage, model, attempts, usage, costUsd: total(parts.costUsd), estimatedCostUsd }
}
