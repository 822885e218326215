/**
 * Plays a turn through the pure core, without a clock or a launcher: each launch ends at once as the script says.
 */
import { Failure, RetryPolicy, type Turn } from "shiftboss"

export const start = 1_000_000_000_000
export const second = 1000
export const minute = 60 * second
export const hour = 60 * minute

const scopes: Partial<Record<Failure.FailureKind, Failure.FailureScope>> = {
  Capacity: "model",
  ServerError: "model",
  Network: "machine",
  Throttled: "account",
  RateLimited: "account",
  ModelUnavailable: "model",
  StreamCut: "request",
  Interrupted: "session",
  Hung: "session"
}

export interface Scripted {
  readonly kind: Failure.FailureKind
  readonly scope?: Failure.FailureScope
  /** Milliseconds after the attempt's end; may be negative. */
  readonly resetIn?: number
  /** Default: a session named after the attempt, or the resumed one. `null`: the agent never told of one. */
  readonly session?: string | null
  readonly ran?: boolean
  readonly hostDied?: boolean
  readonly detail?: string
  readonly raw?: string
  readonly costUsd?: number | null
}

export type Script = ReadonlyArray<Failure.FailureKind | Scripted | "ok">

export interface Step {
  /** Minutes since the turn's start. */
  readonly after: number
  readonly what: string
}

export const failureOf = (scripted: Scripted, at: number): Failure.Failure =>
  new Failure.Failure({
    kind: scripted.kind,
    scope: scripted.scope ?? scopes[scripted.kind] ?? "request",
    detail: scripted.detail ?? `it was ${scripted.kind}`,
    raw: scripted.raw ?? null,
    ...(scripted.resetIn === undefined ? {} : { resetAt: at + scripted.resetIn })
  })

const endingOf = (scripted: Scripted | undefined, at: number): Turn.AttemptEnding => ({
  at,
  failure: scripted === undefined ? null : failureOf(scripted, at),
  result:
    scripted?.costUsd === undefined
      ? null
      : { text: "", sessionId: null, usage: null, costUsd: scripted.costUsd, turns: null, model: null },
  estimatedCostUsd: null,
  ran: scripted?.ran ?? true,
  ...(scripted?.hostDied ? { hostDied: true } : {})
})

/** The state after the events, which are about one turn. */
export const fold = (events: ReadonlyArray<Turn.Event>, from?: Turn.State): Turn.State => {
  const state = events.reduce(RetryPolicy.evolve, from)
  if (state === undefined) throw new Error("the events do not start a turn")
  return state
}

export const begun = (turnId = "t"): Turn.State =>
  fold([{ _tag: "TurnStarted", turnId, at: start, head: null, account: null }])

/** Launches, waits and the end, in order. The last failure of the script repeats. */
export const play = (
  script: Script,
  options: { readonly turn?: Partial<Turn.Turn>; readonly jitter?: number; readonly from?: Turn.State } = {}
): { readonly steps: ReadonlyArray<Step>; readonly state: Turn.State } => {
  const turn: Turn.Turn = { id: "t", prompt: "do it", ...options.turn }
  let state = options.from ?? begun(turn.id)
  let now = start
  const steps: Array<Step> = []
  const note = (what: string) => steps.push({ after: (now - start) / minute, what })
  const happen = (...events: ReadonlyArray<Turn.Event>) => (state = fold(events, state))
  for (let launched = 0; ;) {
    const decision = RetryPolicy.decide(turn, state, { now, jitter: options.jitter ?? 0 })
    if (decision._tag === "End") {
      happen({ _tag: "TurnEnded", turnId: turn.id, end: decision.end })
      note(`${decision.end.status} ${decision.end.rule}`)
      return { steps, state }
    }
    if (decision._tag === "Recover") throw new Error("nothing crashes here")
    if (decision._tag === "Wait") {
      happen({ _tag: "WaitStarted", turnId: turn.id, wait: decision.wait })
      now += decision.remaining
      continue
    }
    const scripted = script[Math.min(launched, script.length - 1)]
    const ending = typeof scripted === "string" ? (scripted === "ok" ? undefined : { kind: scripted }) : scripted
    launched += 1
    const number = state.attempts.length + 1
    note(
      `${decision.rule}${decision.resume === null ? "" : ` in ${decision.resume}`}${decision.model ? ` on ${decision.model}` : ""}`
    )
    const id = decision.resume ?? `s${number}`
    const { purpose, rule, model } = decision
    const session = { _tag: decision.resume === null ? "New" : "Resume", id } as const
    happen({ _tag: "AttemptStarted", turnId: turn.id, at: now, number, purpose, rule, session, model })
    const seen = ending?.session === undefined ? (ending?.kind === "SessionLost" ? null : id) : ending.session
    if (seen !== null) happen({ _tag: "SessionSeen", turnId: turn.id, id: seen })
    happen({ _tag: "AttemptEnded", turnId: turn.id, ending: endingOf(ending, now) })
  }
}

/** As lines, to be compared with a table. */
export const lines = (...args: Parameters<typeof play>): ReadonlyArray<string> =>
  play(...args).steps.map(({ after, what }) => `${after}m ${what}`)
