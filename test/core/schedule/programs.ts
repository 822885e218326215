/**
 * Random programs: what may happen to a schedule, its host, its clock, its storage and its process.
 */
import * as fc from "fast-check"
import type { ScriptedWorkflows } from "shiftboss/testing"
import { day, type Fault, hour, minute } from "./kit.ts"

export type Cadence = number | { readonly cron: string; readonly zone?: string }

/** `cutAfter`: the request that follows is interrupted after so many turns. */
export type Command = { readonly cutAfter?: number } & (
  | { readonly do: "pass" | "suspend" | "set"; readonly millis: number }
  | { readonly do: "host"; readonly manner: ScriptedWorkflows.Manner }
  | { readonly do: "end"; readonly ending: "succeeded" | "failed" | "cancelled" | "lost" }
  | { readonly do: "pause" | "resume" | "runNow" | "runFails" | "loop" }
  | { readonly do: "restart"; readonly cadence: Cadence | null; readonly failuresInARow: number }
  | { readonly do: "fault"; readonly fault: Fault }
)

/** Cadences that go with steps of such a length: the law walks over every slot. */
interface Scale {
  readonly times: ReadonlyArray<number>
  readonly cadences: ReadonlyArray<Cadence>
}
const scales: ReadonlyArray<Scale> = [
  { times: [1000, 30_000, minute, 61_000, 7 * minute, hour, 5 * hour, day], cadences: [60, 60, 90, 600] },
  { times: [30_000, hour, 7 * hour, day, 40 * day, 3 * 366 * day], cadences: [3600, 3600, 10_000, 86_400] },
  {
    times: [1000, minute, 5 * minute, 7 * hour, day, 20 * day],
    cadences: [
      { cron: "*/7 * * * *" },
      { cron: "5,35 8-17 * * 1-5", zone: "Asia/Kolkata" },
      { cron: "30 2 * * *", zone: "America/Bogota" },
      3600
    ]
  }
]

const of = fc.constantFrom
const plain = (what: "pause" | "resume" | "runNow" | "runFails" | "loop") => fc.constant({ do: what } as const)

const commandOf = ({ times, cadences }: Scale): fc.Arbitrary<Command> => {
  const weighted: ReadonlyArray<readonly [number, fc.Arbitrary<Command>]> = [
    [8, fc.record({ do: fc.constant("pass" as const), millis: of(...times) })],
    [2, fc.record({ do: fc.constant("suspend" as const), millis: of(...times) })],
    [2, fc.record({ do: fc.constant("set" as const), millis: of(...times, ...times.map((time) => -time)) })],
    [
      3,
      fc.record({
        do: fc.constant("host" as const),
        manner: of<Array<ScriptedWorkflows.Manner>>("accepting", "accepting", "refusing", "silent", "deaf", "hanging")
      })
    ],
    [
      4,
      fc.record({
        do: fc.constant("end" as const),
        ending: of("succeeded" as const, "failed" as const, "failed" as const, "cancelled" as const, "lost" as const)
      })
    ],
    [4, fc.oneof(plain("pause"), plain("resume"), plain("runNow"), plain("runFails"))],
    [1, plain("loop")],
    [
      2,
      fc.record({
        do: fc.constant("restart" as const),
        cadence: of(...cadences, null),
        failuresInARow: of(1, 2, 3, 3)
      })
    ],
    [
      2,
      fc.record({
        do: fc.constant("fault" as const),
        fault: fc.record({ kind: of("fail" as const, "crash" as const), written: fc.boolean(), after: fc.nat(4) })
      })
    ]
  ]
  const command = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })))
  return fc.tuple(command, fc.option(fc.nat(60), { freq: 6, nil: undefined })).map(([one, cutAfter]) => ({
    ...one,
    ...(cutAfter === undefined ? {} : { cutAfter })
  }))
}

/** A first declaration, and what happens then. */
export const programs = fc.oneof(
  ...scales.map((scale) =>
    fc.record({
      first: fc.constantFrom(...scale.cadences),
      commands: fc.array(commandOf(scale), { minLength: 1, maxLength: 25 })
    })
  )
)
