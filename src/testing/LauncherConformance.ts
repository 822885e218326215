/**
 * The contract of `AgentLauncher` as a list of cases. They need no test framework: each is an effect that fails when its
 * rule is broken, to be run by whatever runs tests.
 */
import { Duration, Effect, Exit, Fiber, type Scope, Stream } from "effect"
import type { AgentLauncher } from "shiftboss"
import { type BrokenRule, type Case, check } from "./internal/conformance.ts"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

export type { Case } from "./internal/conformance.ts"

/** What an agent is asked to do in a case. Whatever it does, it first tells the text `hello` as activity. */
export type Task =
  /** Succeed with a text that ends in `done`. */
  | "succeed"
  /** Fail in whatever way it can. */
  | "fail"
  /** Say `hello` again and again until it is stopped. */
  | "work"
  /** Say nothing more until it is stopped. */
  | "hang"

/** What the suite is run against. The launcher is made anew for each case. */
export interface Subject {
  readonly launcher: Effect.Effect<AgentLauncher.AgentLauncher["Service"], unknown, Scope.Scope>
  /** The prompt that makes its agent do that. */
  readonly prompt: (task: Task) => string
  /** Whether anything of an attempt is alive, by looking. Without it only what the port tells is checked. */
  readonly isAlive?: ((identity: AgentLauncher.Identity) => Effect.Effect<boolean>) | undefined
  /** How long an agent is watched that should be ended for its silence or length. Default 300 ms. */
  readonly limit?: Duration.Input | undefined
}

/**
 * The cases for a launcher. They take real time: at most a second or two each.
 *
 * ```ts
 * for (const { name, run } of launcherConformance({ launcher: makeMine, prompt: (task) => task })) {
 *   test(name, () => Effect.runPromise(run))
 * }
 * ```
 */
export const launcherConformance = (subject: Subject): ReadonlyArray<Case> =>
  rules.map(({ name, run }) => ({ name, run: run(subject) }))

// -----------------------------------------------------------------------------
// Rules
// -----------------------------------------------------------------------------

interface Rule {
  readonly name: string
  readonly run: (subject: Subject) => Effect.Effect<void, unknown>
}

const ending: ReadonlyArray<Rule> = [
  {
    name: "tells its activity and succeeds with its result",
    run: (subject) =>
      withRun(subject, "succeed", {}, (run) =>
        Effect.gen(function* () {
          yield* heard(run)
          const ended = yield* run.ended
          yield* check(ended._tag === "Succeeded", `it ended as ${JSON.stringify(ended)}`)
          yield* check(
            ended.result?.text.trim().endsWith("done") === true,
            `its text was ${JSON.stringify(ended.result?.text)}`
          )
          yield* check(isSame(yield* run.ended, ended), "its ending was another one when asked again")
        })
      )
  },
  {
    name: "ends a failed attempt with a failure that says something",
    run: (subject) =>
      withRun(subject, "fail", {}, (run) =>
        Effect.flatMap(run.ended, (ended) =>
          check(ended._tag === "Failed" && ended.failure.detail !== "", `it ended as ${JSON.stringify(ended)}`)
        )
      )
  },
  {
    name: "tells its activity also to those who come late, and then ends it",
    run: (subject) =>
      withRun(subject, "succeed", {}, (run) =>
        Effect.gen(function* () {
          yield* run.ended
          const seen = yield* Stream.runCollect(run.activity)
          yield* check(seen.some(isHello), `it told ${JSON.stringify(seen)}`)
        })
      )
  },
  {
    name: "ends an agent that says nothing as Hung",
    run: (subject) =>
      withRun(subject, "hang", { silence: subject.limit ?? defaultLimit }, (run) =>
        Effect.andThen(checkKind(run, "Hung"), checkGone(subject, run.identity))
      )
  },
  {
    name: "ends an agent that is busy beyond its time as Hung",
    run: (subject) =>
      withRun(subject, "work", { wallClock: subject.limit ?? defaultLimit }, (run) => checkKind(run, "Hung"))
  }
]

const identity: ReadonlyArray<Rule> = [
  {
    name: "tells its identity once, before it runs",
    run: (subject) => {
      const told: Array<AgentLauncher.Identity> = []
      const onIdentity = (known: AgentLauncher.Identity) => Effect.sync(() => void told.push(known))
      return withRun(subject, "succeed", { onIdentity }, (run) =>
        Effect.andThen(run.ended, () =>
          check(told.length === 1 && isSame(told[0], run.identity), `it told ${JSON.stringify(told)}`)
        )
      )
    }
  },
  {
    name: "does not run when its identity could not be journaled",
    run: (subject) =>
      Effect.gen(function* () {
        const told: Array<AgentLauncher.Identity> = []
        const onIdentity = (known: AgentLauncher.Identity) =>
          Effect.andThen(
            Effect.sync(() => told.push(known)),
            Effect.die("the journal cannot be written")
          )
        const exit = yield* Effect.exit(withRun(subject, "work", { onIdentity }, () => Effect.void))
        yield* check(Exit.isFailure(exit), "it was launched all the same")
        for (const known of told) yield* checkGone(subject, known)
      })
  },
  {
    name: "knows of an attempt that has ended that it is gone",
    run: (subject) =>
      Effect.scoped(
        Effect.gen(function* () {
          const launcher = yield* subject.launcher
          const run = yield* Effect.scoped(
            Effect.tap(
              launcher.launch(attemptAt(subject, "succeed", {}), () => Effect.void),
              (launched) => launched.ended
            )
          )
          const found = yield* launcher.reap(run.identity)
          yield* check(found === "gone" || run.identity._tag === "Remote", `it says that it is ${found}`)
        })
      )
  },
  {
    name: "names each new session differently",
    run: (subject) =>
      Effect.scoped(
        Effect.gen(function* () {
          const launcher = yield* subject.launcher
          const ids = yield* Effect.all(Array.from({ length: 20 }, () => launcher.newSessionId))
          yield* check(new Set(ids).size === ids.length, `it named ${ids.join(", ")}`)
        })
      )
  }
]

const stopping: ReadonlyArray<Rule> = [
  {
    name: "is gone when stop is done, and ends as Stopped",
    run: (subject) =>
      withRun(subject, "work", {}, (run) =>
        Effect.gen(function* () {
          yield* heard(run)
          yield* run.stop("50 millis")
          yield* checkGone(subject, run.identity)
          yield* checkKind(run, "Stopped")
        })
      )
  },
  {
    name: "may be stopped at once, by several and again",
    run: (subject) =>
      withRun(subject, "hang", {}, (run) =>
        Effect.gen(function* () {
          yield* Effect.all([run.stop("50 millis"), run.stop(0)], { concurrency: "unbounded" })
          yield* run.stop(0)
          yield* checkGone(subject, run.identity)
          yield* checkKind(run, "Stopped")
        })
      )
  },
  {
    name: "keeps its result when it is stopped after its end",
    run: (subject) =>
      withRun(subject, "succeed", {}, (run) =>
        Effect.gen(function* () {
          const before = yield* run.ended
          yield* run.stop(0)
          yield* check(isSame(yield* run.ended, before), "the stop took its result back")
        })
      )
  },
  {
    name: "is gone when its scope is closed, and still tells its ending",
    run: (subject) =>
      Effect.gen(function* () {
        const outlived = yield* withRun(subject, "work", {}, (run) => Effect.as(heard(run), run))
        yield* checkGone(subject, outlived.identity)
        yield* checkKind(outlived, "Stopped")
      })
  },
  {
    name: "goes on when those who wait for it give up",
    run: (subject) =>
      withRun(subject, "work", {}, (run) =>
        Effect.gen(function* () {
          yield* heard(run)
          const waiting = yield* Effect.forkChild(run.ended, { startImmediately: true })
          yield* Fiber.interrupt(waiting)
          const ended = yield* Effect.timeoutOption(run.ended, "50 millis")
          yield* check(ended._tag === "None", "it ended")
        })
      )
  }
]

const rules: ReadonlyArray<Rule> = [...ending, ...identity, ...stopping]

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const defaultLimit: Duration.Input = "300 millis"

interface Given {
  readonly silence?: Duration.Input
  readonly wallClock?: Duration.Input
  readonly onIdentity?: (identity: AgentLauncher.Identity) => Effect.Effect<void>
}

const attemptAt = (subject: Subject, task: Task, given: Given): AgentLauncher.Attempt => ({
  turnId: `conformance-${task}`,
  number: 1,
  prompt: subject.prompt(task),
  session: { _tag: "New", id: "00000000-0000-4000-8000-000000000000" },
  limits: {
    silence: Duration.fromInputUnsafe(given.silence ?? "1 minute"),
    wallClock: Duration.fromInputUnsafe(given.wallClock ?? "1 minute")
  }
})

const withRun = <A, E>(
  subject: Subject,
  task: Task,
  given: Given,
  use: (run: AgentLauncher.AgentRun) => Effect.Effect<A, E>
): Effect.Effect<A, unknown> =>
  Effect.scoped(
    Effect.gen(function* () {
      const launcher = yield* subject.launcher
      const run = yield* launcher.launch(attemptAt(subject, task, given), given.onIdentity ?? (() => Effect.void))
      return yield* use(run)
    })
  )

const isHello = (activity: AgentLauncher.Activity): boolean =>
  activity._tag === "Text" && activity.text.includes("hello")

const heard = (run: AgentLauncher.AgentRun): Effect.Effect<void, BrokenRule> =>
  Effect.flatMap(Stream.runHead(Stream.filter(run.activity, isHello)), (found) =>
    check(found._tag === "Some", "it did not say hello")
  )

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

const checkKind = (run: AgentLauncher.AgentRun, kind: string): Effect.Effect<void, BrokenRule> =>
  Effect.flatMap(run.ended, (ended) =>
    check(
      ended._tag === "Failed" && ended.failure.kind === kind,
      `it should end as ${kind}, and ended as ${JSON.stringify(ended)}`
    )
  )

const checkGone = (subject: Subject, known: AgentLauncher.Identity): Effect.Effect<void, BrokenRule> =>
  subject.isAlive === undefined
    ? Effect.void
    : Effect.flatMap(subject.isAlive(known), (alive) => check(!alive, `${JSON.stringify(known)} is alive`))
