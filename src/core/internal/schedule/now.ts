import { Clock, Effect } from "effect"

/** Epoch milliseconds, whole ones: a host's own clock may give fractions, and entries take none. */
export const now = Effect.map(Clock.currentTimeMillis, Math.floor)
