/**
 * Processes that live one after another, and sometimes beside each other, on one disk, and what ends them.
 */
import { Duration, Effect, Fiber, Schedule } from "effect"
import { Storage } from "shiftboss"
import { Simulation } from "shiftboss/testing"
import type { Disk } from "../../src/node/internal/storage/disk.ts"
import { makeFiles } from "../../src/node/internal/storage/files.ts"
import { type DiskFaults, folder, SimulatedDisk } from "./disk.ts"
import { WatchedLogs } from "./watched.ts"

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

/** What a fault of shiftboss's own would be, put between its parts from outside. */
export interface Mutant {
  readonly disk?: (disk: Disk) => Disk
  readonly encoded?: (encoded: Storage.Encoded) => Storage.Encoded
  /** Put above everything that looks at the logs: they are as it makes them. */
  readonly storage?: (storage: Storage.Storage["Service"]) => Storage.Storage["Service"]
  /** What has to go wrong for it to matter: so often, and nothing else. Default: whatever the seed says. */
  readonly faults?: Partial<DiskFaults & Blows>
}

/** A process that runs or ran. */
export interface Life<A, E> {
  readonly id: number
  readonly host: string
  readonly process: Simulation.Process<A, E>
  /** Ends it, as SIGKILL does. */
  readonly kill: () => void
}

/** What goes wrong besides the disk, each with its probability in the life of a process. */
interface Blows {
  readonly kill: number
  readonly powerLoss: number
  readonly pause: number
  readonly clock: number
}

const noBlows: Blows = { kill: 0, powerLoss: 0, pause: 0, clock: 0 }

const lease = Duration.minutes(2)

// -----------------------------------------------------------------------------
// the machine room
// -----------------------------------------------------------------------------

/** One disk, the processes on it, and what became of its logs. */
export class Room {
  readonly disk: SimulatedDisk
  readonly logs = new WatchedLogs()
  readonly simulator: Simulation.Simulator["Service"]
  readonly mutant: Mutant
  /** Called with each life that ends, in whatever way. */
  readonly onEnd: Array<(id: number) => void> = []
  lives = 0
  private blows: Blows
  private readonly living = new Map<number, () => void>()
  private readonly opening = new Map<number, number>()
  private readonly newest = new Map<string, number>()

  constructor(simulator: Simulation.Simulator["Service"], mutant: Mutant) {
    this.simulator = simulator
    this.mutant = mutant
    this.disk = new SimulatedDisk(simulator)
    const { faults } = mutant
    // Each seed goes without some kinds of faults: what is always there hides what it makes impossible.
    const rate = (kind: keyof DiskFaults | keyof Blows, usual: number) =>
      faults === undefined ? (simulator.chanceUnsafe(`swarm.${kind}`, 0.5) ? usual : 0) : (faults[kind] ?? 0)
    this.disk.faults = {
      crash: rate("crash", 1 / 80),
      writeFails: rate("writeFails", 1 / 60),
      syncFails: rate("syncFails", 1 / 30),
      full: rate("full", 1 / 60),
      slow: rate("slow", 1 / 60)
    }
    this.blows = {
      kill: rate("kill", 0.5),
      powerLoss: rate("powerLoss", 0.5),
      pause: rate("pause", 0.3),
      clock: rate("clock", 0.3)
    }
  }

  /** From now on nothing goes wrong any more. */
  calm(): void {
    this.disk.calm()
    this.blows = noBlows
  }

  get mayPause(): boolean {
    return this.blows.pause > 0
  }

  isAlive(id: number): boolean {
    return this.living.has(id)
  }

  /** Everything that runs ends, and with it what the disk had not synced. */
  losePower(): void {
    for (const kill of [...this.living.values()]) kill()
    this.disk.losePower()
  }

  /** A process on the host that runs the program with the logs of this disk. */
  start<A, E, R>(host: string, program: (life: number) => Effect.Effect<A, E, R>) {
    return Effect.gen({ self: this }, function* () {
      const id = ++this.lives
      if (id > 1) this.simulator.markUnsafe("restart")
      const started: { process?: Simulation.Process<A, E> } = {}
      const kill = () => {
        if (!this.end(id)) return
        if (id > 1 && (this.opening.get(id) ?? 0) > 0) this.simulator.markUnsafe("crash in recovery")
        started.process?.killUnsafe()
      }
      this.living.set(id, kill)
      const body = Effect.flatMap(Simulation.Simulator, (simulator) =>
        Effect.provideService(program(id), Storage.Storage, this.storage(simulator, host, id, kill))
      )
      const process = yield* Simulation.start(body)
      started.process = process
      // It may have got as far as its end already.
      if (!this.isAlive(id)) process.killUnsafe()
      return { id, host, process, kill } satisfies Life<A, E>
    })
  }

  /** Waits for its end, and lets happen to it what may. `undefined` when it did not end by itself. */
  attend<A, E>(life: Life<A, E>, within: Duration.Input) {
    return Effect.gen({ self: this }, function* () {
      const fate = yield* Effect.forkChild(this.fate(life, within))
      const exit = yield* life.process.exit
      yield* Fiber.interrupt(fate)
      this.end(life.id)
      return exit
    })
  }

  private end(id: number): boolean {
    if (!this.living.delete(id)) return false
    for (const ended of this.onEnd) ended(id)
    return true
  }

  private storage(simulator: Simulation.Simulator["Service"], host: string, id: number, kill: () => void) {
    const mounted = noticing(this.disk.mount(simulator, kill), simulator)
    const epochs = new Map<string, number>()
    const files = this.acquiring(epochs, makeFiles({ disk: this.mutant.disk?.(mounted) ?? mounted, path: folder }))
    const storage = Storage.fromEncoded(this.mutant.encoded?.(files) ?? files, {
      lease,
      // With less, what a slow disk has not yet answered outlives the log on purpose, and would count as left running.
      closeWithin: "1 hour",
      identity: Effect.succeed({ id: `life-${id}`, host, process: `process ${id}`, proof: id }),
      // As for real: nothing can be proven of a process on another host.
      alive: (holder) =>
        Effect.sync(() => {
          if (holder.host !== host) return undefined
          const isAlive = this.living.has(Number(holder.proof))
          if (!isAlive) this.simulator.markUnsafe("log taken over on proof of death")
          return isAlive
        })
    })
    const isNewest = (log: string) => epochs.get(log) === this.newest.get(log)
    const watched = this.logs.over(this.recovering(id, storage), isNewest)
    return this.mutant.storage?.(watched) ?? watched
  }

  /** Knows under which epoch a life has each log, and what the newest one is. */
  private acquiring(epochs: Map<string, number>, files: Storage.Encoded): Storage.Encoded {
    const acquire: Storage.Encoded["acquire"] = (log, holder, options) =>
      Effect.tap(files.acquire(log, holder, options), (acquired) =>
        Effect.sync(() => {
          if (acquired._tag === "Held") return
          epochs.set(log, acquired.epoch)
          this.newest.set(log, Math.max(acquired.epoch, this.newest.get(log) ?? 0))
        })
      )
    return { ...files, acquire }
  }

  /** Knows which lives are in the middle of opening a log, and which have lost one. */
  private recovering(id: number, storage: Storage.Storage["Service"]) {
    const noteLoss = ({ _tag }: { readonly _tag: string }) =>
      Effect.sync(() => void (_tag === "LogFenced" && this.simulator.markUnsafe("log lost in mid-run")))
    const count = (by: number) => Effect.sync(() => this.opening.set(id, (this.opening.get(id) ?? 0) + by))
    return Storage.Storage.of({
      ...storage,
      open: (name) =>
        Effect.andThen(count(1), storage.open(name)).pipe(
          Effect.ensuring(count(-1)),
          Effect.map((log) => ({ ...log, append: (entries) => Effect.tapError(log.append(entries), noteLoss) }))
        )
    })
  }

  private fate<A, E>(life: Life<A, E>, within: Duration.Input) {
    const millis = Duration.toMillis(within)
    return Effect.gen({ self: this }, function* () {
      const happens = (label: keyof Blows) =>
        Effect.tap(Simulation.chance(`blow.${label}`, this.blows[label]), (isSo) =>
          isSo ? Simulation.mark("fault") : Effect.void
        )
      const moment = Simulation.pick("blow.seconds", Math.max(1, Math.floor(millis / 1000)))
      const wait = Effect.flatMap(moment, (seconds) => Effect.sleep(seconds * 1000))
      if (yield* happens("clock")) {
        yield* Effect.sleep("1 second")
        const seconds = yield* Simulation.pick("blow.shift", 3600)
        yield* Simulation.shiftClock(((yield* Simulation.chance("blow.back", 0.5)) ? -seconds : seconds) * 1000)
      }
      if (yield* happens("pause")) {
        yield* wait
        yield* life.process.pause((1 + (yield* Simulation.pick("blow.pauseSeconds", 600))) * 1000)
      }
      if (yield* happens("kill")) {
        yield* wait
        life.kill()
      }
      if (yield* happens("powerLoss")) {
        yield* wait
        this.losePower()
      }
    })
  }
}

/** Tries again for as long as somebody else may have the log. */
export const persistently = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.retry(effect, { while: ({ _tag }) => _tag === "LogHeld", schedule: Schedule.spaced("1 minute"), times: 120 })

/** The disk, with what the logs do on it that is seldom said. */
const noticing = (disk: Disk, simulator: Simulation.Simulator["Service"]): Disk => ({
  ...disk,
  open: async (path, flags, mode) => {
    const file = await disk.open(path, flags, mode)
    return {
      ...file,
      truncate: (length) => {
        if (flags === "durable") simulator.markUnsafe("torn end cut off")
        return file.truncate(length)
      },
      write: (buffer, at, position) => {
        if (buffer.subarray(0, 12).toString() === `{"haunted":1`) {
          simulator.markUnsafe("log taken over at the end of its lease")
        }
        return file.write(buffer, at, position)
      }
    }
  }
})
