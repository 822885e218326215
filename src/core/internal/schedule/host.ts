/**
 * Asks the host. It may fail, hang, ignore an interruption or talk nonsense: none of that holds up another schedule, and
 * a schedule never has two requests under way.
 */
import { type Duration, Effect, Fiber, Schema } from "effect"
import type { Notices } from "./notices.ts"
import { now as clockNow } from "./now.ts"
import { RunEnding } from "./progress.ts"
import type { Firing, Workflows } from "./workflows.ts"

const Submitted = Schema.Union([
  Schema.TaggedStruct("Accepted", {}),
  Schema.TaggedStruct("Refused", { reason: Schema.String })
])
const Outcome = Schema.Union([Schema.Literals(["unknown", "running"]), RunEnding])

/** Makes requests, at most one of a schedule at a time. */
const makeRequests = (hostTimeout: Duration.Duration) => {
  /** What is under way, also when nobody waits for it any more: an interruption may be ignored. */
  const requests = new Map<string, Fiber.Fiber<unknown, unknown>>()

  const earlier = (workflowId: string) =>
    Effect.suspend(() => {
      const request = requests.get(workflowId)
      return request === undefined ? Effect.void : Effect.timeout(Fiber.await(request), hostTimeout)
    })

  /** On its own, so that one that ignores interruption can be left behind. */
  const begin = <A>(workflowId: string, call: Effect.Effect<A, unknown>) =>
    Effect.uninterruptible(
      Effect.tap(Effect.forkDetach(call, { startImmediately: true, uninterruptible: false }), (request) =>
        Effect.sync(() => {
          requests.set(workflowId, request)
          // At once, when it has ended already.
          request.addObserver(() => requests.delete(workflowId))
        })
      )
    )

  /** A host that answers without waiting for anything has answered by now, and needs no timer. */
  const answer = <A>(request: Fiber.Fiber<A, unknown>) =>
    request.pollUnsafe() ?? Effect.timeout(Fiber.join(request), hostTimeout)

  return <A>(workflowId: string, call: Effect.Effect<A, unknown>) =>
    earlier(workflowId).pipe(
      Effect.andThen(begin(workflowId, call)),
      Effect.flatMap(answer),
      // Not waited for.
      Effect.ensuring(Effect.sync(() => requests.get(workflowId)?.interruptUnsafe()))
    )
}

/** The host's answers; `undefined` when there is none for now, or one that says nothing. */
export const make = (workflows: Workflows["Service"], notices: Notices, hostTimeout: Duration.Duration) => {
  const request = makeRequests(hostTimeout)
  const silent = new Set<string>()

  const ask = <A>(workflowId: string, answers: Schema.Codec<A>, call: () => Effect.Effect<A, unknown>) =>
    request(workflowId, Effect.suspend(call)).pipe(
      // Taken by its word, an answer that is none would skip a slot that may run, or could not be written for ever.
      Effect.flatMap(Schema.decodeUnknownEffect(answers)),
      Effect.tap(() => Effect.sync(() => silent.delete(workflowId))),
      Effect.catchCause(
        Effect.fnUntraced(function* (cause) {
          silent.add(workflowId)
          yield* notices.publish({ _tag: "HostSilent", at: yield* clockNow, workflowId, cause })
          return undefined
        })
      )
    )

  return {
    submit: (firing: Firing) => ask(firing.workflowId, Submitted, () => workflows.submit(firing)),
    outcome: (workflowId: string, runId: string) => ask(workflowId, Outcome, () => workflows.outcome(runId)),
    /** Whether the last request about the schedule got no answer. */
    isSilent: (workflowId: string) => silent.has(workflowId)
  }
}

export type Host = ReturnType<typeof make>
