import { Effect } from "effect"
import { Case, type Dispatcher, type Improvements, Rechecks, Verdict } from "shiftboss"
import { cases, changes, Missing } from "./support.ts"

export type Try = Rechecks.Try
export type Said = Verdict.Verdict<typeof Missing.Type>

export const right: Said = Verdict.right()
export const wrong = (one: Try): Said => Verdict.wrong({ missing: `${one.case.id} on ${one.version}` })

interface Parts {
  readonly recheck: (one: Try, seat: Dispatcher.Seat) => Effect.Effect<Said, unknown>
  readonly ids?: ReadonlyArray<string>
  readonly controls?: boolean
  /** Instead of `ids`. */
  readonly cases?: Effect.Effect<ReadonlyArray<Case.Case>>
  readonly apply?: (batch: Improvements.Batch<typeof Missing.Type>) => Effect.Effect<Improvements.Applied>
  readonly train?: (
    case_: Case.Case,
    seat: Dispatcher.Seat<typeof Missing.Type>
  ) => Effect.Effect<Case.CaseResult, unknown>
}

/** All cases complete at once, but for those that begin with `ask`: they park first, and so make an apply. */
export const workload = ({
  recheck,
  cases: selection,
  ids = ["a", "b", "ask"],
  controls = false,
  apply = changes,
  train
}: Parts) => ({
  cases: selection ?? cases(...ids),
  train: (case_: Case.Case, seat: Dispatcher.Seat<typeof Missing.Type>) =>
    Effect.gen(function* () {
      if (train !== undefined) return yield* train(case_, seat)
      if (case_.id.startsWith("ask")) yield* seat.park("p", { missing: case_.id })
      return Case.completed()
    }),
  improve: { request: Missing, apply, recheck, controls }
})

export const outcomes = (summary: Dispatcher.Summary) =>
  summary.rechecks.map(({ case: id, apply, outcome }) => `${id} ${apply} ${outcome._tag}`)

export const rechecks = Effect.flatMap(Rechecks.Rechecks, (service) => service.all)
