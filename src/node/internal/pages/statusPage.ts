/**
 * The page of a run: a part that moves by the second, and the rest.
 */
import type { Dispatcher, DispatcherEvent, Turn } from "shiftboss"
import { toFileName } from "../storage/names.ts"
import type { ApplyLine, State } from "./fold.ts"
import { cell, code, count, duration, plural, table, time, unknown, usd } from "./text.ts"

type Snapshot = Dispatcher.Snapshot
type Seat = Snapshot["seats"][number]

/** Without a snapshot, nothing has been read yet. */
export const statusPage = (state: State, snapshot: Snapshot | undefined, rest: string, now: number): string =>
  [
    "# Status",
    "",
    ...standing(state, snapshot),
    `- written ${time(now)}`,
    "",
    ...(snapshot === undefined ? [] : moving(snapshot, now)),
    rest
  ].join("\n")

// -----------------------------------------------------------------------------
// what moves by the second
// -----------------------------------------------------------------------------

const standing = ({ run }: State, snapshot: Snapshot | undefined): ReadonlyArray<string> => {
  if (run === undefined && (snapshot === undefined || snapshot.run === "none")) return ["- no run yet"]
  const name = run === undefined ? "the run" : `run ${count(run.start)}`
  const since = run === undefined ? "" : `, begun ${time(run.at)}`
  if (snapshot !== undefined && snapshot.run !== "none") {
    return [`- ${name} is ${snapshot.run}${since}`, ...versionOf(snapshot), ...spentIn(snapshot)]
  }
  const end = snapshot?.end ?? null
  const at = run?.endedAt === undefined ? "" : `, ended ${time(run.endedAt)}`
  // A run without an end was killed, or is of another process.
  const became = end === null ? "has not ended, and is not of this process" : endOf(end)
  return [`- ${name} ${became}${since}${at}`, ...versionOf(snapshot)]
}

const versionOf = (snapshot: Snapshot | undefined): ReadonlyArray<string> =>
  snapshot === undefined || snapshot.version === null ? [] : [`- version ${code(snapshot.version)}`]

const spentIn = ({ spentUsd }: Snapshot): ReadonlyArray<string> =>
  spentUsd === 0 ? [] : [`- its turns cost ${usd(spentUsd)} USD so far, as far as that is known`]

const endOf = (end: DispatcherEvent.RunEnd): string => {
  switch (end._tag) {
    case "Finished":
      return "is finished"
    case "Stopped":
      return "was stopped"
    case "StopTimedOut":
      return `was stopped, and ${plural(end.cases.length, "case")} ignored it`
    case "BudgetSpent":
      return `ended: its budget is spent (${usd(end.spentUsd)} USD)`
    case "BreakerTripped":
      return `ended: ${count(end.failures.length)} cases failed in a row`
    case "SystemDown":
      return `ended: what every case stands on is down: ${code(end.reason, 1_000)}`
    case "ApplyFailed":
      return `ended: apply ${code(end.apply)} failed: ${code(end.reason, 1_000)}`
    case "SelectionFailed":
      return `ended: the selection could not be read: ${code(end.reason, 1_000)}`
  }
}

const moving = (snapshot: Snapshot, now: number): ReadonlyArray<string> => [
  ...(snapshot.seats.length === 0 ? [] : ["## Seats", "", ...seatTable(snapshot.seats, now), ""]),
  "## Queues",
  "",
  ...queueTable(snapshot),
  "",
  ...(snapshot.applying === null ? [] : [applyingLine(snapshot.applying), ""]),
  "## Counts",
  "",
  ...countTable(snapshot),
  ""
]

const seatTable = (seats: Snapshot["seats"], now: number): ReadonlyArray<string> =>
  table(
    ["seat", "case", "step", "for"],
    seats.map((seat, index) => [
      String(index + 1),
      ...(seat === null
        ? [unknown, "", ""]
        : [workOf(seat), seat.step === null ? unknown : cell(seat.step), duration(now - seat.since)])
    ])
  )

const workOf = ({ case: id, recheck }: NonNullable<Seat>): string =>
  recheck === null
    ? cell(id)
    : `${cell(id)}, recheck of apply ${cell(recheck.apply)}: ${recheck.arm} ${count(recheck.try)}`

const queueTable = ({ oldestWaiting, waiting }: Snapshot): ReadonlyArray<string> => {
  const since = (at: number | null) => (at === null ? unknown : time(at))
  return table(
    ["queue", "waiting", "the oldest since"],
    [
      ["woken cases", count(waiting.woken), since(oldestWaiting.woken)],
      ["rechecks", count(waiting.rechecks), since(oldestWaiting.rechecks)],
      ["new cases", count(waiting.fresh), since(oldestWaiting.fresh)],
      ["parked", count(waiting.parked), since(oldestWaiting.parked)],
      ["held", count(waiting.held), since(oldestWaiting.held)],
      ["requests", count(waiting.requests), unknown]
    ]
  )
}

const applyingLine = ({ apply, state }: NonNullable<Snapshot["applying"]>): string =>
  state === "running"
    ? `Apply ${code(apply)} runs: nothing is claimed meanwhile.`
    : `Apply ${code(apply)} waits for steps that read the system.`

const countTable = ({ counts, rechecks }: Snapshot): ReadonlyArray<string> =>
  table(
    ["cases", "", "rechecks", ""],
    [
      ["completed", count(counts.completed), "passed", count(rechecks.passed)],
      ["difficult", count(counts.difficult), "regressed", count(rechecks.regressed)],
      ["failed", count(counts.failed), "void", count(rechecks.void)]
    ]
  )

// -----------------------------------------------------------------------------
// the rest
// -----------------------------------------------------------------------------

/** Usage, the latest applies and the latest errors. */
export const restOf = (state: State, snapshot: Snapshot | undefined): string =>
  [
    "## Usage",
    "",
    ...orNone(usageTable(snapshot?.usage ?? [])),
    "## Latest applies",
    "",
    ...orNone(table(["apply", "begun", "outcome", "changes", "rechecks"], state.recent.toReversed().map(applyRow))),
    "## Latest errors",
    "",
    ...orNone(
      table(
        ["at", "of", "reason"],
        state.errors.toReversed().map(({ at, of, reason }) => [time(at), cell(of), cell(firstLine(reason), 300)])
      )
    )
  ].join("\n")

/** What follows says where in the code. */
const firstLine = (text: string): string => text.trimStart().split("\n", 1)[0] ?? ""

const orNone = (lines: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...(lines.length === 0 ? ["None."] : lines),
  ""
]

const usageTable = (rows: Snapshot["usage"]): ReadonlyArray<string> =>
  table(
    ["of", "stage", "model", "attempts", "input", "output", "cache read", "cache write", "USD", "estimated USD"],
    rows.map(({ attempts, costUsd, estimatedCostUsd, model, of, stage, usage }) => [
      of,
      cell(stage),
      model === null ? unknown : cell(model),
      count(attempts),
      ...[usage.input, usage.output, usage.cacheRead, usage.cacheWrite].map((total) => totalOf(total, count)),
      totalOf(costUsd, usd),
      estimatedCostUsd === null ? unknown : usd(estimatedCostUsd)
    ])
  )

/** Of a sum with an unknown part, what is known of it. */
const totalOf = ({ known, total }: Turn.Total, shown: (value: number) => string): string => {
  if (total !== null) return shown(total)
  return known === null ? unknown : `≥ ${shown(known)}`
}

const applyRow = ({ changes, name, outcome, rechecks, startedAt }: ApplyLine): ReadonlyArray<string> => {
  const { open, passed, regressed, void: voids } = rechecks
  const said = [
    [passed, "passed"],
    [regressed, "regressed"],
    [voids, "void"],
    [open, "open"]
  ] as const
  return [
    `[${cell(name)}](applies/${encodeURIComponent(toFileName(name))}.md)`,
    time(startedAt),
    outcome.toLowerCase(),
    changes === undefined
      ? unknown
      : `${plural(changes.count, "file")}, +${count(changes.added)} −${count(changes.removed)}`,
    said.flatMap(([value, what]) => (value === 0 ? [] : `${count(value)} ${what}`)).join(", ") || unknown
  ]
}
