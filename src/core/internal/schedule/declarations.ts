/**
 * What the host declares, checked once.
 */
import { Duration, Result, Schema } from "effect"
import * as CronSlots from "./cron.ts"
import type { Declaration } from "./decide.ts"
import { InvalidRequest, shown } from "./errors.ts"
import { EverySeconds, FailuresInARow } from "./progress.ts"
import type { Cadence } from "./slots.ts"

const longestId = 200
const longestExpression = 200
/** In characters of JSON: it is written with each run. */
const longestInput = 65_536

/** What holds for a schedule whichever way it says when. */
export interface ScheduleOptions {
  /** What each run is given, at most 65,536 characters of JSON; a copy is taken. Default: `null`. */
  readonly input?: Schema.Json | undefined
  /** How late the newest missed slot may still run. Default: within a minute, which counts as on time. */
  readonly lateWithin?: Duration.Input | undefined
  /** How many failed runs in a row stop it, from 1 to 100. Default: 3. */
  readonly failuresInARow?: number | undefined
}

/** A slot every so many whole seconds, from 60 to 86,400, the first one that long after it is declared. */
export interface Interval {
  readonly everySeconds: number
}

/** A slot at each time a five-field expression matches in a time zone of the IANA database. */
export interface Calendar {
  readonly cron: string
  /** Default: UTC. */
  readonly zone?: string | undefined
}

/** When the workflow runs. */
export type When = (Interval & { readonly cron?: never }) | (Calendar & { readonly everySeconds?: never })

/** A workflow that is run on a schedule. */
export type Schedule = { readonly workflowId: string } & When & ScheduleOptions

export const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

const invalid = (field: string, problem: string) => Result.fail(new InvalidRequest({ field, problem }))

const isInterval = Schema.is(EverySeconds)
const isLimit = Schema.is(FailuresInARow)
const isJson = Schema.is(Schema.Json)

const cadenceOf = (field: string, { everySeconds, cron, ...when }: When): Result.Result<Cadence, InvalidRequest> => {
  if ((everySeconds === undefined) === (cron === undefined)) {
    return invalid(field, "needs either everySeconds or cron")
  }
  if (cron === undefined) {
    return isInterval(everySeconds)
      ? Result.succeed({ everySeconds })
      : invalid(`${field}.everySeconds`, `is ${shown(everySeconds)}; it has to be a whole number from 60 to 86400`)
  }
  const zone = "zone" in when ? (when.zone ?? "UTC") : "UTC"
  if (typeof cron !== "string" || cron.length > longestExpression) {
    return invalid(`${field}.cron`, `has to be a string of at most ${longestExpression} characters`)
  }
  if (typeof zone !== "string") return invalid(`${field}.zone`, `is ${shown(zone)}; it has to be a string`)
  const problem = CronSlots.problem({ expression: cron, zone })
  return problem === undefined
    ? Result.succeed({ cron: { expression: cron, zone } })
    : invalid(`${field}.cron`, `"${cron}" ${problem}`)
}

const declarationOf = (schedule: Schedule): Result.Result<Declaration, InvalidRequest> => {
  const { workflowId, input = null, lateWithin = 0, failuresInARow = 3 } = schedule
  if (typeof workflowId !== "string" || workflowId === "" || workflowId.length > longestId) {
    return invalid("workflowId", `is ${shown(workflowId)}; it has to be a string of 1 to ${longestId} characters`)
  }
  const field = `schedule "${workflowId}"`
  const cadence = cadenceOf(field, schedule)
  if (Result.isFailure(cadence)) return Result.fail(cadence.failure)
  if (!isLimit(failuresInARow)) {
    return invalid(`${field}.failuresInARow`, `is ${shown(failuresInARow)}; it has to be a whole number from 1 to 100`)
  }
  const late = Duration.fromInput(lateWithin)
  if (late._tag === "None" || !(Duration.toMillis(late.value) >= 0)) {
    return invalid(`${field}.lateWithin`, "has to be a duration that is not negative")
  }
  const kept = copy(input)
  if (kept === undefined) {
    return invalid(`${field}.input`, `has to be what JSON keeps, of at most ${longestInput} characters`)
  }
  const lateWithinMillis = Duration.toMillis(late.value)
  return Result.succeed({ workflowId, cadence: cadence.success, input: kept, lateWithinMillis, failuresInARow })
}

/** The input as it is now: what the host does to it later must not come into the journal unchecked. */
const copy = (input: unknown): Schema.Json | undefined => {
  if (!isJson(input)) return undefined
  const json = JSON.stringify(input)
  return json.length > longestInput ? undefined : (JSON.parse(json) as Schema.Json)
}

/** The declarations by workflow; the first one that makes no sense is an InvalidRequest. */
export const check = (
  schedules: ReadonlyArray<Schedule>
): Result.Result<ReadonlyMap<string, Declaration>, InvalidRequest> => {
  const declared = new Map<string, Declaration>()
  if (!Array.isArray(schedules) || schedules.some((schedule) => !isObject(schedule))) {
    return invalid("schedules", "has to be an array of declarations")
  }
  for (const schedule of schedules) {
    const declaration = declarationOf(schedule)
    if (Result.isFailure(declaration)) return Result.fail(declaration.failure)
    const { workflowId } = declaration.success
    if (declared.has(workflowId)) return invalid(`schedule "${workflowId}"`, "is declared twice")
    declared.set(workflowId, declaration.success)
  }
  return Result.succeed(declared)
}
