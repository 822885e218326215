/** For docs/dispatcher.md: parks, applies and holds. */
import { Clock, Effect, Schema } from "effect"
import { Case, type Dispatcher, Improvements } from "shiftboss"

/** Stand in for a repository of rules with one commit an apply, and for an agent that reads it. */
export const rules = new Set<string>()
export const commits = new Map<string, Improvements.Applied>()
const tryOut = (case_: Case.Case) => Effect.sync(() => (rules.has(case_.id) ? null : case_.id))

/** Stands in for an agent that has a quota: refused at first. */
const quota = { used: false }
const prompt = Effect.gen(function* () {
  const now = yield* Clock.currentTimeMillis
  if (quota.used) return "answered"
  quota.used = true
  return { resetAt: now + 3_600_000 }
})

const Missing = Schema.Struct({ rule: Schema.String })
type Missing = typeof Missing.Type

const train = (case_: Case.Case, seat: Dispatcher.Seat<Missing>) =>
  Effect.gen(function* () {
    for (let n = 1; ; n++) {
      const missing = yield* seat.step(`try ${n}`, { reads: true }, tryOut(case_))
      if (missing === null) return Case.completed()
      yield* seat.park(`rule ${n}`, { rule: missing })
    }
  })

const apply = (batch: Improvements.Batch<Missing>) =>
  Effect.sync(() => {
    const made = commits.get(batch.name)
    if (made !== undefined) return made
    const added = batch.requests.map((request) => request.payload.rule).filter((rule) => !rules.has(rule))
    if (added.length === 0) return Improvements.skipped("all these rules are there")
    for (const rule of added) rules.add(rule)
    const applied = Improvements.changed(batch.version ?? "000", batch.name)
    commits.set(batch.name, applied)
    return applied
  })

export const workload = (cases: ReadonlyArray<Case.Case>) => ({
  cases: Effect.succeed(cases),
  train,
  improve: { request: Missing, apply }
})

export const patient = (_: Case.Case, seat: Dispatcher.Seat) =>
  Effect.gen(function* () {
    for (let n = 1; ; n++) {
      const reply = yield* seat.step(`ask ${n}`, prompt)
      if (typeof reply === "string") return Case.completed(reply)
      yield* seat.hold(`quota ${n}`, reply.resetAt)
    }
  })
