/**
 * What the cases of a conformance suite say when they do not hold. No test framework is needed to run one.
 */
import { Effect, Schema, type Scope, Stream } from "effect"
import type { Storage } from "shiftboss"

/** The contract was broken. */
export class Broken extends Schema.TaggedError<Broken>()("Broken", {
  rule: Schema.String,
  expected: Schema.String,
  found: Schema.String
}) {
  override get message(): string {
    return `${this.rule}: expected ${this.expected}, found ${this.found}`
  }
}

const shown = (value: unknown): string => {
  const text = value instanceof Error ? String(value) : (JSON.stringify(value) ?? String(value))
  return text.length > 400 ? `${text.slice(0, 400)}…` : text
}

/** Compares as JSON, which is what a log keeps. */
export const same = (rule: string, found: unknown, expected: unknown): Effect.Effect<void, Broken> =>
  JSON.stringify(found) === JSON.stringify(expected)
    ? Effect.void
    : Effect.fail(new Broken({ rule, expected: shown(expected), found: shown(found) }))

export const holds = (rule: string, condition: boolean, found: unknown): Effect.Effect<void, Broken> =>
  condition ? Effect.void : Effect.fail(new Broken({ rule, expected: "it to hold", found: shown(found) }))

/** The error it fails with, which has to have this tag. */
export const failsAs = Effect.fnUntraced(function* <A, E extends { readonly _tag: string }, R, Tag extends E["_tag"]>(
  rule: string,
  effect: Effect.Effect<A, E, R>,
  tag: Tag
) {
  const exit = yield* Effect.result(effect)
  if (exit._tag === "Success") return yield* new Broken({ rule, expected: tag, found: "success" })
  const error = exit.failure
  if (!hasTag(error, tag)) return yield* new Broken({ rule, expected: tag, found: shown(error) })
  return error
})

const hasTag = <E extends { readonly _tag: string }, Tag extends E["_tag"]>(
  error: E,
  tag: Tag
): error is Extract<E, { readonly _tag: Tag }> => error._tag === tag

export type Service = Storage.Storage["Service"]

export const readAll = (storage: Service, log: string) => Stream.runCollect(storage.read(log))

export const names = (storage: Service, prefix?: string) =>
  Effect.map(Stream.runCollect(storage.list(prefix)), (found) => found.toSorted())

/** Opens the log, works with it and lets go of it. */
export const using = <A, E, R>(
  storage: Service,
  log: string,
  work: (log: Storage.Log<Storage.Json>) => Effect.Effect<A, E, R>
) => Effect.scoped(Effect.flatMap(storage.open(log), work))

export interface Case<Subject> {
  readonly name: string
  readonly run: (subject: Subject) => Effect.Effect<void, unknown, Scope.Scope>
}

/** A rule and a case that shows it; the rule is its name and what it says when it does not hold. */
export const rule = <Subject>(
  name: string,
  run: (subject: Subject, name: string) => Effect.Effect<void, unknown, Scope.Scope>
): Case<Subject> => ({ name, run: (subject) => run(subject, name) })
