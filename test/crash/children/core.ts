/**
 * `shiftboss` with a dispatcher that tells when a step runs and when an apply is called.
 */
import { Effect } from "effect"
import { type Case, Dispatcher as Real } from "../../../src/core/index.ts"
import type { StepName } from "../told.ts"
import { tell } from "./tell.ts"

export * from "../../../src/core/index.ts"

/** `recheck`: the one that the seat is for, unless it is for the case itself. */
const telling = <Req>(seat: Real.Seat<Req>, recheck?: StepName["recheck"]): Real.Seat<Req> => {
  const { case: id, rev } = seat.info
  const mark = (_tag: "StepBegun" | "StepDone", step: string) =>
    Effect.sync(() => tell({ _tag, case: id, rev, step, recheck }))
  const step = (name: string, ...rest: ReadonlyArray<unknown>) => {
    const effect = rest.at(-1)
    if (!Effect.isEffect(effect)) throw new TypeError(`the step ${name} has no effect as its last argument`)
    const marked = mark("StepBegun", name).pipe(Effect.andThen(effect), Effect.tap(mark("StepDone", name)))
    // The overloads differ in what stands between the name and the effect, which goes through as it is.
    const given: ReadonlyArray<unknown> = [name, ...rest.slice(0, -1), marked]
    return Reflect.apply(seat.step, seat, given)
  }
  return { ...seat, step: step as Real.Seat<Req>["step"] }
}

const tellingApplies = <C extends Case.Case, Req, RA, RR>(
  improve: Real.Improve<C, Req, RA, RR>
): Real.Improve<C, Req, RA, RR> => {
  const { apply, recheck } = improve
  const mark = (_tag: "ApplyBegun" | "ApplyMade", name: string) => Effect.sync(() => tell({ _tag, apply: name }))
  return {
    ...improve,
    apply: (batch) =>
      mark("ApplyBegun", batch.name).pipe(
        Effect.andThen(Effect.suspend(() => apply(batch))),
        Effect.tap(mark("ApplyMade", batch.name))
      ),
    recheck: recheck && ((one, seat) => recheck(one, telling(seat, { apply: one.apply, arm: one.arm })))
  }
}

const run: typeof Real.run = (workload, options) => {
  const { improve, train } = workload
  const told = { train: (...[case_, seat]: Parameters<typeof train>) => train(case_, telling(seat)) }
  return Real.run({ ...workload, ...told, improve: improve && tellingApplies(improve) }, options)
}

export const Dispatcher = { ...Real, run }
