/**
 * What is journaled of an agent while it works: what has to outlive a crash of the host, and no more than that.
 */
import { Clock, Deferred, Duration, Effect } from "effect"
import type * as Launcher from "../../AgentLauncher.ts"
import type { Event } from "../../Turn.ts"
import type { Cooldown, Place } from "./cooldown.ts"
import type { Journal, JournalError } from "./journal.ts"
import { type Redact, redactFailure } from "./redact.ts"
import { soundFailure, soundUsage } from "./sound.ts"

export interface Notes {
  readonly take: (activity: Launcher.Activity) => Effect.Effect<unknown, JournalError>
  /** Journals the usage that was told, as long as it runs. */
  readonly write: Effect.Effect<never, JournalError>
  /** The last usage that was told, if it is not journaled yet; to be asked once. */
  readonly unwritten: () => (Event & { readonly _tag: "UsageTold" }) | undefined
}

/** An agent tells its usage with every message, and a host that dies loses no more of it than this. */
const usageEvery = Duration.seconds(5)

/** More than any prompt lists; an agent that begins tools without end must not fill the log with them. */
const mostOpenTools = 200

export const makeNotes = Effect.fnUntraced(function* (
  { journal, cooldown }: { readonly journal: Journal; readonly cooldown: Cooldown },
  turnId: string,
  place: Place,
  redact: Redact
) {
  const openTools = new Set<string>()
  let session: string | undefined
  let usage: (Event & { readonly _tag: "UsageTold" }) | undefined
  let told = yield* Deferred.make<void>()

  const unwritten = () => {
    const last = usage
    usage = undefined
    return last
  }

  const write = Effect.gen(function* () {
    yield* Deferred.await(told)
    told = yield* Deferred.make<void>()
    const last = unwritten()
    if (last !== undefined) yield* journal.append(last)
    yield* Effect.sleep(usageEvery)
  })

  const take = Effect.fnUntraced(function* (activity: Launcher.Activity) {
    const now = yield* Clock.currentTimeMillis
    switch (activity._tag) {
      case "SessionSeen":
        if (activity.id === session) return
        session = activity.id
        return yield* journal.append({ _tag: "SessionSeen", turnId, id: activity.id })
      case "AgentRetry": {
        const failure = soundFailure(redactFailure(activity.failure, redact))
        const until = Math.max(failure.resetAt ?? 0, now + (activity.delayMillis ?? 0))
        return cooldown.raise(turnId, place, failure, now, until)
      }
      case "ToolStarted":
        cooldown.answered(turnId, now)
        if (openTools.has(activity.id) || openTools.size >= mostOpenTools) return
        openTools.add(activity.id)
        return yield* journal.append({ _tag: "ToolStarted", turnId, id: activity.id, tool: redact(activity.tool) })
      case "ToolEnded":
        if (!openTools.delete(activity.id)) return
        return yield* journal.append({ _tag: "ToolEnded", turnId, id: activity.id })
      case "UsageSoFar": {
        const { counter } = activity
        usage = { _tag: "UsageTold", turnId, soFar: { usage: soundUsage(activity.usage), counter } }
        return yield* Deferred.succeed(told, undefined)
      }
      case "Text":
        return cooldown.answered(turnId, now)
    }
  })

  const notes: Notes = { take, write: Effect.forever(write), unwritten }
  return notes
})
