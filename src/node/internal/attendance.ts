/**
 * What is read of a running agent, when it has been silent for too long, and how it ended.
 */
import { Clock, Duration, Effect } from "effect"
import { AgentLauncher, Failure, Silence } from "shiftboss"
import * as Protocol from "../Protocol.ts"
import { barrierName, type Gone } from "./child.ts"
import { monotonicMillis } from "./clock.ts"
import { Tail } from "./tail.ts"

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
  const isText = protocol.output === "text"
  const stdout = new Tail(protocol.keepBytes ?? Protocol.keptBytes, isText ? options.outputFile : undefined)
  const stderr = new Tail(Protocol.keptBytes, undefined)
  let silence = Silence.begin(now())
  let verdict: Verdict | null = null
  const publish = (activity: AgentLauncher.Activity) => feed.publish(presentable(activity, options.redact))

  const lines = Protocol.reader(protocol, attempt, {
    maxLineBytes: options.maxLineBytes,
    noise: (line) => {
      if (isText) publish({ _tag: "Text", text: line })
      else stdout.write(Buffer.from(`${line}\n`))
    },
    activity: (activity) => {
      silence = Silence.seen(silence, now(), activity)
      publish(activity)
    }
  })
  const attended: Attended<State> = {
    onStdout: (chunk) => {
      // Only what is said counts as activity: an agent that repeats its own retry is alive without getting on.
      if (silence.retry === null) silence = Silence.seen(silence, now())
      if (isText) stdout.write(chunk)
      lines.write(chunk)
    },
    onStderr: (chunk) => {
      stderr.write(chunk)
      if (isText) silence = Silence.seen(silence, now())
    },
    activity: feed.stream,
    silence: () => silence,
    isTerminal: () => protocol.terminal(lines.state()),
    endBy: (reason) => {
      verdict ??= reason
    },
    close: () => {
      const counts = lines.end()
      const exit = {
        stdout: stdout.text(),
        stderr: stderr.lines(),
        cut: isText ? stdout.close() : null,
        counts,
        printed: { now: clock.currentTimeMillisUnsafe(), timeZone: options.timeZone }
      }
      const left = { env: options.env, startedAt }
      return { state: lines.state(), exit, left, verdict, redact: options.redact, publish, finish: feed.end }
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

/** How the attempt ended, from all that was read and left. A result once printed stays one. */
export const conclude = Effect.fn("ProcessLauncher.ended")(function* <State>(
  protocol: Protocol.Protocol<State>,
  agent: Attended<State>,
  gone: Gone
) {
  const { state, exit, left, verdict, redact, publish, finish } = agent.close()
  const consulted = protocol.consult === undefined ? state : yield* protocol.consult(state, left)
  const reading = readingOf(protocol, consulted, { ...exit, ...gone })
  const ending = presentableEnding(judged(reading, protocol.terminal(consulted), verdict), redact)
  if (ending._tag === "Failed" && ending.failure.kind === "Unknown") {
    publish({ _tag: "Drift", raw: ending.failure.raw ?? ending.failure.detail })
  }
  const { known } = reading
  if (ending.result === undefined && known.usage !== null) {
    // The agent was cut short, and what it used is known all the same.
    publish({ _tag: "UsageSoFar", usage: known.usage, counter: known.counters?.usage })
  }
  finish()
  yield* Effect.annotateCurrentSpan({ rule: reading.rule, ending: ending._tag })
  return ending
})

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

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

const readingOf = <State>(protocol: Protocol.Protocol<State>, state: State, exit: Protocol.Exit): Protocol.Reading => {
  const nothing = Protocol.known({})
  // The shell's own words: the program was there and could not be run, such as a script whose interpreter is missing.
  if ((exit.code === 126 || exit.code === 127) && exit.counts.read === 0 && exit.stderr.startsWith(`${barrierName}:`)) {
    const said = Protocol.sentence(
      exit.stderr.slice(barrierName.length + 1).replace(/^[\s\d:]*(?:line \d+:)?\s*exec:\s*/, "")
    )
    return Protocol.ended("launcher/exec", Failure.make("LauncherFailed", said, { raw: exit.stderr.trim() }), nothing)
  }
  try {
    return protocol.ending(state, exit)
  } catch (error) {
    const detail = `The protocol ${protocol.name} could not read the ending: ${String(error)}`
    return Protocol.ended("launcher/protocol", Failure.make("LauncherFailed", detail), nothing)
  }
}

/** The launcher's own reason replaces the signs that its signal left, never what the agent said before. */
const judged = (reading: Protocol.Reading, terminal: boolean, verdict: Verdict | null): AgentLauncher.Ending => {
  const { ending } = reading
  if (verdict === null || (ending._tag === "Succeeded" && terminal)) return ending
  if (terminal && ending._tag === "Failed" && ending.failure.kind !== "Interrupted") return ending
  const failure =
    verdict === "stop" ? Failure.make("Stopped", "The attempt was stopped") : Failure.make("Hung", verdict.hung)
  return AgentLauncher.failed(failure, ending.result)
}

const presentableEnding = (ending: AgentLauncher.Ending, redact: (text: string) => string): AgentLauncher.Ending => {
  const result = ending.result === undefined ? undefined : { ...ending.result, text: redact(ending.result.text) }
  if (ending._tag === "Failed") return AgentLauncher.failed(presentableFailure(ending.failure, redact), result)
  return { ...ending, result: result ?? ending.result }
}

const presentableFailure = (failure: Failure.Failure, redact: (text: string) => string): Failure.Failure =>
  Failure.make(failure.kind, cutTo(detailCharacters, redact(failure.detail)), {
    scope: failure.scope,
    raw: failure.raw === null ? null : cutTo(rawCharacters, redact(failure.raw)),
    resetAt: failure.resetAt
  })

const detailCharacters = 400
const rawCharacters = 4096
/** Text of activities is for looking at, and kept for those who come late: not all of it. */
const shownCharacters = 8192

/** A copy, so that the rest of the text is not kept with it. Cut only when the secrets are out: half of one is one too. */
const cutTo = (characters: number, text: string): string =>
  Buffer.from(
    text.length <= characters ? text : `${text.slice(0, characters)} … (${text.length} characters)`
  ).toString()

const presentable = (activity: AgentLauncher.Activity, redact: (text: string) => string): AgentLauncher.Activity => {
  switch (activity._tag) {
    case "Text":
      return { ...activity, text: cutTo(shownCharacters, redact(activity.text)) }
    case "AgentRetry":
      return { ...activity, failure: presentableFailure(activity.failure, redact) }
    case "Drift":
      return { ...activity, raw: cutTo(rawCharacters, redact(activity.raw)) }
    default:
      return activity
  }
}
