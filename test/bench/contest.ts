/**
 * Contestants are processes of their own, so that none has another's heap or compiled code, and are asked in turn.
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"

/** What a contestant is asked to do: this many tasks that do nothing, at most so many at a time. */
export interface Task {
  readonly tasks: number
  readonly seats: number
  /** An empty folder, for those that keep files. */
  readonly folder: string
  /** Where the service that it works with listens, for those that work with one. */
  readonly url: string
}

type Answer = { readonly value: unknown } | { readonly failure: string }

const shown = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))

/** Answers whoever started this process, one question after the other, and ends with them. */
export const answer = <Q>(asked: (question: Q) => Promise<unknown>, end: () => Promise<unknown> = async () => {}) => {
  process.on("message", (question: Q) => {
    asked(question).then(
      (value) => process.send?.({ value } satisfies Answer),
      (error: unknown) => process.send?.({ failure: shown(error) } satisfies Answer)
    )
  })
  // A person's Ctrl-C reaches all processes of the terminal: the one that asks decides, also by its death.
  process.on("SIGINT", () => {})
  process.once("disconnect", () => void end().finally(() => process.exit()))
}

/** A process that answers; `name` is its program, beside this one. */
export class Respondent {
  private readonly process: ChildProcess

  constructor(name: string, ...arguments_: ReadonlyArray<string>) {
    this.process = fork(new URL(name, import.meta.url), arguments_, { stdio: ["ignore", "ignore", "inherit", "ipc"] })
  }

  async ask<A>(question: unknown, isAnswer: (value: unknown) => value is A): Promise<A> {
    const over = new AbortController()
    const { signal } = over
    const gone = once(this.process, "exit", { signal }).then(([code]) => ({
      failure: `its process ended with ${String(code)}`
    }))
    const answered = once(this.process, "message", { signal }).then(
      ([message]: ReadonlyArray<unknown>) => message as Answer
    )
    this.process.send(question as object)
    const reply: Answer = await Promise.race([answered, gone])
    for (const pending of [gone, answered]) pending.catch(() => {})
    over.abort()
    if ("failure" in reply) throw new Error(reply.failure)
    if (!isAnswer(reply.value)) throw new Error(`an answer nobody expected: ${JSON.stringify(reply.value)}`)
    return reply.value
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const gone = once(this.process, "exit")
    if (this.process.connected) this.process.disconnect()
    await gone
  }
}

export const isNumber = (value: unknown): value is number => typeof value === "number"
export const isString = (value: unknown): value is string => typeof value === "string"
