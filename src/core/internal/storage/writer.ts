/**
 * Writes to a log that is held: one fiber at a time takes what waits and makes one flush of it.
 */
import { Deferred, Effect } from "effect"
import { type Json, LogFenced, type StorageError } from "../../Storage.ts"
import { survey } from "./entries.ts"
import type { Hold } from "./holder.ts"
import type { Ledger } from "./ledger.ts"
import { encodeHeader, encodeRecord } from "./record.ts"
import { fail, guarded, type Store } from "./store.ts"

type WriteError = StorageError | LogFenced

interface Write {
  readonly operation: "append" | "replace"
  /** Entries as JSON, fixed when the call was made: what the caller does to its objects later changes nothing. */
  readonly texts: ReadonlyArray<string>
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

  private readonly store: Store
  private readonly log: string
  private readonly hold: Hold
  private fenced = false
  private closed = false
  private waiting: Array<Write> = []
  /** Done once nothing waits any more; absent while nobody flushes. */
  private idle: Deferred.Deferred<void> | undefined
  /** The lines that stand. Known once all of the log was read, see `settle`. */
  private standing: number | undefined
  /** The last line of a replacement that failed, and may stand nevertheless. */
  private doubtful: { readonly lastLine: string; readonly next: number } | undefined

  constructor(store: Store, log: string, hold: Hold) {
    this.store = store
    this.log = log
    this.hold = hold
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

  write(operation: Write["operation"], entries: ReadonlyArray<Json>): Effect.Effect<void, WriteError> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const refusal = this.refusal(operation)
        if (refusal !== undefined) return Effect.fail(refusal)
        if (entries.length === 0 && operation === "append") return Effect.void
        const write: Write = { operation, texts: entries.map(toText), done: Deferred.makeUnsafe() }
        this.waiting.push(write)
        // Interrupting the caller only ends its waiting: a flush is shared, and half of one is worse than either.
        return Effect.andThen(this.wakeFlusher, restore(Deferred.await(write.done)))
      })
    )
  }

  private refusal(operation: Write["operation"]): WriteError | undefined {
    if (this.fenced) return new LogFenced({ log: this.log })
    if (!this.closed) return undefined
    return fail(this.store, operation, this.log, new Error("the scope it was opened in has ended"))
  }

  private readonly wakeFlusher = Effect.suspend(() => {
    if (this.idle !== undefined) return Effect.void
    this.idle = Deferred.makeUnsafe()
    // Detached, since the first caller's interruption must not reach the others; `close` waits for it.
    return Effect.forkDetach(this.drain)
  })

  private readonly drain: Effect.Effect<void> = Effect.suspend(() => {
    const writes = this.nextWrites()
    const [first] = writes
    if (first === undefined) {
      if (this.idle !== undefined) Deferred.doneUnsafe(this.idle, Effect.void)
      this.idle = undefined
      return Effect.void
    }
    const flush = first.operation === "append" ? this.append(writes) : this.replace(first)
    return flush.pipe(
      Effect.exit,
      Effect.flatMap((exit) => {
        for (const { done } of writes) Deferred.doneUnsafe(done, exit)
        return this.drain
      })
    )
  })

  private nextWrites(): ReadonlyArray<Write> {
    const [first] = this.waiting
    if (first === undefined || first.operation === "replace") return this.waiting.splice(0, 1)
    let size = 0
    let count = 0
    for (const { operation, texts } of this.waiting) {
      if (operation === "replace" || size >= flushSize) break
      for (const text of texts) size += text.length
      count++
    }
    return this.waiting.splice(0, count)
  }

  private readonly append = Effect.fnUntraced(function* (this: Writer, writes: ReadonlyArray<Write>) {
    const standing = yield* this.settle("append")
    const { epoch } = this.hold
    const texts = writes.flatMap(({ texts }) => texts)
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

  private readonly replace = Effect.fnUntraced(function* (this: Writer, { texts }: Write) {
    yield* this.settle("replace")
    const { epoch } = this.hold
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
  private readonly settle = Effect.fnUntraced(function* (this: Writer, operation: Write["operation"]) {
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
  // JSON.stringify answers undefined for a function or undefined itself, which the type of an entry rules out.
  if (text === undefined) throw new TypeError("an entry of a log has to be JSON, but one is undefined or a function")
  return text
}
