/**
 * A disk that the code of `FileStorage` runs on: it is slow, full or broken when the seed says so, and a power loss leaves of
 * what was not synced any part, torn and zero-filled. After a failed sync it forgets what it was to write, and says that all is
 * well when asked again, as Linux does.
 */
import type { Simulation } from "shiftboss/testing"
import type { Disk, DiskFile } from "../../src/node/internal/storage/disk.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What may go wrong, each with its probability at an operation. */
export interface DiskFaults {
  /** The process dies before, in the middle of or after an operation. */
  readonly crash: number
  readonly writeFails: number
  readonly syncFails: number
  /** It becomes full, for a while. */
  readonly full: number
  /** An operation takes seconds. */
  readonly slow: number
}

const faultless: DiskFaults = { crash: 0, writeFails: 0, syncFails: 0, full: 0, slow: 0 }

type Change =
  | { readonly _tag: "Written"; readonly at: number; readonly bytes: Uint8Array }
  | { readonly _tag: "Cut"; readonly length: number }

interface Inode {
  /** As every process sees it. */
  live: Uint8Array
  /** As it would be after a power loss, at the least. */
  durable: Uint8Array
  /** What is not on the disk for certain. */
  pending: Array<Change>
  mode: number
  modifiedAt: number
}

type Entry =
  | { readonly _tag: "Named"; readonly path: string; readonly inode: Inode; readonly from?: string }
  | { readonly _tag: "Removed"; readonly path: string }

/** An error as Node reports it. */
class SystemError extends Error {
  readonly code: string
  constructor(code: string, path: string) {
    super(`${code}: ${path}`)
    this.code = code
  }
}

// -----------------------------------------------------------------------------
// bytes
// -----------------------------------------------------------------------------

/** The unit in which a disk writes. Small, so that short records span several. */
const sector = 64

const apply = (bytes: Uint8Array, change: Change): Uint8Array => {
  const length = change._tag === "Cut" ? change.length : Math.max(bytes.length, change.at + change.bytes.length)
  const result = new Uint8Array(length)
  result.set(bytes.subarray(0, length))
  if (change._tag === "Written") result.set(change.bytes, change.at)
  return result
}

/** The sectors of a change up to there. What comes behind them is as it was, which is NUL where the file was made longer first. */
const torn = (change: Change, sectors: number): Change => {
  if (change._tag === "Cut") return change
  const first = sector - (change.at % sector)
  const length = Math.min(change.bytes.length, sectors === 0 ? 0 : first + (sectors - 1) * sector)
  return { ...change, bytes: change.bytes.subarray(0, length) }
}

const extended = (bytes: Uint8Array, change: Change): Uint8Array => {
  if (change._tag === "Cut" || bytes.length >= change.at + change.bytes.length) return bytes
  const result = new Uint8Array(change.at + change.bytes.length)
  result.set(bytes)
  return result
}

// -----------------------------------------------------------------------------
// the disk
// -----------------------------------------------------------------------------

export class SimulatedDisk {
  faults: DiskFaults = faultless
  /** Whether a file opened as "durable" writes synchronously (Linux), or is synced by `datasync` (macOS). */
  readonly syncsWrites: boolean

  private readonly chance: Simulator
  private live = new Map<string, Inode>()
  private durable = new Map<string, Inode>()
  private entries: Array<Entry> = []
  private fullUntil = -1

  constructor(simulator: Simulator) {
    this.chance = simulator
    this.syncsWrites = simulator.chanceUnsafe("disk.dsync", 0.5)
  }

  /** From now on nothing goes wrong any more, and there is room. */
  calm(): void {
    this.faults = faultless
    this.fullUntil = -1
  }

  /** The disk as a process uses it. What that has asked for ends with it; `die` is called when a fault ends it. */
  mount(simulator: Simulator, die: () => void): Disk {
    return new Mounted(this, simulator, die).disk
  }

  /** Takes away what was not synced: any part of the names, in order, and of each file's changes. */
  losePower(): void {
    const kept = this.chance.pickUnsafe("loss.names", this.entries.length + 1)
    for (const entry of this.entries.slice(0, this.entries.length - kept)) change(this.durable, entry)
    this.entries = []
    this.live = new Map(this.durable)
    for (const inode of new Set(this.live.values())) this.recover(inode)
  }

  private recover(inode: Inode): void {
    for (const change of inode.pending) {
      const fate = this.chance.pickUnsafe("loss.fate", 4)
      if (fate === 1) continue
      const sectors = change._tag === "Cut" ? 0 : Math.ceil(change.bytes.length / sector) + 1
      if (fate === 3) inode.durable = extended(inode.durable, change)
      const kept = fate === 0 ? change : torn(change, this.chance.pickUnsafe("loss.sectors", sectors))
      inode.durable = apply(inode.durable, kept)
    }
    inode.pending = []
    inode.live = inode.durable.slice()
  }

  // --- what a mounted disk does ---

  find(path: string): Inode {
    const inode = this.live.get(path)
    if (inode === undefined) throw new SystemError("ENOENT", path)
    return inode
  }

  exists(path: string): boolean {
    return this.live.has(path)
  }

  names(directory: string): ReadonlyArray<string> {
    const prefix = `${directory}/`
    return [...this.live.keys()].flatMap((path) => (path.startsWith(prefix) ? [path.slice(prefix.length)] : []))
  }

  change(entry: Entry): void {
    change(this.live, entry)
    this.entries.push(entry)
  }

  syncNames(): void {
    for (const entry of this.entries) change(this.durable, entry)
    this.entries = []
  }

  write(inode: Inode, written: Change): void {
    inode.live = apply(inode.live, written)
    inode.pending.push(written)
  }

  sync(inode: Inode): void {
    for (const change of inode.pending) inode.durable = apply(inode.durable, change)
    inode.pending = []
  }

  /** The error is reported once. The pages count as clean from then on, and may or may not still be seen. */
  failSync(inode: Inode): void {
    if (this.chance.chanceUnsafe("disk.reverts", 0.5)) inode.live = inode.durable.slice()
    inode.pending = []
  }

  get isFull(): boolean {
    return this.chance.monotonicMillisUnsafe() < this.fullUntil
  }

  fill(): void {
    this.chance.markUnsafe("fault")
    this.fullUntil = this.chance.monotonicMillisUnsafe() + 1000 * (1 + this.chance.pickUnsafe("disk.fullSeconds", 120))
  }
}

type Simulator = Simulation.Simulator["Service"]

const change = (names: Map<string, Inode>, entry: Entry): void => {
  if (entry._tag === "Removed") names.delete(entry.path)
  else {
    if (entry.from !== undefined) names.delete(entry.from)
    names.set(entry.path, entry.inode)
  }
}

// -----------------------------------------------------------------------------
// what a process sees of it
// -----------------------------------------------------------------------------

type Doing = "read" | "write" | "sync" | "other"

class Mounted {
  private readonly on: SimulatedDisk
  private readonly simulator: Simulator
  private readonly die: () => void

  constructor(on: SimulatedDisk, simulator: Simulator, die: () => void) {
    this.on = on
    this.simulator = simulator
    this.die = die
  }

  readonly disk: Disk = {
    open: (path, flags) => this.operation("other", () => this.open(path, flags)),
    makeDirectory: () => this.operation("other", () => undefined),
    modeOf: () => this.operation("read", () => 0o700),
    chmod: () => this.operation("other", () => undefined),
    names: (directory) => this.operation("read", () => this.on.names(directory)),
    rename: (from, path) =>
      this.operation("other", () => this.on.change({ _tag: "Named", path, inode: this.on.find(from), from })),
    link: (from, path) =>
      this.operation("other", () => {
        if (this.on.exists(path)) throw new SystemError("EEXIST", path)
        this.on.change({ _tag: "Named", path, inode: this.on.find(from) })
      }),
    remove: (path) =>
      this.operation("other", () => {
        this.on.find(path)
        this.on.change({ _tag: "Removed", path })
      }),
    modifiedAt: (path) => this.operation("read", () => this.on.find(path).modifiedAt),
    exists: (path) => this.on.exists(path),
    setModifiedAt: (path, millis) => this.operation("other", () => void (this.on.find(path).modifiedAt = millis)),
    text: (path) => this.operation("read", () => Buffer.from(this.on.find(path).live).toString("utf8"))
  }

  private open(path: string, flags: Parameters<Disk["open"]>[1]): DiskFile {
    if (!path.startsWith(`${folder}/`)) return this.directory()
    if (flags === "wx") {
      if (this.on.exists(path)) throw new SystemError("EEXIST", path)
      this.requireRoom(path)
      const nothing = new Uint8Array(0)
      const inode: Inode = { live: nothing, durable: nothing, pending: [], mode: 0o600, modifiedAt: 0 }
      this.on.change({ _tag: "Named", path, inode })
    }
    return this.file(path, this.on.find(path), flags === "durable" && this.on.syncsWrites)
  }

  private directory(): DiskFile {
    const refuse = () => Promise.reject(new SystemError("EISDIR", folder))
    return {
      ...{ size: refuse, mode: refuse, chmod: refuse, read: refuse, write: refuse, truncate: refuse, datasync: refuse },
      sync: () => this.operation("sync", () => this.on.syncNames()),
      close: () => Promise.resolve()
    }
  }

  private file(path: string, inode: Inode, isSynced: boolean): DiskFile {
    const sync = () =>
      this.operation(
        "sync",
        () => this.on.sync(inode),
        () => this.on.failSync(inode)
      )
    return {
      size: () => this.operation("read", () => inode.live.length),
      mode: () => this.operation("read", () => inode.mode),
      chmod: (mode) => this.operation("other", () => void (inode.mode = mode)),
      read: (buffer, at, position) =>
        this.operation("read", () => {
          const bytes = inode.live.subarray(position, position + buffer.length - at)
          buffer.set(bytes, at)
          return bytes.length
        }),
      write: (buffer, at, position) => {
        const bytes = new Uint8Array(buffer.subarray(at))
        const part = (length: number) =>
          this.on.write(inode, { _tag: "Written", at: position, bytes: bytes.subarray(0, length) })
        return this.operation(
          "write",
          () => {
            this.requireRoom(path)
            // The system may take fewer bytes than it was given.
            const length = this.simulator.chanceUnsafe("disk.short", 0.02) ? Math.ceil(bytes.length / 2) : bytes.length
            part(length)
            if (isSynced) this.on.sync(inode)
            return length
          },
          () => {
            part(this.simulator.pickUnsafe("disk.written", bytes.length + 1))
            if (isSynced) this.on.failSync(inode)
          }
        )
      },
      truncate: (length) => this.operation("other", () => this.on.write(inode, { _tag: "Cut", length })),
      datasync: () => (isSynced ? Promise.resolve() : sync()),
      sync,
      close: () => Promise.resolve()
    }
  }

  private requireRoom(path: string): void {
    if (this.simulator.chanceUnsafe("disk.full", this.on.faults.full)) this.on.fill()
    if (this.on.isFull) throw new SystemError("ENOSPC", path)
  }

  /** Does it after a while. `half` is what it comes to when it fails, or when the process dies in the middle of it. */
  private operation<A>(doing: Doing, perform: () => A, half: () => void = () => undefined): Promise<A> {
    return new Promise((resolve, reject) => {
      this.simulator.laterUnsafe(this.latency(), () => {
        const dies = doing !== "read" && this.simulator.chanceUnsafe("disk.crash", this.on.faults.crash)
        const moment = dies ? this.simulator.pickUnsafe("disk.moment", 3) : undefined
        if (moment === undefined && this.fails(doing)) {
          this.simulator.markUnsafe("fault")
          half()
          return reject(new SystemError("EIO", folder))
        }
        if (moment === 1) half()
        if (moment === 0 || moment === 1) return this.crash()
        try {
          const answer = perform()
          return moment === 2 ? this.crash() : resolve(answer)
        } catch (error) {
          return reject(error)
        }
      })
    })
  }

  private crash(): void {
    this.simulator.markUnsafe("fault")
    this.die()
  }

  private fails(doing: Doing): boolean {
    if (doing === "write") return this.simulator.chanceUnsafe("disk.writeFails", this.on.faults.writeFails)
    return doing === "sync" && this.simulator.chanceUnsafe("disk.syncFails", this.on.faults.syncFails)
  }

  private latency(): number {
    if (this.simulator.chanceUnsafe("disk.slow", this.on.faults.slow)) {
      this.simulator.markUnsafe("fault")
      return 1000 * (1 + this.simulator.pickUnsafe("disk.seconds", 60))
    }
    return this.simulator.pickUnsafe("disk.millis", 3)
  }
}

/** Where the logs are. */
export const folder = "/logs"
