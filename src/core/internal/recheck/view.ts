/**
 * Rechecks as they are shown: every one there ever was, with its tries. Read from the log when somebody asks, for a
 * running dispatcher has no use for those that are over.
 */
import type { DispatcherEvent } from "../../DispatcherEvent.ts"
import type { Recheck, TryEnded } from "../../Rechecks.ts"

interface Seen {
  readonly rechecks: Array<Shown>
  /** The last of each case: a case has one open at most. */
  readonly last: Map<string, Shown>
}

type Shown = { -readonly [field in keyof Recheck]: Recheck[field] } & { readonly tries: Array<TryEnded> }

export const initial = (): Seen => ({ rechecks: [], last: new Map() })

export const all = (seen: Seen): ReadonlyArray<Recheck> => seen.rechecks

export const isOpen = ({ state }: Recheck): boolean => state === "queued" || state === "running"

/** Adds what the event says, and returns the same. */
export const see = (seen: Seen, event: DispatcherEvent): Seen => {
  switch (event._tag) {
    case "RunStarted":
      for (const recheck of seen.last.values()) if (recheck.state === "running") recheck.state = "queued"
      break
    case "RechecksQueued":
      for (const one of event.cases) {
        const none = { state: "queued", outcome: null, tries: [], endedAt: null } as const
        const recheck: Shown = { ...one, apply: event.apply, queuedAt: event.at, ...none, tries: [] }
        seen.rechecks.push(recheck)
        seen.last.set(one.case, recheck)
      }
      break
    case "RecheckMoved":
    case "RecheckStarted":
    case "TryEnded":
    case "RecheckEnded": {
      const recheck = seen.last.get(event.case)
      if (recheck?.apply === event.apply && isOpen(recheck)) tell(recheck, event)
    }
  }
  return seen
}

type OfOne = Extract<
  DispatcherEvent,
  { readonly _tag: "RecheckMoved" | "RecheckStarted" | "TryEnded" | "RecheckEnded" }
>

const tell = (recheck: Shown, event: OfOne): void => {
  switch (event._tag) {
    case "RecheckMoved":
      recheck.apply = event.to
      return
    case "RecheckStarted":
      recheck.state = "running"
      return
    case "TryEnded": {
      const { at, arm, try: number, outcome, reason, score } = event
      recheck.tries.push({ at, arm, try: number, outcome, reason, score })
      return
    }
    case "RecheckEnded":
      recheck.outcome = event.outcome
      recheck.state = stateOf[event.outcome._tag]
      recheck.endedAt = event.at
  }
}

const stateOf = { Passed: "passed", Regressed: "regressed", Void: "void" } as const
