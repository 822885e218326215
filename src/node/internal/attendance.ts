/**
 * What is read of a running agent, when it has been silent for too long, and how it ended.
 */
import { Clock, Duration, Effect } from "effect"
import { AgentLauncher, Failure, Silence } from "shiftboss"
import * as Protocol from "../Protocol.ts"
import { barrierName, type Gone } from "./child.ts"
import { monotonicMillis } from "./clock.ts"
import { secretReach } from "./environment.ts"
import { partsOf, presentable, presentableReading } from "./presentable.ts"
import { Tail } from "./tail.ts"
import { TextReader } from "./text.ts"

/** Why the launcher ended an agent that had not ended by itself. */
export type Verdict = "stop" | { readonly hung: string }

/** An agent and what has been read of it. */
export interface Attended<State> {
  readonly onStdout: (chunk: Buffer) => void
  readonly onStderr: (chunk: Buffer) => void
  readonly activity: AgentLauncher.AgentRun["activity"]
  readonly silence: () => Silence.Silence
  /** The agent has printed how its turn ended. */
  readonly isTerminal: () => boolean
  /** The first reason counts. */
  readonly endBy: (verdict: Verdict) => void
  /** To be called once, when nothing more comes. */
  readonly close: () => Closed<State>
}

interface Closed<State> {
  readonly state: State
  readonly exit: Omit<Protocol.Exit, "code" | "signal">
  readonly left: Protocol.Left
  readonly verdict: Verdict | null
  readonly redact: (text: string) => string
  readonly publish: (activity: AgentLauncher.Activity) => void
  readonly finish: () => void
}

export interface AttendOptions {
  readonly env: { readonly [name: string]: string }
  readonly redact: (text: string) => string
  readonly maxLineBytes: number | undefined
  readonly outputFile: string
  readonly timeZone: string
}

/** Gets ready to read an agent. */
export const attend = Effect.fnUntraced(function* <State>(
  protocol: Protocol.Protocol<State>,
  attempt: AgentLauncher.Attempt,
  options: AttendOptions
) {
  const clock = yield* Clock.Clock
  const feed = yield* AgentLauncher.makeFeed
  const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const startedAt = clock.currentTimeMillisUnsafe()
  const { redact } = options
  const isText = protocol.output === "text"
  const kept = protocol.keepBytes ?? Protocol.keptBytes
  const stdout = new Tail(
    kept,
    isText ? { file: { path: options.outputFile, now: startedAt } } : { reach: secretReach }
  )
  const stderr = new Tail(Protocol.keptBytes, { reach: secretReach })
  let silence = Silence.begin(now())
  let verdict: Verdict | null = null
  const publish = (activity: AgentLauncher.Activity) => {
    const shown = presentable(activity, redact)
    if (shown !== null) feed.publish(shown)
  }

  const on = {
    activity: (activity: AgentLauncher.Activity) => {
      silence = Silence.seen(silence, now(), activity)
      publish(activity)
    },
    text: (said: string) => {
      stdout.write(Buffer.from(said))
      for (const part of partsOf(said)) feed.publish({ _tag: "Text", text: part })
    },
    noise: (line: string) => stdout.write(Buffer.from(`${line}\n`))
  }
  const output = readerOf(protocol, attempt, options, on)
  const attended: Attended<State> = {
    onStdout: (chunk) => {
      // Only what is said counts as activity: an agent that repeats its own retry is alive without getting on.
      if (silence.retry === null) silence = Silence.seen(silence, now())
      output.write(chunk)
    },
    onStderr: (chunk) => {
      stderr.write(chunk)
      if (isText) silence = Silence.seen(silence, now())
    },
    activity: feed.stream,
    silence: () => silence,
    isTerminal: () => isTerminal(protocol, output.state()),
    endBy: (reason) => {
      verdict ??= reason
    },
    close: () => {
      const counts = output.end()
      const exit = {
        stdout: stdout.text(redact),
        stderr: stderr.text(redact),
        cut: isText ? stdout.close() : null,
        counts,
        printed: { now: clock.currentTimeMillisUnsafe(), timeZone: options.timeZone }
      }
      const left = { env: options.env, startedAt }
      return { state: output.state(), exit, left, verdict, redact, publish, finish: feed.end }
    }
  }
  return attended
})

/** Ends the agent when its time is over. */
export const watch = Effect.fnUntraced(function* <State>(
  agent: Attended<State>,
  limits: AgentLauncher.Attempt["limits"],
  linger: Duration.Duration,
  end: (hung: string) => Effect.Effect<unknown>
) {
  const limit = Duration.toMillis(limits.silence)
  const over = (yield* monotonicMillis) + Duration.toMillis(limits.wallClock)
  while (true) {
    const now = yield* monotonicMillis
    const silence = agent.silence()
    const done = agent.isTerminal() && silence.tools.size === 0
    const due = Math.min(Silence.dueAt(silence, limit), done ? silence.at + Duration.toMillis(linger) : Infinity)
    if (now >= due || now >= over) {
      return yield* end(hungText(silence, now >= due ? now - silence.at : null, limits))
    }
    // Looked at again before it is due: a result or a tool may have changed when that is.
    yield* Effect.sleep(Math.min(due - now, over - now, lookMillis))
  }
})

/** How the attempt ended, from all that was read and left. A result once printed stays one. Never dies. */
export const conclude = Effect.fn("ProcessLauncher.ended")(function* <State>(
  protocol: Protocol.Protocol<State>,
  agent: Attended<State>,
  gone: Gone
) {
  const { state, exit, left, verdict, redact, publish, finish } = agent.close()
  const consulted = yield* consult(protocol, state, left)
  const { ending, known, rule } = readingOf(protocol, consulted, { ...exit, ...gone }, redact)
  const judgement = judged(ending, isTerminal(protocol, consulted), verdict)
  if (judgement._tag === "Failed" && judgement.failure.kind === "Unknown") {
    publish({ _tag: "Drift", raw: judgement.failure.raw ?? judgement.failure.detail })
  }
  if (judgement.result === undefined && known.usage !== null) {
    // The agent was cut short, and what it used is known all the same.
    publish({ _tag: "UsageSoFar", usage: known.usage, counter: known.counters?.usage })
  }
  finish()
  yield* Effect.annotateCurrentSpan({ rule, ending: judgement._tag })
  return judgement
})

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

/** Reads lines or text, as the protocol wants it. */
const readerOf = <State>(
  protocol: Protocol.Protocol<State>,
  attempt: AgentLauncher.Attempt,
  { redact, maxLineBytes }: AttendOptions,
  on: {
    readonly activity: (activity: AgentLauncher.Activity) => void
    readonly text: (said: string) => void
    readonly noise: (line: string) => void
  }
): Protocol.Reader<State> => {
  const lines = Protocol.reader(protocol, attempt, { maxLineBytes, noise: on.noise, activity: on.activity })
  if (protocol.output === "lines") return lines
  const text = new TextReader({ clean: redact, reach: secretReach, onText: on.text })
  return {
    write: (chunk) => text.write(chunk),
    state: lines.state,
    end: () => {
      text.end()
      return lines.end()
    }
  }
}

const lookMillis = 250

const hungText = (
  silence: Silence.Silence,
  silentFor: number | null,
  limits: AgentLauncher.Attempt["limits"]
): string => {
  if (silentFor === null) return `It was not done after ${Duration.format(limits.wallClock)}`
  const doing =
    silence.retry !== null
      ? ", trying again by itself"
      : silence.tools.size > 0
        ? `, with ${silence.tools.size === 1 ? "a tool" : `${silence.tools.size} tools`} running`
        : ""
  return `There was no activity for ${Duration.format(Duration.millis(Math.round(silentFor)))}${doing}`
}

/** It is somebody else's code, and looks at somebody else's files: what it adds is never worth the ending. */
const consult = <State>(protocol: Protocol.Protocol<State>, state: State, left: Protocol.Left): Effect.Effect<State> =>
  Effect.suspend(() => protocol.consult?.(state, left) ?? Effect.succeed(state)).pipe(
    Effect.timeoutOrElse({ duration: longestConsult, orElse: () => Effect.succeed(state) }),
    Effect.catchCause(() => Effect.succeed(state))
  )

const longestConsult = Duration.seconds(10)

const isTerminal = <State>(protocol: Protocol.Protocol<State>, state: State): boolean => {
  try {
    return protocol.terminal(state)
  } catch {
    return false
  }
}

const readingOf = <State>(
  protocol: Protocol.Protocol<State>,
  state: State,
  exit: Protocol.Exit,
  redact: (text: string) => string
): Protocol.Reading => {
  const nothing = Protocol.known({})
  // The shell's own words: the program was there and could not be run, such as a script whose interpreter is missing.
  if ((exit.code === 126 || exit.code === 127) && exit.counts.read === 0 && exit.stderr.startsWith(`${barrierName}:`)) {
    const said = Protocol.sentence(
      exit.stderr.slice(barrierName.length + 1).replace(/^[\s\d:]*(?:line \d+:)?\s*exec:\s*/, "")
    )
    const failure = Failure.make("LauncherFailed", said, { raw: exit.stderr.trim() })
    return presentableReading(Protocol.ended("launcher/exec", failure, nothing), redact)
  }
  try {
    return presentableReading(protocol.ending(state, exit), redact)
  } catch (error) {
    const detail = `The protocol ${protocol.name} could not read the ending: ${String(error)}`
    const failure = Failure.make("LauncherFailed", detail)
    return presentableReading(Protocol.ended("launcher/protocol", failure, nothing), redact)
  }
}

/** The launcher's own reason replaces the signs that its signal left, never what the agent said before. */
const judged = (ending: AgentLauncher.Ending, terminal: boolean, verdict: Verdict | null): AgentLauncher.Ending => {
  if (verdict === null || (ending._tag === "Succeeded" && terminal)) return ending
  if (terminal && ending._tag === "Failed" && ending.failure.kind !== "Interrupted") return ending
  const failure =
    verdict === "stop" ? Failure.make("Stopped", "The attempt was stopped") : Failure.make("Hung", verdict.hung)
  return AgentLauncher.failed(failure, ending.result)
}
