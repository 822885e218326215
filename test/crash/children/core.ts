/**
 * `shiftboss` with a dispatcher that tells when a step runs and when an apply is called.
 */
import { Effect } from "effect"
import { Dispatcher as Real } from "../../../src/core/index.ts"
import { tell } from "./tell.ts"

export * from "../../../src/core/index.ts"

const telling = <Req>(seat: Real.Seat<Req>): Real.Seat<Req> => {
  const telling = (_tag: "StepBegun" | "StepDone", step: string) =>
    Effect.sync(() => tell({ _tag, case: seat.info.case, rev: seat.info.rev, step }))
  const step = (name: string, ...rest: ReadonlyArray<unknown>) => {
    const effect = rest.at(-1)
    if (!Effect.isEffect(effect)) throw new TypeError(`the step ${name} has no effect as its last argument`)
    // The overloads differ in what stands between the name and the effect, which goes through as it is.
    const marked = telling("StepBegun", name).pipe(Effect.andThen(effect), Effect.tap(telling("StepDone", name)))
    const given: ReadonlyArray<unknown> = [name, ...rest.slice(0, -1), marked]
    return Reflect.apply(seat.step, seat, given)
  }
  return { ...seat, step: step as Real.Seat<Req>["step"] }
}

const run: typeof Real.run = (workload, options) => {
  const { improve, train } = workload
  return Real.run(
    {
      ...workload,
      train: (case_, seat) => train(case_, telling(seat)),
      improve: improve && {
        ...improve,
        apply: (batch) =>
          Effect.suspend(() => {
            tell({ _tag: "ApplyBegun", apply: batch.name })
            return Effect.tap(improve.apply(batch), () =>
              Effect.sync(() => tell({ _tag: "ApplyMade", apply: batch.name }))
            )
          })
      }
    },
    options
  )
}

export const Dispatcher = { ...Real, run }
