/**
 * Writes to a log that is held: one fiber at a time takes what waits and makes one flush of it.
 */
import { Deferred, Effect } from "effect"
import type { Json } from "../../Storage.ts"
import { LogFenced, type StorageError } from "../../StorageError.ts"
import { survey } from "./entries.ts"
import type { Ledger } from "./ledger.ts"
import { encodeHeader, encodeRecord } from "./record.ts"
import { fail, guarded, notJson, scopeEnded, type Store } from "./store.ts"

type WriteError = StorageError | LogFenced

/** Calls that become one flush, and are answered together. */
interface Batch {
  readonly operation: "append" | "replace"
  /** Entries as JSON, fixed when the call was made: what the caller does to its objects later changes nothing. */
  readonly texts: Array<string>
  size: number
  readonly done: Deferred.Deferred<void, WriteError>
}

/** A flush takes in no further call once it has this many characters. */
const flushSize = 4 * 1024 * 1024

/** Entries a flush in content that is replaced. It is one rename, so that these only bound what a reader has to keep. */
const replacedFlush = 512

export class Writer {
  /** The sequence number of the next entry: all before it is acknowledged. */
  next = 1
  /** Rises with every replacement, after which sequence numbers mean other entries. */
  generation = 0
  /** That of the hold to write under. */
  epoch = 0

  private readonly store: Store
  private readonly log: string
  private fenced = false
  private closed = false
  private waiting: Array<Batch> = []
  /** Done once nothing waits any more; absent while nobody flushes. */
  private idle: Deferred.Deferred<void> | undefined
  /** The lines that stand. Known once all of the log was read, see `settle`. */
  private standing: number | undefined
  /** The last line of a replacement that failed, and may stand nevertheless. */
  private doubtful: { readonly lastLine: string; readonly next: number } | undefined

  constructor(store: Store, log: string) {
    this.store = store
    this.log = log
  }

  /** Goes on where this ledger ends. */
  begin(ledger: Ledger): void {
    this.next = ledger.next
  }

  /** Takes over what a reading of all acknowledged entries found. */
  know(ledger: Ledger): void {
    if (this.standing === undefined && this.doubtful === undefined) this.standing = ledger.standing
  }

  readonly lose = Effect.sync(() => {
    this.fenced = true
  })

  /** Lets nothing more in and waits for the flush under way. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.closed = true
    return this.idle === undefined ? Effect.void : Deferred.await(this.idle)
  })

  write(operation: Batch["operation"], entries: ReadonlyArray<Json>): Effect.Effect<void, WriteError> {
    return Effect.suspend(() => {
      const refusal = this.refusal(operation)
      if (refusal !== undefined) return Effect.fail(refusal)
      if (entries.length === 0 && operation === "append") return Effect.void
      const texts = entries.map(toText)
      // Interrupting the caller only ends its waiting: a flush is shared, and half of one is worse than either.
      if (this.idle !== undefined) return Deferred.await(this.add(operation, texts))
      return Effect.uninterruptibleMask((restore) => {
        const done = this.add(operation, texts)
        return Effect.andThen(this.wake, restore(Deferred.await(done)))
      })
    })
  }

  private add(operation: Batch["operation"], texts: Array<string>): Batch["done"] {
    const last = this.waiting.at(-1)
    const joins = operation === "append" && last?.operation === "append" && last.size < flushSize
    const batch: Batch = joins ? last : { operation, texts: [], size: 0, done: Deferred.makeUnsafe() }
    if (!joins) this.waiting.push(batch)
    for (const text of texts) {
      batch.texts.push(text)
      batch.size += text.length
    }
    return batch.done
  }

  private refusal(operation: Batch["operation"]): WriteError | undefined {
    if (this.fenced) return new LogFenced({ log: this.log })
    if (!this.closed) return undefined
    return fail(this.store, operation, this.log, scopeEnded())
  }

  private readonly wake = Effect.suspend(() => {
    if (this.idle !== undefined) return Effect.void
    this.idle = Deferred.makeUnsafe()
    // Detached, since the first caller's interruption must not reach the others; `close` waits for it.
    return Effect.forkDetach(this.drain)
  })

  private readonly drain: Effect.Effect<void> = Effect.suspend(() => {
    const batch = this.waiting.shift()
    if (batch === undefined) {
      if (this.idle !== undefined) Deferred.doneUnsafe(this.idle, Effect.void)
      this.idle = undefined
      return Effect.void
    }
    const flush = batch.operation === "append" ? this.append(batch) : this.replace(batch)
    return flush.pipe(
      Effect.exit,
      Effect.flatMap((exit) => {
        Deferred.doneUnsafe(batch.done, exit)
        // Lets those who were waiting come with their next entries, so that these are one flush again.
        return Effect.andThen(Effect.yieldNow, this.drain)
      })
    )
  })

  private readonly append = Effect.fnUntraced(function* (this: Writer, { texts }: Batch) {
    const standing = yield* this.settle("append")
    const { epoch } = this
    const first = this.next
    const last = first + texts.length - 1
    const lines = texts.map((text, index) => encodeRecord({ epoch, seq: first + index, first, last }, text))
    if (standing === 0) lines.unshift(encodeHeader(this.log))
    const { encoded } = this.store
    const holds = yield* guarded(this.store, "append", this.log)(encoded.append(this.log, epoch, standing, lines))
    if (!holds) return yield* this.fence()
    this.standing = standing + lines.length
    this.next = last + 1
  })

  private readonly replace = Effect.fnUntraced(function* (this: Writer, { texts }: Batch) {
    yield* this.settle("replace")
    const { epoch } = this
    const lines = [encodeHeader(this.log)]
    for (let from = 0; from < texts.length; from += replacedFlush) {
      const last = Math.min(from + replacedFlush, texts.length)
      for (let at = from; at < last; at++) {
        lines.push(encodeRecord({ epoch, seq: at + 1, first: from + 1, last }, texts[at]!))
      }
    }
    this.doubtful = { lastLine: lines[lines.length - 1]!, next: texts.length + 1 }
    const { encoded } = this.store
    const holds = yield* guarded(this.store, "replace", this.log)(encoded.replace(this.log, epoch, lines))
    if (!holds) return yield* this.fence()
    this.adopt(lines.length, this.doubtful.next)
  })

  private adopt(standing: number, next: number): void {
    this.doubtful = undefined
    this.standing = standing
    this.next = next
    this.generation++
  }

  private fence(): Effect.Effect<never, LogFenced> {
    return Effect.andThen(this.lose, Effect.fail(new LogFenced({ log: this.log })))
  }

  /**
   * The number of lines that stand. It takes a reading of the whole log where none was made yet, so that nothing is
   * ever written after damage, and where a replacement failed without a word on which content stands.
   */
  private readonly settle = Effect.fnUntraced(function* (this: Writer, operation: Batch["operation"]) {
    if (this.fenced) return yield* this.fence()
    if (this.standing !== undefined && this.doubtful === undefined) return this.standing
    const ledger = yield* survey(this.store, operation, this.log).pipe(
      Effect.mapError((error) => (error._tag === "StorageError" ? error : fail(this.store, operation, this.log, error)))
    )
    const { doubtful } = this
    if (doubtful !== undefined && ledger.next === doubtful.next && ledger.lastLine === doubtful.lastLine) {
      this.adopt(ledger.standing, ledger.next)
      return ledger.standing
    }
    this.doubtful = undefined
    if (this.standing !== undefined && ledger.standing >= this.standing) return this.standing
    if (this.standing === undefined && ledger.next === this.next) return (this.standing = ledger.standing)
    const lost = new Error(`it holds ${ledger.next - 1} entries, but ${this.next - 1} were acknowledged`)
    return yield* fail(this.store, operation, this.log, lost)
  })
}

const toText = (entry: Json): string => {
  const text = JSON.stringify(entry)
  if (text === undefined) throw notJson()
  return text
}
