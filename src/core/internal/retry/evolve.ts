/**
 * The state of a turn as the fold of its events.
 */
import type { Attempt, Event, State } from "../../Turn.ts"

const withLast = (state: State, change: (last: Attempt) => Partial<Attempt>): State => {
  const last = state.attempts.at(-1)
  if (last === undefined) return state
  return { ...state, attempts: [...state.attempts.slice(0, -1), { ...last, ...change(last) }] }
}

/** An answer can be megabytes long, and only the last one is the turn's. */
const withoutText = (attempt: Attempt): Attempt =>
  attempt.ending?.result?.text
    ? { ...attempt, ending: { ...attempt.ending, result: { ...attempt.ending.result, text: "" } } }
    : attempt

/** What the event makes of the state. An event of a turn that is not known to have started changes nothing. */
export const evolve = (state: State | undefined, event: Event): State | undefined => {
  if (event._tag === "TurnKept") return event.state
  if (event._tag === "TurnStarted") {
    const { turnId, at, head, account } = event
    // Started once: what an earlier start saw of the workspace stays the reference for all evidence.
    if (state !== undefined) return state
    return { turnId, startedAt: at, head, account, round: 1, attempts: [], wait: null, end: null, resumed: false }
  }
  return state === undefined ? undefined : progress(state, event)
}

const progress = (state: State, event: Exclude<Event, { _tag: "TurnKept" | "TurnStarted" }>): State => {
  switch (event._tag) {
    case "AttemptStarted": {
      const { number, purpose, rule, session, model, at } = event
      const attempt: Attempt = {
        ...{ number, round: state.round, purpose, rule, session, model, startedAt: at },
        ...{ identity: null, sessionSeen: null, openTools: {}, ending: null }
      }
      return { ...state, attempts: [...state.attempts.map(withoutText), attempt], wait: null, resumed: false }
    }
    case "AgentIdentified":
      return withLast(state, () => ({ identity: event.identity }))
    case "SessionSeen":
      return withLast(state, () => ({ sessionSeen: event.id }))
    case "ToolStarted":
      return withLast(state, (last) => ({ openTools: { ...last.openTools, [event.id]: event.tool } }))
    case "ToolEnded":
      return withLast(state, (last) => {
        const { [event.id]: _, ...openTools } = last.openTools
        return { openTools }
      })
    case "UsageTold":
      return withLast(state, () => ({ usageSoFar: event.soFar }))
    case "AttemptEnded":
      return withLast(state, (last) => ({
        ending: event.ending,
        sessionSeen: event.ending.result?.sessionId ?? last.sessionSeen
      }))
    case "WaitStarted":
      return { ...state, wait: event.wait }
    case "WaitEnded":
      return { ...state, wait: state.wait && { ...state.wait, due: Math.min(state.wait.due, event.at) } }
    case "TurnEnded":
      return { ...state, end: event.end }
    case "TurnResumed":
      return { ...state, end: null, resumed: true }
    case "RoundStarted": {
      const { round, account, head = state.head } = event
      return { ...state, end: null, wait: null, resumed: false, round, account, head }
    }
  }
}
