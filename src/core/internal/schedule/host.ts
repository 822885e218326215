/**
 * Asks the host. It may fail, hang, ignore an interruption or talk nonsense: none of that holds up another schedule, and
 * a schedule never has two requests under way.
 */
import { Clock, Duration, Effect, Fiber, Schema, Semaphore } from "effect"
import type { Notices } from "./notices.ts"
import { RunEnding } from "./progress.ts"
import type { Firing, Workflows } from "./workflows.ts"

const Submitted = Schema.Union([
  Schema.TaggedStruct("Accepted", {}),
  Schema.TaggedStruct("Refused", { reason: Schema.String })
])
const Outcome = Schema.Union([Schema.Literals(["unknown", "running"]), RunEnding])

/** A request that takes longer than this makes room for another one. */
const patience = Duration.seconds(1)

export interface Settings {
  readonly hostTimeout: Duration.Duration
  readonly concurrency: number
}

const makeRequests = Effect.fnUntraced(function* ({ hostTimeout, concurrency }: Settings) {
  // A host that hangs on some schedules shall not use up the room of those it answers.
  const room = yield* Semaphore.make(concurrency)
  const roomOfSilent = yield* Semaphore.make(concurrency)
  /** What is under way, also when nobody waits for it any more: an interruption may be ignored. */
  const requests = new Map<string, Fiber.Fiber<unknown, unknown>>()
  const atOnce = Duration.min(patience, hostTimeout)
  const afterwards = Duration.subtract(hostTimeout, atOnce)

  const earlier = (workflowId: string) =>
    Effect.suspend(() => {
      const request = requests.get(workflowId)
      return request === undefined ? Effect.void : Effect.timeout(Fiber.await(request), hostTimeout)
    })

  /** On its own, so that one that ignores interruption can be left behind. */
  const begin = <A>(workflowId: string, call: Effect.Effect<A, unknown>) =>
    Effect.uninterruptible(
      Effect.tap(Effect.forkDetach(call, { uninterruptible: false }), (request) =>
        Effect.sync(() => {
          requests.set(workflowId, request)
          request.addObserver(() => requests.delete(workflowId))
        })
      )
    )

  return Effect.fnUntraced(
    function* <A>(workflowId: string, isSilent: boolean, call: Effect.Effect<A, unknown>) {
      yield* earlier(workflowId)
      const begun = yield* Semaphore.withPermits(
        isSilent ? roomOfSilent : room,
        1
      )(Effect.tap(begin(workflowId, call), (one) => Effect.timeoutOption(Fiber.await(one), atOnce)))
      return yield* Effect.timeout(Fiber.join(begun), afterwards)
    },
    (effect, workflowId) =>
      // Not waited for.
      Effect.ensuring(
        effect,
        Effect.sync(() => requests.get(workflowId)?.interruptUnsafe())
      )
  )
})

/** The host's answers; `undefined` when there is none for now, or one that says nothing. */
export const make = Effect.fnUntraced(function* (
  workflows: Workflows["Service"],
  notices: Notices,
  settings: Settings
) {
  const request = yield* makeRequests(settings)
  /** The schedules whose last request got no answer. */
  const silent = new Set<string>()

  const ask = <A>(workflowId: string, answers: Schema.Codec<A>, call: () => Effect.Effect<A, unknown>) =>
    request(workflowId, silent.has(workflowId), Effect.suspend(call)).pipe(
      // Taken by its word, an answer that is none would skip a slot that may run, or could not be written for ever.
      Effect.flatMap(Schema.decodeUnknownEffect(answers)),
      Effect.tap(() => Effect.sync(() => silent.delete(workflowId))),
      Effect.catchCause(
        Effect.fnUntraced(function* (cause) {
          silent.add(workflowId)
          yield* notices.publish({ _tag: "HostSilent", at: yield* Clock.currentTimeMillis, workflowId, cause })
          return undefined
        })
      )
    )

  return {
    submit: (firing: Firing) => ask(firing.workflowId, Submitted, () => workflows.submit(firing)),
    outcome: (workflowId: string, runId: string) => ask(workflowId, Outcome, () => workflows.outcome(runId))
  }
})

export type Host = Effect.Success<ReturnType<typeof make>>
