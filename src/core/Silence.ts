/**
 * When an agent has been silent for too long: a pure rule over its activity.
 *
 * All times are in milliseconds of a clock that does not jump.
 */
import type { Activity } from "./AgentLauncher.ts"

/** What decides how long an agent may be silent now. */
export interface Silence {
  /** When it was last seen. */
  readonly at: number
  /** The tools that run. */
  readonly tools: ReadonlySet<string>
  /** Since when it has done nothing but try again by itself, and how long it said it would wait. */
  readonly retry: { readonly since: number; readonly delay: number } | null
}

/** With a tool running, or while it tries again by itself, an agent may be silent this many times as long. */
export const patience = 3

/** An agent that was just launched. */
export const begin = (now: number): Silence => ({ at: now, tools: new Set(), retry: null })

/** More are not told apart: it is copied at each, and some agents never say that a tool has ended. */
const mostTools = 64

const withTool = (tools: ReadonlySet<string>, id: string): ReadonlySet<string> => {
  const more = new Set(tools).add(id)
  const [oldest] = more
  if (more.size > mostTools && oldest !== undefined) more.delete(oldest)
  return more
}

/** It was seen. `activity` is absent for signs of life that mean nothing. */
export const seen = (silence: Silence, now: number, activity?: Activity): Silence => {
  switch (activity?._tag) {
    case undefined:
    case "Drift":
      return { ...silence, at: now }
    case "AgentRetry":
      return { ...silence, at: now, retry: { since: silence.retry?.since ?? now, delay: activity.delayMillis ?? 0 } }
    case "ToolStarted":
      return { at: now, retry: null, tools: withTool(silence.tools, activity.id) }
    case "ToolEnded": {
      const tools = new Set(silence.tools)
      tools.delete(activity.id)
      return { at: now, retry: null, tools }
    }
    default:
      return { ...silence, at: now, retry: null }
  }
}

/**
 * When it will have been silent for too long, if it stays so.
 *
 * **Details**
 *
 * One that only tries again, however often it says so, has `patience` times `limit` for it: some agents try for ever. A
 * single wait longer than that is given to an agent that announces it.
 */
export const dueAt = (silence: Silence, limit: number): number => {
  if (silence.retry !== null) {
    const { since, delay } = silence.retry
    return delay >= patience * limit
      ? silence.at + delay + limit
      : Math.min(silence.at + delay + limit, since + patience * limit)
  }
  return silence.at + (silence.tools.size > 0 ? patience * limit : limit)
}
