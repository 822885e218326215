/**
 * Everything but schedules, in one layer.
 */
import { Layer } from "effect"
import type { AgentLauncher } from "./AgentLauncher.ts"
import * as Dispatcher from "./Dispatcher.ts"
import type { Improvements } from "./Improvements.ts"
import type { Rechecks } from "./Rechecks.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import type { Storage } from "./Storage.ts"

/** A dispatcher, its improvements, its rechecks and a retry policy: give it a storage and an agent. */
export const layer: Layer.Layer<
  Dispatcher.Dispatcher | Improvements | Rechecks | RetryPolicy.RetryPolicy,
  never,
  Storage | AgentLauncher
> = Layer.mergeAll(Dispatcher.layer, RetryPolicy.layer)
