/**
 * What is going on, while it goes on: each seat and the progress from `changes`, the applies from `events`.
 */
import { Effect, Stream } from "effect"
import { Dispatcher, type DispatcherEvent } from "shiftboss"
import type { Screen } from "./screen.ts"

/** Shows the next run, from when this succeeds; the fiber ends when the end of the run is shown. */
export const follow = Effect.fnUntraced(function* (screen: Screen, total: number) {
  const dispatcher = yield* Dispatcher.Dispatcher
  const seats = Stream.runForEach(dispatcher.changes, (snapshot) =>
    screen.show((now) => ["", ...seatLines(snapshot, now), waitingLine(snapshot), progressLine(snapshot, total)])
  )
  const events = Stream.runForEach(dispatcher.events(), (entry) => {
    const line = entry._tag === "Gap" ? undefined : lineOf(entry.event)
    return line === undefined ? Effect.void : screen.print(line)
  })
  return yield* Effect.forkScoped(Effect.all([seats, events], { concurrency: "unbounded" }), { startImmediately: true })
})

const seatLines = (snapshot: Dispatcher.Snapshot, now: number): ReadonlyArray<string> =>
  snapshot.seats.map((seat, index) => {
    const label = `  seat ${index + 1}  `
    if (seat === null) return `${label}free`
    const seconds = ((now - seat.since) / 1000).toFixed(1)
    const work = seat.recheck === null ? seat.case : `${seat.case} @${seat.recheck.apply}`
    return `${label}${work.padEnd(22)}${seat.step === null ? "…" : `${seat.step}  ${seconds} s`}`
  })

const waitingLine = ({ waiting, applying, version, run }: Dispatcher.Snapshot): string => {
  if (run === "stopping") return "  stopping when these steps end; Ctrl-C again interrupts them"
  return [
    `  parked ${waiting.parked}`,
    `woken ${waiting.woken}`,
    `requests ${waiting.requests}`,
    `rechecks ${waiting.rechecks}`,
    `rules at ${version ?? "?"}`,
    ...(applying === null ? [] : [`apply ${applying.apply} ${applying.state}`])
  ].join(" · ")
}

const barWidth = 30

const progressLine = ({ counts }: Dispatcher.Snapshot, total: number): string => {
  const ended = counts.completed + counts.difficult + counts.failed
  const filled = total === 0 ? barWidth : Math.round((barWidth * ended) / total)
  const failed = counts.failed === 0 ? "" : ` · ${counts.failed} failed`
  const bar = "█".repeat(filled) + "░".repeat(barWidth - filled)
  return `  ${bar} ${ended} of ${total} · ${counts.completed} completed · ${counts.difficult} difficult${failed}`
}

/** The names of the rules that a patch adds or moves. */
const changedRules = (patch: string): ReadonlyArray<string> =>
  patch.split("\n").flatMap((line) => /^\+([\w-]+)/.exec(line)?.[1] ?? [])

const lineOf = (event: DispatcherEvent.DispatcherEvent): string | undefined => {
  switch (event._tag) {
    case "RunStarted": {
      const { open, parked, woken, failed } = event.found
      const begun = open + parked + woken + failed
      if (begun === 0 && event.again === null) return undefined
      const apply = event.again === null ? "" : `; apply ${event.again} was cut off and is made again`
      return `start ${event.start}: ${begun} cases had begun${apply}`
    }
    case "CaseDifficult":
      return `${event.case} is difficult: ${event.reason}`
    case "CaseFailed":
      return `${event.case} failed: ${event.reason.split("\n")[0]}`
    case "ApplyEnded": {
      const { applied } = event
      const did =
        applied._tag === "Skipped" ? applied.reason : `changed ${changedRules(applied.patch ?? "").join(", ")}`
      return `apply ${event.apply}: ${did}`
    }
    case "RecheckEnded":
      if (event.outcome._tag === "Passed") return undefined
      return event.outcome._tag === "Void"
        ? `${event.case} says nothing about apply ${event.apply}: ${event.outcome.reason}`
        : `${event.case} was right before apply ${event.apply}, and is not any more`
    default:
      return undefined
  }
}
