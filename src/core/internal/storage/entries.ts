/**
 * Reads the entries of a log, chunk by chunk, so that memory is bounded by the largest flush.
 */
import { Effect, Stream } from "effect"
import type { Json } from "../../Storage.ts"
import { LogCorrupt, type LogTooNew, type StorageError } from "../../StorageError.ts"
import { Ledger } from "./ledger.ts"
import { fail, type Store } from "./store.ts"

export interface Reading {
  readonly operation: "replay" | "read"
  /** The sequence number to end before; that the log ends earlier is a loss. Without it, all that stands is read. */
  readonly until?: number
  /** Whether `until` still speaks of the content that the reading has begun. */
  readonly isCurrent?: () => boolean
  /** Told once the reading has come to its end. */
  readonly onEnd?: (ledger: Ledger) => void
}

/** The log was replaced between the start of a reading and its first line: which content it reads cannot be told. */
const outdated = { _tag: "Outdated" } as const
type Outdated = typeof outdated

export type ReadingError = StorageError | LogCorrupt | LogTooNew

/** The entries of whole flushes, oldest first. */
export const entries = (store: Store, log: string, reading: Reading): Stream.Stream<Json, ReadingError | Outdated> =>
  Stream.suspend(() => {
    const ledger = new Ledger(log)
    const until = reading.until ?? Infinity
    const take = (
      lines: ReadonlyArray<string>
    ): Effect.Effect<readonly [undefined, ReadonlyArray<Json>], ReadingError | Outdated> => {
      if (ledger.line === 0 && reading.isCurrent?.() === false) return Effect.fail(outdated)
      const taken: Array<Json> = []
      for (const line of lines) {
        if (ledger.next >= until) break
        const problem = ledger.read(line, taken)
        if (problem !== undefined) return Effect.fail(problem)
      }
      return Effect.succeed([undefined, taken])
    }
    const end = Effect.suspend(() => {
      if (reading.until !== undefined && ledger.next < reading.until)
        return Effect.fail(cutShort(log, ledger, reading.until))
      reading.onEnd?.(ledger)
      return Effect.succeed(Stream.empty)
    })
    return store.encoded.lines(log).pipe(
      Stream.mapError((cause) => fail(store, reading.operation, log, cause)),
      Stream.mapAccumArrayEffect(
        () => undefined,
        (_, lines) => take(lines)
      ),
      Stream.concat(Stream.unwrap(end))
    )
  })

const cutShort = (log: string, ledger: Ledger, until: number) =>
  new LogCorrupt({
    log,
    line: ledger.line + 1,
    found: `it ends here, but entry ${until - 1} was acknowledged`
  })

/** Reads every line without parsing an entry: what stands, and whether anything is damaged. */
export const survey = Effect.fnUntraced(function* (store: Store, operation: StorageError["operation"], log: string) {
  const ledger = new Ledger(log)
  yield* store.encoded.lines(log).pipe(
    Stream.mapError((cause) => fail(store, operation, log, cause)),
    Stream.runForEachArray((lines) => {
      for (const line of lines) {
        const problem = ledger.read(line, undefined)
        if (problem !== undefined) return Effect.fail(problem)
      }
      return Effect.void
    })
  )
  return ledger
})
