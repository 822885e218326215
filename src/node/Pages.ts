/**
 * Pages of a run, for people: what goes on now, and what each apply took, changed and broke. Markdown, in a folder.
 *
 * `STATUS.md` says what each seat does, what waits, what was counted, used and failed. `applies/<name>.md` says what an
 * apply took, its diff with the lines added and removed in each file, and each try of its rechecks.
 */
import { resolve } from "node:path"
import { Effect, Layer } from "effect"
import { Dispatcher } from "shiftboss"
import { follow } from "./internal/pages/follow.ts"
import { nodeDisk } from "./internal/storage/disk.ts"

export interface Options {
  /**
   * Where `STATUS.md` and the folder `applies` are: the folder of the logs or another, made when it is not there. It is
   * closed to others (0700, its files 0600). Each dispatcher needs one of its own.
   */
  readonly directory: string
}

/**
 * Keeps the pages of all runs of the dispatcher, earlier ones included: they are made from its log, whoever wrote it.
 *
 * *Details*: while a run goes on, what moves by the second is written each second, the whole every 15 seconds; when the
 * layer's scope closes, the pages are those of the end. A page that cannot be made or written, as on a full disk, is told
 * of in the host's log, never holds a run up, and is written when it can be.
 *
 * *Gotcha*: text of agents is shown in code spans and fenced blocks, cut and with its controls made visible, so that it
 * means nothing in Markdown. What it says is still what agents said.
 */
export const layer = (options: Options): Layer.Layer<never, never, Dispatcher.Dispatcher> =>
  Layer.effectDiscard(
    Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) =>
      follow(dispatcher, { disk: nodeDisk, path: resolve(options.directory) })
    )
  )
