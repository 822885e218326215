/**
 * How a run is asked to stop: by a signal of its own program, or by another process through a small log.
 */
import { Clock, Context, Effect, Schedule, Schema, Stream } from "effect"
import { readTyped, type Storage, typed } from "../../Storage.ts"
import type { ChangeError } from "../../Improvements.ts"

/** When this effect succeeds, a run stops as by `stop`. A main program that listens to signals provides it. */
export const StopSignal: Context.Reference<Effect.Effect<void>> = Context.Reference<Effect.Effect<void>>(
  "shiftboss/core/StopSignal",
  { defaultValue: () => Effect.never }
)

const StopRequested = Schema.TaggedStruct("StopRequested", { at: Schema.Number })

/** What a control log holds, in this version. */
export const stopLog = { entry: StopRequested, version: 1 }

const nameOf = (log: string): string => `${log}.control`

const open = (storage: Storage["Service"], log: string) =>
  Effect.map(storage.open(nameOf(log)), (opened) => typed(opened, stopLog))

/** Held only for the moment of a write, so a second writer tries again. */
const patiently = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.retry(effect, {
    while: (error) => error._tag === "LogHeld",
    times: 20,
    schedule: Schedule.spaced("50 millis")
  })

/** Writes the request. A run of another process sees it within a second; one that starts later does not obey it. */
export const requestStop = (storage: Storage["Service"], log: string): Effect.Effect<void, ChangeError> =>
  patiently(
    Effect.scoped(
      Effect.gen(function* () {
        const control = yield* open(storage, log)
        yield* control.append([{ _tag: "StopRequested", at: yield* Clock.currentTimeMillis }])
      })
    )
  )

/** Requests of before the start are not meant for this run. */
export const clearRequests = (storage: Storage["Service"], log: string): Effect.Effect<void, ChangeError> =>
  patiently(
    Effect.gen(function* () {
      if (!(yield* isRequested(storage, log))) return
      yield* Effect.scoped(Effect.flatMap(open(storage, log), (control) => control.replace([])))
    })
  )

const isRequested = (storage: Storage["Service"], log: string) =>
  Effect.map(Stream.runHead(readTyped(storage, nameOf(log), stopLog)), (first) => first._tag === "Some")

/** Succeeds when a stop was requested. A storage that does not answer now may answer a second later. */
export const requested = (storage: Storage["Service"], log: string): Effect.Effect<void> =>
  Effect.repeat(
    Effect.delay(
      Effect.orElseSucceed(isRequested(storage, log), () => false),
      "1 second"
    ),
    { until: (found) => found }
  )
