/**
 * What a case can do on its seat.
 */
import { Cause, Clock, Context, Effect, Exit, type Schema, Semaphore } from "effect"
import type { Seat, SeatTurn, StepOptions } from "../../Dispatcher.ts"
import type { Json } from "../../Storage.ts"
import { TurnDone } from "../../Turn.ts"
import { codecOf, json, type JsonCodec } from "./json.ts"
import { away, nowOf, type Occupant, type Run, withdraw } from "./run.ts"
import { spanned } from "./span.ts"
import { run as runTurn } from "./turn.ts"

/** The step a fiber is in. */
const InStep = Context.Reference<string | undefined>("shiftboss/core/InStep", { defaultValue: () => undefined })

const misuse = (occupant: Occupant, problem: string, remedy: string) =>
  Effect.die(new Error(`${problem} (case "${occupant.case}"): ${remedy}`))

const isOpen = (occupant: Occupant) => occupant.withdrawal === undefined && !occupant.left

/** One operation of a case at a time, each name once, none inside a step, none on a seat that was taken back. */
const operations = (occupant: Occupant) => {
  const one = Semaphore.makeUnsafe(1)
  const used = new Set<string>()
  return <A, E, R>(kind: string, name: string, body: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => {
      const outer = fiber.getRef(InStep)
      if (typeof name !== "string" || name === "") {
        return misuse(occupant, `a ${kind} has no name`, "give it one that is the same in every run of the case")
      }
      if (outer !== undefined) {
        return misuse(occupant, `the ${kind} "${name}" is inside the step "${outer}"`, "end that step first")
      }
      if (used.has(name)) {
        return misuse(occupant, `the name "${name}" is used twice`, "in a loop, number the names")
      }
      used.add(name)
      return one.withPermit(Effect.suspend(() => (isOpen(occupant) ? body() : away)))
    })
}

type StepArguments = readonly [
  StepOptions & { readonly result?: Schema.Constraint },
  Effect.Effect<unknown, unknown, unknown>
]

const encodeRequest = (run: Run, occupant: Occupant, name: string, request: unknown) =>
  run.workload.improve === undefined
    ? misuse(occupant, `the park "${name}" can never be answered`, "give the workload `improve`")
    : Effect.catchCause(run.workload.improve.request.encode(request), (cause) =>
        misuse(
          occupant,
          `the request of the park "${name}" does not fit its schema: ${said(cause)}`,
          "send one that does"
        )
      )

export const make = (run: Run, occupant: Occupant): Seat<unknown> => {
  const { memory } = occupant
  const guarded = operations(occupant)
  const info = {
    key: memory.key,
    case: occupant.case,
    rev: occupant.rev,
    seat: occupant.seat,
    start: run.state.start
  }
  const once = (
    kind: string,
    name: string,
    options: StepOptions,
    codec: JsonCodec,
    effect: Effect.Effect<unknown, unknown, unknown>
  ) =>
    guarded(kind, name, () => {
      const steps = memory.steps()
      if (steps?.has(name) === true) return decodeResult(occupant, name, codec, steps.get(name))
      const step = live(run, occupant, name, codec, options, effect)
      return spanned(`shiftboss.${kind}`, () => ({ case: occupant.case, [kind]: name }), step)
    })

  const step = (name: string, ...rest: readonly [Effect.Effect<unknown, unknown, unknown>] | StepArguments) => {
    const [options, effect]: StepArguments = rest.length === 1 ? [{}, rest[0]] : rest
    return once("step", name, options, options.result === undefined ? json : codecOf(options.result), effect)
  }

  const turn = (name: string, asked: SeatTurn) =>
    once(
      "turn",
      name,
      { reads: asked.reads },
      codecOf(TurnDone),
      Effect.flatMap(runTurn(run, occupant, name, asked), (end) =>
        "until" in end ? takeBack(occupant, { _tag: "Held", name, until: end.until }) : Effect.succeed(end)
      )
    )

  return {
    info,
    step: step as Seat["step"],
    park: (name, request) => guarded("park", name, () => park(run, occupant, name, request)),
    hold: (name, until) => guarded("hold", name, () => hold(occupant, name, until)),
    turn: turn as Seat["turn"]
  }
}

const takeBack = (occupant: Occupant, withdrawal: Parameters<typeof withdraw>[1]) =>
  Effect.suspend(() => {
    withdraw(occupant, withdrawal)
    return away
  })

const park = Effect.fnUntraced(function* (run: Run, occupant: Occupant, name: string, request: unknown) {
  if (occupant.recheck !== null) {
    return yield* misuse(occupant, `the park "${name}" is in a recheck`, "answer with Verdict.wrong(repair) instead")
  }
  const applied = run.state.cases.get(occupant.case)?.wakes?.get(name)
  if (applied !== undefined) return applied
  const payload = yield* encodeRequest(run, occupant, name, request)
  return yield* takeBack(occupant, { _tag: "Parked", name, payload })
})

const hold = Effect.fnUntraced(function* (occupant: Occupant, name: string, until: number) {
  if (!Number.isFinite(until)) {
    return yield* misuse(occupant, `the hold "${name}" ends at ${until}`, "give it epoch milliseconds")
  }
  const end = occupant.memory.holds()?.get(name) ?? until
  if (end > (yield* Clock.currentTimeMillis)) return yield* takeBack(occupant, { _tag: "Held", name, until: end })
})

const said = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

const decodeResult = (occupant: Occupant, name: string, codec: JsonCodec, result: Json | undefined) =>
  result === undefined
    ? Effect.void
    : Effect.catchCause(codec.decode(result), (cause) =>
        misuse(
          occupant,
          `the journaled result of the step "${name}" does not fit its schema: ${said(cause)}`,
          "accept what was journaled, or use another name for the step"
        )
      )

const encodeResult = (occupant: Occupant, name: string, codec: JsonCodec, value: unknown) =>
  value === undefined
    ? Effect.succeed(undefined)
    : Effect.catchCause(codec.encode(value), (cause) =>
        misuse(
          occupant,
          `the result of the step "${name}" ${codec === json ? "is not JSON" : "does not fit its schema"}: ${said(cause)}`,
          codec === json ? "return JSON, or give the step a schema as `result`" : "return what the schema accepts"
        )
      )

/** Runs a step. Its result is durable before anything else of the case happens. */
const live = (
  run: Run,
  occupant: Occupant,
  name: string,
  codec: JsonCodec,
  options: StepOptions,
  effect: Effect.Effect<unknown, unknown, unknown>
) => {
  const leave = takeBack(occupant, { _tag: "Stopped" })
  // A step that waits for the gate has not begun: a stop does not wait for it.
  const body = Effect.withFiber((fiber) => {
    if (run.live.ending) return leave
    occupant.step = name
    occupant.since = nowOf(fiber)
    run.changed()
    return Effect.scoped(Effect.provideService(effect, InStep, name))
  })
  const stored = (result: Json | undefined) =>
    Effect.withFiber((fiber) => {
      const event = occupant.memory.stepEnded(
        nowOf(fiber),
        result === undefined ? { step: name } : { step: name, result }
      )
      const commit = run.journal.commit([event], () => {
        run.row = []
      })
      return Effect.matchEffect(commit, {
        // A failure of the storage is not the case's: the run is broken by it and the seat never answers.
        onFailure: () => leave,
        onSuccess: () => (run.live.ending ? leave : decodeResult(occupant, name, codec, result))
      })
    })
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.onExit(restore(options.reads === true ? run.gate.read(body) : body), (exit) => {
        occupant.step = null
        run.changed()
        // Its case is between steps now, as one is whose step succeeded.
        if (run.live.ending && Exit.isFailure(exit)) withdraw(occupant, { _tag: "Stopped" })
        return Effect.void
      }),
      (value) => {
        if (occupant.left && occupant.withdrawal === undefined) return away
        return value === undefined
          ? stored(undefined)
          : Effect.flatMap(encodeResult(occupant, name, codec, value), stored)
      }
    )
  )
}
