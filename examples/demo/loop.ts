/**
 * The tuning loop. Each case is tried; one that goes wrong parks with a request that says what is missing; an apply
 * turns a batch of requests into one edit of the rules; the cases it wakes are tried again with them. Some that were right
 * before are checked again: what the edit broke is repaired by the next.
 */
import { Effect, FileSystem, Schema } from "effect"
import { fileURLToPath } from "node:url"
import { Case, type Dispatcher, Improvements, type Rechecks, Verdict } from "shiftboss"
import { run } from "./program.ts"
import { Rulebook } from "./rulebook.ts"
import { parseRules, putFirst, read, withRules } from "./rules.ts"

/** A case: a timestamp as some program wrote it, and the right answer. */
export const Timestamp = Schema.Struct({
  id: Schema.String,
  /** What wrote it. */
  from: Schema.String,
  text: Schema.String,
  /** The moment it means, known from elsewhere; `null` when it means none. */
  utc: Schema.NullOr(Schema.String)
})
export type Timestamp = typeof Timestamp.Type

/** A request: what the rules are missing. */
const Missing = Schema.Struct({ text: Schema.String, utc: Schema.NullOr(Schema.String), because: Schema.String })
type Missing = typeof Missing.Type

const Answer = Schema.Struct({
  utc: Schema.NullOr(Schema.String),
  rule: Schema.NullOr(Schema.String),
  because: Schema.String
})

/** What is kept of a completed case. */
export type Learned = { readonly utc: string; readonly rule: string }

const triesPerCase = 3

const beside = (file: string) => fileURLToPath(new URL(file, import.meta.url))

/**
 * One try: the agent, a process of its own, reads the rules file and answers. Started again when a signal ended it: a
 * Ctrl-C reaches a child too that is only just being started and has no process group of its own yet.
 */
const ask = Effect.fnUntraced(function* (text: string, rules: string, paceMillis: number) {
  const args = [beside("agent.ts"), "--rules", rules, "--pace", String(paceMillis), text]
  const printed = yield* Effect.retry(run(process.execPath, args), {
    times: 1,
    while: (error) => error._tag === "PlatformError"
  })
  return yield* Schema.decodeEffect(Schema.fromJsonString(Answer))(printed)
})

/** `reads`: no try runs while an apply edits the file. `try-1`, `try-2`: names of steps are unique in a case. */
const train = (paceMillis: number) =>
  Effect.fn("demo.train")(function* (timestamp: Timestamp, seat: Dispatcher.Seat<Missing>) {
    const { text, utc } = timestamp
    const { file } = yield* Rulebook
    for (let number = 1; ; number++) {
      const answer = yield* seat.step(`try-${number}`, { reads: true, result: Answer }, ask(text, file, paceMillis))
      if (answer.utc !== null && answer.rule !== null && answer.utc === utc) {
        return Case.completed<Learned>({ utc: answer.utc, rule: answer.rule })
      }
      if (number === triesPerCase) return Case.difficult(`${answer.because} (${number} tries)`)
      yield* seat.park(`missing-${number}`, { text, utc, because: answer.because })
    }
  })

/** Reads the timestamp again, with the rules that an apply made. */
const recheck = (paceMillis: number) =>
  Effect.fn("demo.recheck")(function* (one: Rechecks.Try<Timestamp>, seat: Dispatcher.Seat) {
    const { text, utc } = one.case
    const rules = yield* (yield* Rulebook).at(one.version)
    const answer = yield* seat.step("try", { result: Answer }, ask(text, rules, paceMillis))
    if (answer.utc === utc) return Verdict.right()
    return Verdict.wrong({ text, utc, because: `${answer.rule ?? "no rule"} reads it as ${answer.utc ?? "nothing"}` })
  })

/**
 * A catalogue stands in for a model that writes rules: the apply takes from it what reads the texts of the batch rightly,
 * and puts a rule that others get in the way of before them. Idempotent by name: one that was cut off is called again, and
 * finds the commit it had made.
 */
const apply = Effect.fn("demo.apply")(function* (batch: Improvements.Batch<Missing>) {
  const rulebook = yield* Rulebook
  const files = yield* FileSystem.FileSystem
  const made = batch.again ? yield* rulebook.find(batch.name) : undefined
  if (made !== undefined) return Improvements.changed(made.from, made.to, made.patch)

  const before = yield* rulebook.rules
  const known = new Set(before.map((rule) => rule.name))
  const catalogue = parseRules(yield* files.readFileString(beside("catalogue.txt")))
  const missing = batch.requests.map(({ payload }) => payload).filter(({ utc }) => utc !== null)
  const fits = (rule: (typeof catalogue)[number]) =>
    missing.some(({ text, utc }) => read([rule], text).utc === utc && read(before, text).utc !== utc)
  const names = catalogue.filter(fits).map((rule) => rule.name)
  const added = names.filter((name) => !known.has(name))
  const first = names.filter((name) => known.has(name))
  if (names.length === 0) return Improvements.skipped("the catalogue has no rule that would help")

  const rules = putFirst(withRules(before, catalogue, new Set(added)), new Set(first))
  const said = [
    ...(added.length === 0 ? [] : [`add ${added.join(", ")}`]),
    ...(first.length === 0 ? [] : [`put ${first.join(", ")} first`])
  ]
  const edit = yield* rulebook.write(batch.name, said.join("; "), rules)
  return Improvements.changed(edit.from, edit.to, edit.patch)
})

/** The cases, in the order of the data file. */
export const readTimestamps = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const lines = (yield* files.readFileString(beside("timestamps.jsonl"))).trim().split("\n")
  return yield* Effect.forEach(lines, (line) => Schema.decodeEffect(Schema.fromJsonString(Timestamp))(line))
})

export const workload = (timestamps: ReadonlyArray<Timestamp>, paceMillis: number) => ({
  cases: Effect.succeed(timestamps),
  train: train(paceMillis),
  version: Effect.flatMap(Rulebook, (rulebook) => rulebook.version),
  improve: { request: Missing, apply, recheck: recheck(paceMillis) }
})
