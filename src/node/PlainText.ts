/**
 * Any program that takes a prompt and prints text: a script, a linter, a small agent of one's own.
 *
 * It knows no sessions, usage or cost, so an attempt is never resumed and those stay unknown. Exit code 0 is a success.
 */
import { type Layer, Result, Schema } from "effect"
import { type AgentLauncher, Failure } from "shiftboss"
import { checkBytes } from "./internal/options.ts"
import * as ProcessLauncher from "./ProcessLauncher.ts"
import * as Protocol from "./Protocol.ts"

// -----------------------------------------------------------------------------
// Models
// -----------------------------------------------------------------------------

export interface Options {
  /** The program. */
  readonly command: string
  /** Its arguments. `Protocol.PromptFile` among them stands for a file that holds the prompt. */
  readonly arguments?: ReadonlyArray<string | typeof Protocol.PromptFile> | undefined
  /** How the program is told a model: arguments before all others. Without it a model that is asked for is refused. */
  readonly model?: ((model: string) => ReadonlyArray<string>) | undefined
  /** Where the prompt goes: stdin (default), a last argument, or only where `PromptFile` stands. */
  readonly prompt?: "stdin" | "argument" | "file" | undefined
  /**
   * Of longer output the end is the text, in bytes. All of it, without its secrets, stays for a week in a file that the
   * text names. Default 64 KiB.
   */
  readonly limit?: number | undefined
  /** What exit codes other than 0 mean. Default `Unknown`. */
  readonly exitCodes?: { readonly [code: number]: Failure.FailureKind } | undefined
  /** When given, output that does not end in a block of this shape is a failure. `readBlock` gets its value. */
  readonly block?: Schema.ConstraintDecoder<unknown> | undefined
}

/** The text does not end in a block of the wanted shape. Asking the agent again may help. */
export class BlockError extends Schema.TaggedError<BlockError>()("BlockError", {
  reason: Schema.Literals(["missing", "tooLong", "invalid"]),
  detail: Schema.String
}) {
  override get message(): string {
    return `The text does not end in a readable block (${this.reason}): ${this.detail}`
  }
}

// -----------------------------------------------------------------------------
// Protocol
// -----------------------------------------------------------------------------

const defaultLimit = 64 * 1024

/** How the program is called and read. A limit that is no number of bytes is a `RangeError`. */
export const protocol = (options: Options): Protocol.Protocol<null> => ({
  name: "text",
  output: "text",
  keepBytes: limitOf(options),
  command: ({ prompt, session, model }) => {
    if (session._tag === "Resume") {
      return Failure.make("SessionLost", `${options.command} keeps no sessions: ${session.id} cannot be resumed`)
    }
    if (model !== undefined && options.model === undefined) {
      const detail = `${options.command} cannot be told a model (${model}): give PlainText the option "model", or ask for none`
      return Failure.make("ModelUnavailable", detail)
    }
    const argument = options.prompt === "argument"
    if (argument && !Protocol.fitsArgument(prompt)) {
      return Failure.make("Config", `The prompt cannot be an argument of ${options.command}: give it by stdin or file`)
    }
    return {
      program: options.command,
      arguments: [
        ...(model === undefined ? [] : (options.model?.(model) ?? [])),
        ...(options.arguments ?? []),
        ...(argument ? [prompt] : [])
      ],
      ...((options.prompt ?? "stdin") === "stdin" ? { stdin: prompt } : {})
    }
  },
  initial: () => null,
  read: (state) => Protocol.quietly(state),
  terminal: () => false,
  ending: (_, exit) => endingOf(options, exit)
})

/** Launches the program. */
export const layer = (options: Options & ProcessLauncher.Options): Layer.Layer<AgentLauncher.AgentLauncher> =>
  ProcessLauncher.layer(protocol(options), options)

// -----------------------------------------------------------------------------
// Blocks
// -----------------------------------------------------------------------------

/** A longer block is not read. Default of `readBlock`, in characters. */
export const maxBlock = 16 * 1024

/**
 * The value of the block at the end of a text: a fenced JSON object, or lines of `key: value`, whose values are strings.
 * Nothing but white space may follow it.
 */
export const readBlock = <A>(
  text: string,
  schema: Schema.ConstraintDecoder<A>,
  limit: number = maxBlock
): Result.Result<A, BlockError> => {
  const found = blockOf(text.trimEnd(), limit)
  if (Result.isFailure(found)) return Result.fail(found.failure)
  return Result.mapError(
    Schema.decodeUnknownResult(schema)(found.success),
    (error) => new BlockError({ reason: "invalid", detail: error.message })
  )
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const limitOf = ({ limit = defaultLimit }: Options): number => {
  checkBytes("limit", limit)
  return limit
}

const endingOf = (options: Options, exit: Protocol.Exit): Protocol.Reading => {
  const result = Protocol.known({ text: textOf(exit) })
  const stderr = exit.stderr.trim()
  if (exit.code === 0) {
    if (options.block === undefined) return Protocol.succeeded("text/exit-0", result)
    const block = readBlock(exit.stdout, options.block)
    if (Result.isSuccess(block)) return Protocol.succeeded("text/block", result)
    const more = { raw: Protocol.lastLines(exit.stdout) }
    return Protocol.failed("text/no-block", Failure.make("Unknown", block.failure.message, more), result)
  }
  const said = stderr.split("\n").at(-1) ?? ""
  const detail = `${options.command} ${Protocol.exitText(exit)}${said === "" ? "" : `: ${Protocol.sentence(said)}`}`
  const more = { raw: Protocol.lastLines(stderr) }
  if (Protocol.wasSignalled(exit))
    return Protocol.failed("text/signal", Failure.make("Interrupted", detail, more), result)
  const kind = options.exitCodes?.[exit.code ?? -1]
  return Protocol.failed(`text/exit-${exit.code}`, Failure.make(kind ?? "Unknown", detail, more), result)
}

const textOf = ({ stdout, cut }: Protocol.Exit): string => {
  if (cut === null) return stdout
  const where = cut.path === null ? "the rest could not be kept" : `all of them are in ${cut.path}`
  return `[cut: the last ${Buffer.byteLength(stdout)} of ${cut.bytes} bytes; ${where}]\n${stdout}`
}

const blockOf = (text: string, limit: number): Result.Result<Protocol.Json, BlockError> => {
  const fail = (reason: BlockError["reason"], detail: string) => Result.fail(new BlockError({ reason, detail }))
  if (text.endsWith("```")) {
    const open = text.lastIndexOf("```", text.length - 4)
    if (open < 0) return fail("missing", "the last fence has no beginning")
    if (text.length - open > limit) return fail("tooLong", `${text.length - open} characters, at most ${limit}`)
    const json = Protocol.parseObject(text.slice(open + 3, -3).replace(/^[a-z]*\s*\n/i, ""))
    return json === null ? fail("invalid", "what the last fence holds is no JSON object") : Result.succeed(json)
  }
  // A line that is cut by the limit is looked at as a whole.
  const from = text.length <= limit ? 0 : text.lastIndexOf("\n", text.length - limit) + 1
  const lines = text.slice(from).split("\n")
  const pairs: Array<[string, string]> = []
  for (const line of lines.reverse()) {
    const pair = /^\s*([A-Za-z][\w -]{0,63}?)\s*:\s+(\S.*?)\s*$/.exec(line)
    if (pair === null) break
    pairs.unshift([pair[1] ?? "", pair[2] ?? ""])
  }
  if (pairs.length === 0) return fail("missing", "its last line is neither a fence nor `key: value`")
  if (pairs.length === lines.length && from > 0) return fail("tooLong", `more than ${limit} characters`)
  return Result.succeed(Object.fromEntries(pairs))
}
