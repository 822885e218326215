/**
 * Decides line by line what of a log stands: which entries count, where the next one goes, and whether damage is the torn
 * end a crash leaves or the loss of something acknowledged. Pure: no effect, no clock.
 */
import type { Json } from "../../Storage.ts"
import { LogCorrupt, LogTooNew } from "../../StorageError.ts"
import { decodeEntry, decodeHeader, decodeRecord, formatVersion, isTorn, type Record } from "./record.ts"

interface Flush {
  readonly first: number
  readonly last: number
  readonly epoch: number
  readonly entries: Array<Json>
}

export class Ledger {
  /** Lines read so far. */
  line = 0
  /** Lines that stand: what comes after them was never acknowledged. */
  standing = 0
  /** The sequence number of the next entry. */
  next = 1
  /** The highest epoch seen. */
  epoch = 0
  /** The last line that stands. */
  lastLine = ""
  /** Whether all that was read stands. */
  get isWhole(): boolean {
    return this.standing === this.line
  }

  private readonly log: string
  private flush: Flush | undefined
  /** The last entry read of the flush. */
  private seen = 0
  private torn: LogCorrupt | undefined

  constructor(log: string) {
    this.log = log
  }

  /** A ledger that begins with this record, taking all before it as read. */
  static from(log: string, first: Record): Ledger {
    const ledger = new Ledger(log)
    ledger.line = first.seq
    ledger.standing = first.seq
    ledger.next = first.seq
    ledger.epoch = first.epoch
    return ledger
  }

  /**
   * Takes the next line. Entries go to `into` once their flush is whole; without it they are not even parsed. What it
   * answers ends the reading.
   */
  read(text: string, into: Array<Json> | undefined): LogCorrupt | LogTooNew | undefined {
    this.line++
    if (this.line === 1) return this.readHeader(text)
    const record = decodeRecord(text)
    if (typeof record === "string") return this.readDamage(text, record)
    // A former holder that was fenced off wrote this after its successor had begun.
    if (record.epoch < this.epoch) return undefined
    // Damage followed by more of the same flush is still the torn end; anything later was written on top of a loss.
    if (this.torn !== undefined) return record.first === this.next ? undefined : this.torn
    return this.readRecord(text, record, into)
  }

  private readHeader(text: string): LogCorrupt | LogTooNew | undefined {
    const header = decodeHeader(text)
    // A log is created whole, with its header synced: no crash damages one.
    if (typeof header === "string") return this.corrupt(header)
    if (header.version > formatVersion) {
      return new LogTooNew({ log: this.log, version: header.version, supported: formatVersion })
    }
    if (header.log !== this.log) return this.corrupt(`it holds the log "${header.log}" instead`)
    this.standing = 1
    this.lastLine = text
    return undefined
  }

  private readDamage(text: string, found: string): LogCorrupt | undefined {
    if (this.torn !== undefined) return undefined
    const damage = this.corrupt(found)
    if (!isTorn(text)) return damage
    this.torn = damage
    this.flush = undefined
    return undefined
  }

  private readRecord(text: string, record: Record, into: Array<Json> | undefined): LogCorrupt | undefined {
    const flush = this.flush
    const expected = this.expected()
    if (record.seq !== expected) return this.corrupt(`entry ${expected} is missing; entry ${record.seq} stands here`)
    const { first, last, epoch } = record
    const fits =
      flush === undefined
        ? first === record.seq && last >= first
        : first === flush.first && last === flush.last && epoch === flush.epoch
    if (!fits) return this.corrupt(`the rest of the entries written with entry ${flush?.first ?? first} is missing`)
    if (first === last) return this.accept(text, record, into)
    this.seen = record.seq
    const entries = flush?.entries ?? []
    if (into !== undefined) {
      const damage = this.parse(text, record, entries)
      if (damage !== undefined) return damage
    }
    this.flush = flush ?? { first, last, epoch, entries }
    if (record.seq < last) return undefined
    for (const entry of entries) into?.push(entry)
    this.stand(text, record)
    return undefined
  }

  private expected(): number {
    return this.flush === undefined ? this.next : this.seen + 1
  }

  private accept(text: string, record: Record, into: Array<Json> | undefined): LogCorrupt | undefined {
    const damage = into === undefined ? undefined : this.parse(text, record, into)
    if (damage === undefined) this.stand(text, record)
    return damage
  }

  private parse(text: string, record: Record, into: Array<Json>): LogCorrupt | undefined {
    try {
      into.push(decodeEntry(text, record))
      return undefined
    } catch {
      return this.corrupt("its entry is not JSON")
    }
  }

  private stand(text: string, record: Record): void {
    this.lastLine = text
    this.flush = undefined
    this.next = record.last + 1
    this.epoch = record.epoch
    this.standing = this.line
  }

  private corrupt(found: string): LogCorrupt {
    return new LogCorrupt({ log: this.log, line: this.line, found })
  }
}
