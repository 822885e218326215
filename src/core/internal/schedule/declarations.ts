/**
 * What the host declares, checked once.
 */
import { Duration, Effect, Result, Schema } from "effect"
import * as CronSlots from "./cron.ts"
import type { Declaration } from "./decide.ts"
import { InvalidRequest } from "./errors.ts"
import { EverySeconds } from "./progress.ts"
import type { Cadence } from "./slots.ts"

const longestId = 200

/** What holds for a schedule whichever way it says when. */
export interface ScheduleOptions {
  /** What each run is given. Default: `null`. */
  readonly input?: Schema.Json | undefined
  /** How late the newest missed slot may still run. Default: within a minute, which counts as on time. */
  readonly lateWithin?: Duration.Input | undefined
  /** How many failed runs in a row stop it. Default: 3. */
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

const invalid = (field: string, problem: string) => Result.fail(new InvalidRequest({ field, problem }))

const isInterval = Schema.is(EverySeconds)
const isJson = Schema.is(Schema.Json)

const cadenceOf = (field: string, { everySeconds, cron, ...when }: When): Result.Result<Cadence, InvalidRequest> => {
  if ((everySeconds === undefined) === (cron === undefined)) {
    return invalid(field, "needs either everySeconds or cron")
  }
  if (cron === undefined) {
    return isInterval(everySeconds)
      ? Result.succeed({ everySeconds })
      : invalid(`${field}.everySeconds`, `is ${String(everySeconds)}; it has to be a whole number from 60 to 86400`)
  }
  const zone = "zone" in when ? (when.zone ?? "UTC") : "UTC"
  if (typeof cron !== "string" || typeof zone !== "string") return invalid(`${field}.cron`, "has to be a string")
  const problem = CronSlots.problem({ expression: cron, zone })
  return problem === undefined
    ? Result.succeed({ cron: { expression: cron, zone } })
    : invalid(`${field}.cron`, `"${cron}" ${problem}`)
}

const declarationOf = (schedule: Schedule): Result.Result<Declaration, InvalidRequest> => {
  const { workflowId, input = null, lateWithin = 0, failuresInARow = 3 } = schedule
  if (typeof workflowId !== "string" || workflowId === "" || workflowId.length > longestId) {
    return invalid("workflowId", `is "${String(workflowId)}"; it has to have 1 to ${longestId} characters`)
  }
  const field = `schedule "${workflowId}"`
  const cadence = cadenceOf(field, schedule)
  if (Result.isFailure(cadence)) return Result.fail(cadence.failure)
  if (!Number.isSafeInteger(failuresInARow) || failuresInARow < 1) {
    return invalid(`${field}.failuresInARow`, `is ${String(failuresInARow)}; it has to be a whole number from 1 on`)
  }
  const late = Duration.fromInput(lateWithin)
  if (late._tag === "None" || !(Duration.toMillis(late.value) >= 0)) {
    return invalid(`${field}.lateWithin`, "has to be a duration that is not negative")
  }
  if (!isJson(input)) return invalid(`${field}.input`, "has to be what JSON keeps")
  const lateWithinMillis = Duration.toMillis(late.value)
  return Result.succeed({ workflowId, cadence: cadence.success, input, lateWithinMillis, failuresInARow })
}

/** The declarations by workflow; the first one that makes no sense is an InvalidRequest. */
export const check = Effect.fnUntraced(function* (
  schedules: ReadonlyArray<Schedule>
): Effect.fn.Return<ReadonlyMap<string, Declaration>, InvalidRequest> {
  const declared = new Map<string, Declaration>()
  if (!Array.isArray(schedules) || schedules.some((schedule) => !(schedule instanceof Object))) {
    return yield* new InvalidRequest({ field: "schedules", problem: "has to be an array of declarations" })
  }
  for (const schedule of schedules) {
    const declaration = yield* Effect.fromResult(declarationOf(schedule))
    if (declared.has(declaration.workflowId)) {
      return yield* new InvalidRequest({ field: `schedule "${declaration.workflowId}"`, problem: "is declared twice" })
    }
    declared.set(declaration.workflowId, declaration)
  }
  return declared
})
