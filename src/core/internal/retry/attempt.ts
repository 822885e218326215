/**
 * One attempt: journaled before it is launched, watched, and journaled when it has ended.
 */
import { Clock, Deferred, Duration, Effect, Fiber, Option, Stream } from "effect"
import type * as Launcher from "../../AgentLauncher.ts"
import { Failure } from "../../Failure.ts"
import type { Complete } from "../../RetryRules.ts"
import type { State, Turn } from "../../Turn.ts"
import type { Cooldown } from "./cooldown.ts"
import type { Launch } from "./decide.ts"
import { evolve } from "./evolve.ts"
import type { Journal } from "./journal.ts"
import { makeNotes, type Notes } from "./notes.ts"
import { redactEnding, redactor } from "./redact.ts"
import { soundFailure, soundResult } from "./sound.ts"
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

/** On top of the grace: for an agent to be gone, and for journaling what it left. */
const settling = Duration.seconds(10)

export const stopped = new Failure({ kind: "Stopped", scope: "request", detail: "It was stopped as asked.", raw: null })

/**
 * Runs the attempt that was decided on. The state in the end has it with its ending; without one when it was stopped, and
 * nobody said that it is gone.
 */
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
  const number = (state.attempts.at(-1)?.number ?? 0) + 1
  const session: Launcher.Session =
    launch.resume === null ? { _tag: "New", id: yield* launcher.newSessionId } : { _tag: "Resume", id: launch.resume }
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
  const notes = yield* makeNotes(watch, turnId, { account: state.account ?? "", model }, redactor(turn.env))
  const launched = Effect.catchTag(launchIdentified(watch, attempt), "LaunchError", ({ failure }) =>
    Effect.as(settle(watch, turn, notes, { _tag: "Failed", failure }, false), Option.none<Launcher.AgentRun>())
  )
  yield* Effect.scoped(
    Effect.flatMap(launched, (run) =>
      Option.isNone(run) ? Effect.void : followed(watch, turn, rules, notes, run.value)
    )
  )
  return (yield* journal.state(turnId)) ?? state
})

/**
 * Launches the agent behind its barrier. When its identity cannot be journaled, the barrier is never opened: the launch
 * is interrupted, and with it what waits there. So it is when the turn is stopped, which answers nothing.
 */
const launchIdentified = ({ launcher, journal, stop }: Watch, attempt: Launcher.Attempt) => {
  const keep = (identity: Launcher.Identity) =>
    journal.append({ _tag: "AgentIdentified", turnId: attempt.turnId, identity }).pipe(
      Effect.asVoid,
      Effect.catch(() => Effect.never)
    )
  return Effect.raceAllFirst([
    Effect.asSome(launcher.launch(attempt, keep)),
    Effect.as(Deferred.await(stop), Option.none<Launcher.AgentRun>()),
    journal.broken
  ])
}

/** Journals how the attempt ended, with the last that was told of its usage. Once begun it is done, interrupted or not. */
const settle = Effect.fnUntraced(function* (
  { cooldown, journal, prices }: Watch,
  turn: Turn,
  notes: Notes,
  reported: Launcher.Ending,
  ran: boolean
) {
  const { id: turnId } = turn
  const at = yield* Clock.currentTimeMillis
  const redacted = redactEnding(reported, redactor(turn.env))
  const failure = redacted._tag === "Failed" ? soundFailure(redacted.failure) : null
  if (failure === null) cooldown.answered(turnId, at)
  const result = redacted.result === undefined ? null : soundResult(redacted.result)
  yield* journal.appendTo(turnId, (state) => {
    const told = notes.unwritten()
    const after = told === undefined ? state : evolve(state, told)
    const ending = priced(after, { at, failure, ran, result }, prices)
    const ended = { _tag: "AttemptEnded", turnId, ending } as const
    return told === undefined ? [ended] : [told, ended]
  })
})

/** Follows the agent to its end, and journals that: from the moment it is known, no interruption loses it. */
const followed = (watch: Watch, turn: Turn, rules: Complete, notes: Notes, run: Launcher.AgentRun) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const lines = yield* Effect.forkScoped(Effect.raceFirst(Stream.runForEach(heard(run), notes.take), notes.write))
      const heardAll = Effect.andThen(
        Effect.timeoutOption(Fiber.join(lines), linesAfterEnd),
        Effect.sync(() => lines.interruptUnsafe())
      )
      const keep = (ending: Launcher.Ending) =>
        Effect.flatMap(
          Effect.forkChild(settle(watch, turn, notes, ending, true), { startImmediately: true }),
          (settled) =>
            Effect.onInterrupt(restore(Fiber.join(settled)), () =>
              Effect.ignore(Effect.timeoutOption(Fiber.join(settled), settling))
            )
        )
      const stop = Effect.andThen(run.stop(rules.grace), run.ended).pipe(
        Effect.map(asStopped),
        Effect.timeoutOption(Duration.sum(Duration.fromInputUnsafe(rules.grace), settling))
      )
      const ending = yield* Effect.raceAllFirst([
        Effect.asSome(run.ended),
        Effect.andThen(Deferred.await(watch.stop), stop),
        watch.journal.broken
      ]).pipe(
        restore,
        // Whoever interrupts the turn stops the agent, and does not charge the turn for it: it goes on in its session.
        Effect.onInterrupt(() =>
          Effect.flatMap(stop, (ending) =>
            Option.isNone(ending) ? Effect.void : Effect.andThen(heardAll, keep(ending.value))
          )
        )
      )
      if (Option.isNone(ending)) return
      yield* heardAll
      const asked = yield* Deferred.isDone(watch.stop)
      yield* keep(asked ? asStopped(ending.value) : ending.value)
    })
  )

/** What the agent does, as far as it can be told: that the telling broke is no reason to end the agent's work. */
const heard = (run: Launcher.AgentRun): Stream.Stream<Launcher.Activity> =>
  Stream.catchCause(run.activity, (cause) =>
    Stream.drain(Stream.fromEffect(Effect.logWarning("the activity of an agent cannot be followed any more", cause)))
  )

/** A result once seen stays a result; any other ending is the stop we asked for. */
const asStopped = (ending: Launcher.Ending): Launcher.Ending => {
  if (ending._tag === "Succeeded") return ending
  return ending.result === undefined
    ? { _tag: "Failed", failure: stopped }
    : { _tag: "Failed", failure: stopped, result: ending.result }
}
