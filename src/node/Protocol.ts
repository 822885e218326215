/**
 * How one agent program is called and how its output is read: all that `ProcessLauncher` needs to know of it.
 *
 * A protocol is plain data and pure functions, so what an agent printed can be read again at any time and gives the
 * same answer. `docs/custom-agent.md` builds one.
 */
import type { Effect } from "effect"
import { type AgentLauncher, Failure, type ResetTime, type Usage } from "shiftboss"
import { secretReach } from "./internal/environment.ts"
import { type Counts, type Json, LineReader } from "./internal/lines.ts"
import { Tail } from "./internal/tail.ts"

export type { Counts, Json } from "./internal/lines.ts"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

/** In the arguments of a command: replaced by the path of a file that holds the prompt, which is gone after the attempt. */
export const PromptFile = { _tag: "PromptFile" } as const

/** A command line. */
export interface Command {
  /** A path, or a name to be found in the child's `PATH`. */
  readonly program: string
  readonly arguments: ReadonlyArray<string | typeof PromptFile>
  /** Written to the child's stdin; without it the child reads an empty one. */
  readonly stdin?: string | undefined
  /** Added to the environment of the child. */
  readonly env?: { readonly [name: string]: string } | undefined
}

/** How the process ended and what it printed beside the lines that the protocol has read. */
export interface Exit {
  /** `null` when a signal ended it. */
  readonly code: number | null
  /** Such as `SIGKILL`; `null` when it exited by itself. */
  readonly signal: string | null
  /** The end of what it printed on stderr, at most 64 KiB. */
  readonly stderr: string
  /** The end of what was on stdout and no JSON line; with `output: "text"` the end of all of it. */
  readonly stdout: string
  /** With `output: "text"`, when there was more of it: how much in all, and the file that holds it, if it could be kept. */
  readonly cut: { readonly bytes: number; readonly path: string | null } | null
  readonly counts: Counts
  /** When and in which zone it was printed: reset times need both. */
  readonly printed: ResetTime.Printed
}

/** How the output of an attempt was read. */
export interface Reading {
  readonly ending: AgentLauncher.Ending
  /** The rule that decided, as `claude/rate-limit`. */
  readonly rule: string
  /** All that was told, also when the agent printed no result. */
  readonly known: AgentLauncher.AgentResult
}

/** What one line did. */
export interface Step<State> {
  readonly state: State
  readonly activity: ReadonlyArray<AgentLauncher.Activity>
}

/** Where an attempt ran, for protocols that look at files the agent left. */
export interface Left {
  readonly env: { readonly [name: string]: string }
  /** Epoch milliseconds; what the agent wrote before that is of an earlier attempt. */
  readonly startedAt: number
}

/** How one agent program is called and how its output is read. */
export interface Protocol<State> {
  /** Names the agent in rules and errors. */
  readonly name: string
  /** `lines`: stdout is a JSON object a line, given to `read`. `text`: it is text, given to `ending` as `stdout`. */
  readonly output: "lines" | "text"
  /** How much of the end of stdout `ending` gets, in bytes. Default 64 KiB. */
  readonly keepBytes?: number | undefined
  /** Names of the host's environment variables that the child gets as well, such as the one of its key. */
  readonly inherit?: ReadonlyArray<string> | undefined
  /** The polite signal. Default `SIGTERM`. */
  readonly stopSignal?: "SIGTERM" | "SIGINT" | "SIGHUP" | undefined
  /** The command line of an attempt, or why there can be none. */
  readonly command: (attempt: AgentLauncher.Attempt) => Command | Failure.Failure
  readonly initial: (attempt: AgentLauncher.Attempt) => State
  /** What a line means. With `output: "text"` it is never asked. */
  readonly read: (state: State, json: Json, line: string) => Step<State>
  /** The agent has printed how the turn ended. The process may live on. */
  readonly terminal: (state: State) => boolean
  /** Reads what the agent left on disk. Only ever adds to what its output said. */
  readonly consult?: ((state: State, left: Left) => Effect.Effect<State>) | undefined
  readonly ending: (state: State, exit: Exit) => Reading
}

// -----------------------------------------------------------------------------
// Reading
// -----------------------------------------------------------------------------

/** A whole output that was kept. */
export interface Output {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: Uint8Array
  readonly stderr: string
  readonly printed: ResetTime.Printed
}

/** What reads an output while it comes. */
export interface Reader<State> {
  readonly write: (chunk: Uint8Array) => void
  readonly state: () => State
  /** The end of the output: answers what its lines were. */
  readonly end: () => Counts
}

/** Reads the lines of an output, in whatever pieces they come. */
export const reader = <State>(
  protocol: Protocol<State>,
  attempt: AgentLauncher.Attempt,
  on: {
    readonly activity?: ((activity: AgentLauncher.Activity) => void) | undefined
    /** A line that is no JSON object. */
    readonly noise?: ((line: string) => void) | undefined
    /** A longer line is skipped. Default 32 MiB. */
    readonly maxLineBytes?: number | undefined
  } = {}
): Reader<State> => {
  let state = protocol.initial(attempt)
  const lines = new LineReader({
    maxLineBytes: on.maxLineBytes,
    onNoise: on.noise,
    onLine: (json, line) => {
      try {
        const step = protocol.read(state, json, line)
        state = step.state
        if (on.activity !== undefined) for (const activity of step.activity) on.activity(activity)
      } catch {
        // One line that a protocol cannot bear must not cost the whole attempt, nor the host.
        on.activity?.({ _tag: "Drift", raw: line })
      }
    }
  })
  return {
    write: (chunk) => lines.write(chunk),
    state: () => state,
    end: () => {
      lines.end()
      return lines.counted
    }
  }
}

/** Reads a whole output as the launcher reads it while it comes. `consult` adds what the agent left elsewhere. */
export const readAll = <State>(
  protocol: Protocol<State>,
  attempt: AgentLauncher.Attempt,
  output: Output,
  consult: (state: State) => State = (state) => state
): Reading => {
  const { code, signal, printed } = output
  const isText = protocol.output === "text"
  const stdout = new Tail(protocol.keepBytes ?? keptBytes, isText ? {} : { reach: secretReach })
  const stderr = new Tail(keptBytes, { reach: secretReach })
  stderr.write(Buffer.from(output.stderr))
  const lines = reader(protocol, attempt, { noise: (line) => stdout.write(Buffer.from(`${line}\n`)) })
  if (isText) stdout.write(Buffer.from(output.stdout))
  else lines.write(output.stdout)
  const counts = lines.end()
  return protocol.ending(consult(lines.state()), {
    ...{ code, signal, printed, counts },
    ...{ stdout: stdout.text(), stderr: stderr.text() },
    cut: isText ? stdout.close() : null
  })
}

/** How much of the end of stderr, and of stdout where a protocol names no other amount, an ending is read from. */
export const keptBytes = 64 * 1024

// -----------------------------------------------------------------------------
// For protocols
// -----------------------------------------------------------------------------

/** Longer prompts go to stdin or a file: Linux takes no argument longer than 128 KiB. */
export const maxPromptArgument = 64 * 1024

/** Whether a prompt may be an argument: it is not too long, holds no NUL, and cannot be taken for an option. */
export const fitsArgument = (prompt: string): boolean =>
  !prompt.startsWith("-") && !prompt.includes("\0") && Buffer.byteLength(prompt) <= maxPromptArgument

/**
 * Whether a text may be the value of an option: it is not empty, cannot be taken for an option itself, and has no control
 * characters. Ids of sessions and names of models come from journals, from hosts and from agents.
 */
// oxlint-disable-next-line no-control-regex
export const fitsOption = (text: string): boolean => /^[^-\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$/.test(text)

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Why an agent whose sessions have UUIDs is not called for an attempt, or null. Given something else for a session some
 * agents take it for a path, a title or a number, and go on in another one.
 */
export const refusalByUuid = (
  agent: string,
  { session }: AgentLauncher.Attempt,
  model: string | undefined
): Failure.Failure | null => {
  if (!uuid.test(session.id)) {
    const detail = `${agent} has no session ${JSON.stringify(session.id)}: its ids are UUIDs`
    return Failure.make(session._tag === "Resume" ? "SessionLost" : "Config", detail)
  }
  return model === undefined || fitsOption(model)
    ? null
    : Failure.make("ModelUnavailable", `${JSON.stringify(model)} cannot be the name of a model`)
}

/** The part of an error message in which words are looked for: some searches take the square of its length. */
export const searched = (message: string): string => message.slice(0, 16_384)

/** A copy that remembers one more tool. Those that never end are forgotten some time: copying must stay cheap. */
export const withTool = (tools: ReadonlyMap<string, string>, id: string, tool: string): ReadonlyMap<string, string> => {
  const more = new Map(tools).set(id, tool)
  if (more.size > mostTools) for (const oldest of more.keys()) return without(more, oldest)
  return more
}

/** A copy without it. */
export const withoutTool = (tools: ReadonlyMap<string, string>, id: string): ReadonlyMap<string, string> =>
  tools.size === 1 && tools.has(id) ? noTools : without(new Map(tools), id)

const noTools: ReadonlyMap<string, string> = new Map()

const without = (tools: Map<string, string>, id: string): ReadonlyMap<string, string> => {
  tools.delete(id)
  return tools
}

const mostTools = 64

/** A step that nobody sees. */
export const quietly = <State>(state: State): Step<State> => ({ state, activity: nothing })

const nothing: ReadonlyArray<AgentLauncher.Activity> = []

/** A result of which only the given parts are known. */
export const known = (parts: Partial<AgentLauncher.AgentResult>): AgentLauncher.AgentResult => ({
  text: "",
  sessionId: null,
  usage: null,
  costUsd: null,
  turns: null,
  model: null,
  ...parts
})

export const succeeded = (rule: string, result: AgentLauncher.AgentResult): Reading => ({
  ending: { _tag: "Succeeded", result },
  rule,
  known: result
})

/** A failure with the result that the agent printed for it. */
export const failed = (rule: string, failure: Failure.Failure, result: AgentLauncher.AgentResult): Reading => ({
  ending: { _tag: "Failed", failure, result },
  rule,
  known: result
})

/** A failure for which the agent printed no result. */
export const ended = (rule: string, failure: Failure.Failure, seen: AgentLauncher.AgentResult): Reading => ({
  ending: { _tag: "Failed", failure },
  rule,
  known: seen
})

/** How a process that printed no result ended, in words. */
export const exitText = (exit: Exit): string =>
  exit.signal === null ? `exited with code ${exit.code}` : `was ended by ${exit.signal}`

/** Whether the process was cut short: by a signal, or by an exit code that shells give for one. */
export const wasSignalled = (exit: Exit): boolean =>
  exit.signal !== null || exit.code === 129 || exit.code === 130 || exit.code === 137 || exit.code === 143

/** The end of a text for a failure's `raw`: at most so many whole lines, or null when there are none. */
export const lastLines = (text: string, count = 20): string | null =>
  text.trim() === "" ? null : text.trim().split("\n").slice(-count).join("\n")

// oxlint-disable-next-line no-control-regex
const colours = /\u001b\[[0-9;]*m/g

/** The first line of a message, without colours. The launcher cuts it when it is long, once its secrets are out of it. */
export const sentence = (message: string): string => message.replace(colours, "").trim().split("\n", 1)[0] ?? ""

// -----------------------------------------------------------------------------
// Reading fields
// -----------------------------------------------------------------------------

export const textAt = (json: Json, key: string): string | null => {
  const value = json[key]
  return typeof value === "string" ? value : null
}

export const numberAt = (json: Json, key: string): number | null => {
  const value = json[key]
  return typeof value === "number" && Number.isFinite(value) ? value : null
}

/** How much of something was used: a number that is not negative, and small enough to be summed. */
export const amountAt = (json: Json, key: string): number | null => {
  const value = numberAt(json, key)
  return value !== null && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : null
}

export const objectAt = (json: Json, key: string): Json | null => asObject(json[key])

export const listAt = (json: Json, key: string): ReadonlyArray<Json> => {
  const value = json[key]
  return Array.isArray(value) ? value.filter(isObject) : []
}

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)
const asObject = (value: unknown): Json | null => (isObject(value) ? value : null)

/** The texts in a list. */
export const textsAt = (json: Json, key: string): ReadonlyArray<string> => {
  const value = json[key]
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : []
}

/** The object that a text holds, or null. */
export const parseObject = (text: string): Json | null => {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return null
  }
}

/** The sum of two usages; what is unknown in one is unknown in the sum. */
export const addUsage = (left: Usage.Usage | null, right: Usage.Usage | null): Usage.Usage | null => {
  if (left === null || right === null) return left ?? right
  const sum = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b)
  return {
    input: sum(left.input, right.input),
    output: sum(left.output, right.output),
    cacheRead: sum(left.cacheRead, right.cacheRead),
    cacheWrite: sum(left.cacheWrite, right.cacheWrite),
    reasoning: sum(left.reasoning, right.reasoning)
  }
}
