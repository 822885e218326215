/**
 * What happens next to a turn: a pure function of what was asked, what is journaled of it, and the time.
 */
import { Duration } from "effect"
import type { Failure, FailureKind } from "../../Failure.ts"
import { complete, type Complete, type Remedy } from "../../RetryRules.ts"
import type { Attempt, End, Purpose, State, Turn, Wait } from "../../Turn.ts"
import { holdUntil, isLimited, limitedSince } from "./hold.ts"
import { counted, inRound } from "./round.ts"
import { sessionOf, spent } from "./totals.ts"
import { wallRules } from "./wall.ts"

/** When a decision is made, and its share of chance: a number from 0 to below 1. */
export interface Moment {
  readonly now: number
  readonly jitter: number
}

/** What to do next, and the rule that says so. */
export type Decision =
  | Launch
  /** `remaining` milliseconds are left; `inline`: short enough to be waited for in the call. */
  | { readonly _tag: "Wait"; readonly wait: Wait; readonly remaining: number; readonly inline: boolean }
  | { readonly _tag: "End"; readonly end: End }
  /** An attempt was running when its host died: what is left of it has to be proven gone first. */
  | { readonly _tag: "Recover"; readonly attempt: Attempt }

export interface Launch {
  readonly _tag: "Launch"
  readonly purpose: Purpose
  readonly rule: string
  /** The session to resume; `null`: a new one. */
  readonly resume: string | null
  readonly model: string | null
  /** What is left of the budget. */
  readonly budgetUsd: number | undefined
  /** Whoever still uses the session has to be proven gone first. */
  readonly reap: boolean
}

type Repeat = Omit<Launch, "_tag" | "budgetUsd" | "reap"> & {
  readonly wait?: Omit<Wait, "rule" | "failure"> | undefined
}
type Step = ({ readonly _tag: "Repeat" } & Repeat) | { readonly _tag: "Stop"; readonly end: Omit<End, "at"> }

/** What happens next. Not to be asked about a turn that is over. */
export const decide = (turn: Turn, state: State, { now, jitter }: Moment): Decision => {
  const rules = complete(turn.rules)
  const last = state.attempts.at(-1)
  if (last?.ending === null) return { _tag: "Recover", attempt: last }
  const step = nextStep({ turn, rules, state, jitter })
  if (step._tag === "Stop") return { _tag: "End", end: { at: now, ...step.end } }

  const failure = last?.ending?.failure ?? null
  const { usd } = spent(state.attempts)
  const left = turn.budgetUsd === undefined ? undefined : turn.budgetUsd - usd
  if (left !== undefined && left <= 0) return { _tag: "End", end: budgetExhausted(now, turn.budgetUsd ?? 0, usd) }
  if (launches(rules, state) >= rules.maxLaunches) return { _tag: "End", end: launchesUsed(now, rules, failure) }

  const wait = state.wait ?? (step.wait && { rule: step.rule, failure, ...step.wait })
  if (wait !== undefined) {
    // A hold that follows another one is measured from the first: a limit that comes back for ever ends the turn too.
    const since = wait.hold ? (limitedSince(rules, state) ?? wait.heldSince ?? wait.since) : wait.since
    if (wait.due - since > millis(rules.maxHold)) return { _tag: "End", end: heldForGood(now, wait) }
    const remaining = clamp(wait.due - now, wait.due - wait.since)
    // A first launch is waited for in the call: it takes seconds, and all the seats would give up all their cases meanwhile.
    const inline = wait.rule === wallRules.first || remaining <= millis(rules.inlineWait)
    if (remaining > 0) return { _tag: "Wait", wait, remaining, inline }
  }
  const { purpose, rule, resume, model } = step
  return { _tag: "Launch", purpose, rule, resume, model, budgetUsd: left, reap: failure?.kind === "SessionBusy" }
}

// -----------------------------------------------------------------------------
// the next step
// -----------------------------------------------------------------------------

interface Situation {
  readonly turn: Turn
  readonly rules: Complete
  readonly state: State
  readonly jitter: number
}

const nextStep = (situation: Situation): Step => {
  const { turn, rules, state } = situation
  const last = state.attempts.at(-1)
  if (last === undefined || last.ending === null || last.round !== state.round) return opening(situation, last)
  const { failure, ran } = last.ending
  if (failure === null) return finish("succeeded", "succeeded", "The agent did the turn.")
  if (failure.kind === "Stopped") {
    return state.resumed
      ? goOn(situation, last, "after-stop", "resumed-after-stop")
      : finish("stopped", "stopped", failure.detail, advice(rules.remedies.Stopped))
  }
  if (last.ending.hostDied) return afterHostDeath(situation, last, failure)
  if (!ran && failure.kind === "Interrupted") return goOn(situation, last, "again", "never-ran")
  if (!ran && failure.kind === "ModelUnavailable" && last.model !== original(turn)) {
    return anew(situation, "again", "fallback-model-unavailable", original(turn))
  }
  return remedied(situation, last, failure, last.ending.at)
}

/** The first attempt of a round. A later round goes on in the turn's last session, unless that is what had failed. */
const opening = (situation: Situation, last: Attempt | undefined): Step => {
  const { turn, rules, state } = situation
  if (last === undefined) return anew(situation, "first", "first-attempt", original(turn))
  const rule = `round-${state.round}`
  if (last.ending?.failure?.kind === "ModelUnavailable") return anew(situation, "round", rule, original(turn))
  return isLost(rules, last) ? anew(situation, "round", rule, last.model) : goOn(situation, last, "round", rule)
}

/** Charged to nobody: the agent did not fail. But what kills its host each time must not go on for ever. */
const afterHostDeath = (situation: Situation, last: Attempt, failure: Failure): Step => {
  const deaths = inRound(situation.state).filter(({ ending }) => ending?.hostDied).length
  if (deaths > situation.rules.maxHostDeaths) {
    const fix =
      "Find out why the host dies while this attempt runs, then run the turn again; it goes on in its session."
    return finish("failed", "host-deaths-used", `${failure.detail} It came to that ${deaths} times in this round.`, fix)
  }
  if (last.ending?.ran === false) return goOn(situation, last, "again", "never-ran")
  const how = sessionOf(last) === null ? "fresh" : "resume"
  return goOn(situation, last, "after-host-death", `host-died-${how}-${deaths}`)
}

const remedied = (situation: Situation, last: Attempt, failure: Failure, at: number): Step => {
  const { rules } = situation
  const remedy = rules.remedies[failure.kind]
  switch (remedy._tag) {
    case "Retry":
      return retried(situation, failure, remedy, at)
    case "Resume": {
      const session = sessionOf(last)
      if (session === null) return refreshed(situation, failure)
      const resumes = inRound(situation.state).filter((attempt) => attempt.purpose === "resume").length
      const wait = remedy.waits[resumes]
      if (wait === undefined) return used(failure, "resume", remedy.waits.length)
      const rule = `${named(failure.kind)}-resume-${resumes + 1}`
      return { ...goOn(situation, last, "resume", rule), wait: { hold: false, since: at, due: at + millis(wait) } }
    }
    case "Fresh":
      return refreshed(situation, failure)
    case "Hold": {
      const fallback = failure.scope === "model" ? nextFallback(situation) : undefined
      if (fallback !== undefined) return anew(situation, "fallback", `${named(failure.kind)}-fallback`, fallback)
      const { rule, due } = holdUntil(rules, situation.state, situation.jitter)
      return { ...goOn(situation, last, "after-hold", rule), wait: { hold: true, since: at, due } }
    }
    case "Fallback": {
      const fallback = nextFallback(situation)
      return fallback === undefined
        ? finish("failed", "no-fallback-model", failure.detail, "Name a model the agent has, or fallback models.")
        : anew(situation, "fallback", `${named(failure.kind)}-fallback`, fallback)
    }
    case "Stop":
      return finish("failed", `${named(failure.kind)}-stop`, failure.detail, remedy.fix)
  }
}

const retried = (situation: Situation, failure: Failure, remedy: Remedy & { _tag: "Retry" }, at: number): Step => {
  const { rules, state } = situation
  const attempts = counted(state)
  const wait = attempts < rules.maxAttempts ? remedy.waits[attempts - 1] : undefined
  if (wait === undefined) return used(failure, "retry", attempts)
  // What the agent was told counts when it is longer: coming back earlier only meets the same answer.
  const due = Math.max(at + millis(wait), failure.resetAt ?? 0)
  const rule = `${named(failure.kind)}-retry-${attempts}`
  const model = modelFor(situation, attempts + 1)
  return { ...anew(situation, "retry", rule, model), wait: { hold: false, since: at, due } }
}

/** A new session that is told what was done: once a round, since a second one would most likely end the same way. */
const refreshed = (situation: Situation, failure: Failure): Step => {
  const { rules, state } = situation
  const before = inRound(state).some((attempt) => attempt.purpose === "fresh")
  if (before || counted(state) >= rules.maxAttempts) return used(failure, "fresh", counted(state))
  const model = modelFor(situation, counted(state) + 1)
  return anew(situation, "fresh", `${named(failure.kind)}-fresh`, model)
}

// -----------------------------------------------------------------------------
// steps
// -----------------------------------------------------------------------------

/** The task in a new session, or in that of the earlier turn which this one goes on in, unless it was found to be no use. */
const anew = (situation: Situation, purpose: Purpose, rule: string, model: string | null): Repeating => {
  const { turn, rules, state } = situation
  const session = turn.session ?? null
  const lost = state.attempts.some((attempt) => attempt.session.id === session && isLost(rules, attempt))
  return { _tag: "Repeat", purpose, rule, model, resume: lost || model !== original(turn) ? null : session }
}

/** What the attempt died of was its session. */
const isLost = (rules: Complete, { ending }: Attempt): boolean =>
  ending !== null && ending.failure !== null && rules.remedies[ending.failure.kind]._tag === "Fresh"

/** On in the session of the last attempt where there is one. */
const goOn = (situation: Situation, last: Attempt, purpose: Purpose, rule: string): Repeating => {
  const session = sessionOf(last)
  return session === null
    ? anew(situation, purpose, rule, last.model)
    : { _tag: "Repeat", purpose, rule, resume: session, model: last.model }
}

type Repeating = Step & { readonly _tag: "Repeat" }

const finish = (status: End["status"], rule: string, detail: string, fix: string | null = null): Step => ({
  _tag: "Stop",
  end: { status, rule, detail, fix, until: null }
})

const used = (failure: Failure, what: "retry" | "resume" | "fresh", times: number): Step =>
  finish(
    "failed",
    `${named(failure.kind)}-${what}-used`,
    failure.detail,
    `It came again after ${times} ${times === 1 ? "try" : "tries"}. Run the turn again once the cause is gone; it goes on in its session.`
  )

const budgetExhausted = (at: number, budgetUsd: number, usd: number): End => ({
  ...{ at, status: "failed", rule: "budget-exhausted", until: null },
  detail: `${Number(usd.toFixed(4))} of ${budgetUsd} US dollars are spent.`,
  fix: "Raise the budget of the turn and run it again; it goes on in its session."
})

const launchesUsed = (at: number, rules: Complete, failure: Failure | null): End => ({
  ...{ at, status: "failed", rule: "launches-used", until: null },
  detail: `The agent was launched ${rules.maxLaunches} times in this round. ${failure?.detail ?? ""}`.trimEnd(),
  fix: "Find out why it keeps ending, then run the turn again."
})

const heldForGood = (at: number, wait: Wait): End => ({
  ...{ at, status: "held", rule: `${wait.rule}-beyond-max-hold`, until: wait.due },
  detail: wait.failure?.detail ?? "The wait is longer than a turn may hold.",
  fix: "Run the turn again when the limit has ended, with another account, or with a longer maxHold."
})

const advice = (remedy: Remedy): string | null => (remedy._tag === "Stop" ? remedy.fix : null)

// -----------------------------------------------------------------------------
// counting
// -----------------------------------------------------------------------------

/** A limit, a stop and the death of the host are not the fault of what was launched. */
const launches = (rules: Complete, state: State) =>
  inRound(state).filter(
    (attempt) =>
      !isLimited(rules, attempt) && attempt.ending?.failure?.kind !== "Stopped" && attempt.ending?.hostDied !== true
  ).length

const original = (turn: Turn): string | null => turn.model ?? null

/** Models that were found not to work in this round. */
const refused = (rules: Complete, state: State) =>
  inRound(state).flatMap((attempt) => {
    const failure = attempt.ending?.failure
    const gone = failure?.kind === "ModelUnavailable" || (failure?.scope === "model" && isLimited(rules, attempt))
    return gone ? [attempt.model] : []
  })

const modelFor = ({ rules, state }: Situation, attempt: number): string | null => {
  const candidate = rules.fallbackModels[attempt - rules.fallbackFrom]
  return candidate === undefined || refused(rules, state).includes(candidate)
    ? (state.attempts.at(-1)?.model ?? null)
    : candidate
}

const nextFallback = ({ turn, rules, state }: Situation): string | undefined => {
  const tried = inRound(state).map((attempt) => attempt.model)
  if (counted(state) >= rules.maxAttempts) return undefined
  return rules.fallbackModels.find((model) => model !== original(turn) && !tried.includes(model))
}

const named = (kind: FailureKind): string => kind.replaceAll(/(?<!^)[A-Z]/g, (letter) => `-${letter}`).toLowerCase()

const millis = (duration: Duration.Input): number => Duration.toMillis(duration)

const clamp = (remaining: number, planned: number): number => Math.max(0, Math.min(remaining, planned))
