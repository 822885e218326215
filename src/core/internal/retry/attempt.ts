/**
 * One attempt: journaled before it is launched, watched, and journaled when it has ended.
 */
import { Clock, Deferred, Duration, Effect, Fiber, Stream } from "effect"
import type * as Launcher from "../../AgentLauncher.ts"
import { Failure } from "../../Failure.ts"
import type { Complete } from "../../RetryRules.ts"
import type { State, Turn } from "../../Turn.ts"
import type { Cooldown, Place } from "./cooldown.ts"
import type { Launch } from "./decide.ts"
import type { Journal, JournalError } from "./journal.ts"
import { type Redact, redactEnding, redactFailure, redactor } from "./redact.ts"
import { type Price, priced } from "./totals.ts"

export interface Watch {
  readonly launcher: Launcher.AgentLauncher["Service"]
  readonly journal: Journal
  readonly cooldown: Cooldown
  readonly prices: { readonly [model: string]: Price }
  /** Succeeds when the turn is to be stopped. */
  readonly stop: Deferred.Deferred<void>
}

/** The rest of an agent's lines after its end; a stream that stays open must not hold the turn. */
const linesAfterEnd = Duration.seconds(1)

/** On top of the grace, for journaling what an interrupted attempt left. */
const settling = Duration.seconds(10)

const stopped = new Failure({ kind: "Stopped", scope: "request", detail: "It was stopped as asked.", raw: null })

/** Runs the attempt that was decided on. The state in the end has it with its ending. */
export const runAttempt = Effect.fnUntraced(function* (
  watch: Watch,
  turn: Turn,
  rules: Complete,
  state: State,
  launch: Launch,
  prompt: string
) {
  const { journal, launcher } = watch
  const { id: turnId } = turn
  const redact = redactor(turn.env)
  const number = (state.attempts.at(-1)?.number ?? 0) + 1
  const session: Launcher.Session =
    launch.resume === null ? { _tag: "New", id: yield* launcher.newSessionId } : { _tag: "Resume", id: launch.resume }
  const place: Place = { account: state.account ?? "", model: launch.model }

  const settle = Effect.fnUntraced(function* (reported: Launcher.Ending, ran: boolean) {
    const at = yield* Clock.currentTimeMillis
    const redacted = redactEnding(reported, redact)
    const failure = redacted._tag === "Failed" ? redacted.failure : null
    if (failure === null) watch.cooldown.answered(turnId, at)
    const ending = priced(
      yield* journal.state(turnId),
      { at, failure, ran, result: redacted.result ?? null },
      watch.prices
    )
    return yield* journal.append({ _tag: "AttemptEnded", turnId, ending })
  })

  const { purpose, rule, model } = launch
  const at = yield* Clock.currentTimeMillis
  yield* journal.append({ _tag: "AttemptStarted", turnId, at, number, purpose, rule, session, model })

  const attempt: Launcher.Attempt = {
    ...{ turnId, number, prompt, session, directory: turn.directory, env: turn.env, budgetUsd: launch.budgetUsd },
    model: launch.model ?? undefined,
    limits: {
      silence: Duration.fromInputUnsafe(rules.silence),
      wallClock: Duration.fromInputUnsafe(rules.wallClock)
    }
  }
  const launched = launchIdentified(watch, attempt)
  return yield* Effect.scoped(
    Effect.matchEffect(launched, {
      onSuccess: (run) => Effect.flatMap(follow(watch, turn, rules, place, run, settle), (end) => settle(end, true)),
      onFailure: (error) =>
        error._tag === "LaunchError" ? settle({ _tag: "Failed", failure: error.failure }, false) : Effect.fail(error)
    })
  )
})

/**
 * Launches the agent behind its barrier. When its identity cannot be journaled, the barrier is never opened: the launch
 * is interrupted, and with it what waits there.
 */
const launchIdentified = Effect.fnUntraced(function* ({ launcher, journal }: Watch, attempt: Launcher.Attempt) {
  const unkept = yield* Deferred.make<never, JournalError>()
  const keep = (identity: Launcher.Identity) =>
    journal.append({ _tag: "AgentIdentified", turnId: attempt.turnId, identity }).pipe(
      Effect.asVoid,
      Effect.catch((error) => Effect.andThen(Deferred.fail(unkept, error), Effect.never))
    )
  return yield* Effect.raceFirst(launcher.launch(attempt, keep), Deferred.await(unkept))
})

type Settle = (ending: Launcher.Ending, ran: boolean) => Effect.Effect<State, JournalError>

const follow = Effect.fnUntraced(function* (
  watch: Watch,
  turn: Turn,
  rules: Complete,
  place: Place,
  run: Launcher.AgentRun,
  settle: Settle
) {
  const lines = yield* Effect.forkScoped(
    Stream.runForEach(run.activity, noteActivity(watch, turn.id, place, redactor(turn.env)))
  )
  const heardAll = Effect.timeoutOption(Fiber.join(lines), linesAfterEnd)
  const asked = Effect.andThen(Deferred.await(watch.stop), Effect.andThen(run.stop(rules.grace), run.ended)).pipe(
    Effect.map(asStopped)
  )
  const unkept = Effect.andThen(Fiber.join(lines), Effect.never)
  const ending = yield* Effect.raceAllFirst([run.ended, asked, unkept]).pipe(
    // Whoever interrupts the turn stops the agent, and does not charge the turn for it: it goes on in its session.
    Effect.onInterrupt(() =>
      Effect.andThen(run.stop(rules.grace), run.ended).pipe(
        Effect.tap(() => heardAll),
        Effect.flatMap((ending) => settle(asStopped(ending), true)),
        Effect.interruptible,
        Effect.timeoutOption(Duration.sum(Duration.fromInputUnsafe(rules.grace), settling)),
        Effect.ignore
      )
    )
  )
  yield* heardAll
  return (yield* Deferred.isDone(watch.stop)) ? asStopped(ending) : ending
})

/** A result once seen stays a result; any other ending is the stop we asked for. */
const asStopped = (ending: Launcher.Ending): Launcher.Ending => {
  if (ending._tag === "Succeeded") return ending
  return ending.result === undefined
    ? { _tag: "Failed", failure: stopped }
    : { _tag: "Failed", failure: stopped, result: ending.result }
}

/** What has to outlive a crash of the host is journaled at once: the session to resume and the tools under way. */
const noteActivity =
  ({ journal, cooldown }: Watch, turnId: string, place: Place, redact: Redact) =>
  (activity: Launcher.Activity): Effect.Effect<unknown, JournalError> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      switch (activity._tag) {
        case "SessionSeen":
          return yield* journal.append({ _tag: "SessionSeen", turnId, id: activity.id })
        case "AgentRetry":
          return cooldown.raise(
            turnId,
            place,
            redactFailure(activity.failure, redact),
            now,
            Math.max(activity.failure.resetAt ?? 0, now + (activity.delayMillis ?? 0))
          )
        case "ToolStarted":
          cooldown.answered(turnId, now)
          return yield* journal.append({ _tag: "ToolStarted", turnId, id: activity.id, tool: redact(activity.tool) })
        case "ToolEnded":
          return yield* journal.append({ _tag: "ToolEnded", turnId, id: activity.id })
        case "UsageSoFar": {
          const { usage, counter } = activity
          return yield* journal.append({ _tag: "UsageTold", turnId, soFar: { usage, counter } })
        }
        case "Text":
          return cooldown.answered(turnId, now)
      }
    })
