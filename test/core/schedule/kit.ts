import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal, Storage } from "shiftboss"
import { ScriptedWorkflows } from "shiftboss/testing"

/** What happens at an append: it fails, the process dies or has lost the log, with the entries written or not. */
export interface Fault {
  readonly kind: "fail" | "crash" | "fence"
  readonly written: boolean
  /** How many appends go through before it. */
  readonly after: number
}

/**
 * Logs in memory without leases: a lease is renewed by a timer, and a test that moves the clock by years would wait for
 * every one of those.
 */
const makeLogs = () => {
  const kept = (entries: ReadonlyArray<Storage.Json>) =>
    entries.map((entry) => JSON.parse(JSON.stringify(entry)) as Storage.Json)
  const logs = new Map<string, ReadonlyArray<Storage.Json>>()
  const held = new Set<string>()
  const stored = (log: string) => Stream.suspend(() => Stream.fromIterable(logs.get(log) ?? []))
  const hold = (log: string) =>
    Effect.suspend(() => {
      const remedy = "End it."
      if (held.has(log)) return Effect.fail(new Storage.LogHeld({ log, host: "here", process: "1", since: 0, remedy }))
      held.add(log)
      return Effect.void
    })
  return Storage.Storage.of({
    shared: false,
    open: (log) =>
      Effect.acquireRelease(hold(log), () => Effect.sync(() => held.delete(log))).pipe(
        Effect.as<Storage.Log<Storage.Json>>({
          name: log,
          replay: stored(log),
          append: (entries) => Effect.sync(() => void logs.set(log, [...(logs.get(log) ?? []), ...kept(entries)])),
          replace: (entries) => Effect.sync(() => void logs.set(log, kept(entries)))
        })
      ),
    read: stored,
    list: () => Stream.fromIterable(logs.keys()),
    remove: (log) => Effect.sync(() => void logs.delete(log))
  })
}

/** Logs that outlive the process, with faults at chosen appends. */
export const makeDisk = Effect.gen(function* () {
  const storage = makeLogs()
  const disk = {
    storage: Storage.Storage.of({ ...storage, open: (log) => Effect.map(storage.open(log), withFaults) }),
    fault: undefined as Fault | undefined,
    crashed: yield* Deferred.make<void>(),
    appends: 0,
    /** What every rewriting of a log comes to. */
    rewriting: "done" as "done" | "fail" | "fence",
    rewrites: 0,
    /** How often a log was opened. */
    opens: 0,
    /** What another version or a person left in the log; the holder knows nothing of it. */
    write: (entries: ReadonlyArray<ScheduleJournal.ScheduleEvent>, version = 1) =>
      Effect.suspend(() => {
        const log = disk.opened.get("schedules") ?? absent("schedules")
        return Storage.typed(log, { entry: ScheduleJournal.ScheduleEvent, version }).append(entries)
      }),
    /** What is in the log now, entry by entry, as the storage keeps it. */
    stored: Stream.runCollect(storage.read("schedules")),
    writeStored: (entries: ReadonlyArray<Storage.Json>) =>
      Effect.suspend(() => (disk.opened.get("schedules") ?? absent("schedules")).append(entries)),
    opened: new Map<string, Storage.Log<Storage.Json>>(),
    entries: (log = "schedules") =>
      Stream.runCollect(Storage.readTyped(storage, log, { entry: ScheduleJournal.ScheduleEvent, version: 1 }))
  }
  const absent = (log: string): never => {
    throw new Error(`the log ${log} was never opened`)
  }
  function withFaults(log: Storage.Log<Storage.Json>): Storage.Log<Storage.Json> {
    disk.opened.set(log.name, log)
    disk.opens++
    const failure = new Storage.StorageError({ operation: "append", log: log.name, remedy: "Wait.", cause: "scripted" })
    return {
      ...log,
      replace: (entries) =>
        Effect.suspend(() => {
          disk.rewrites++
          if (disk.rewriting === "done") return log.replace(entries)
          return Effect.fail(disk.rewriting === "fail" ? failure : new Storage.LogFenced({ log: log.name }))
        }),
      append: (entries) =>
        Effect.suspend(() => {
          disk.appends++
          const fault = disk.fault
          if (fault === undefined) return log.append(entries)
          if (fault.after > 0) {
            disk.fault = { ...fault, after: fault.after - 1 }
            return log.append(entries)
          }
          const written = fault.written ? log.append(entries) : Effect.void
          if (fault.kind !== "crash") {
            disk.fault = undefined
            const fenced = new Storage.LogFenced({ log: log.name })
            return Effect.andThen(written, Effect.fail(fault.kind === "fail" ? failure : fenced))
          }
          // A dead process writes nothing more.
          disk.fault = { ...fault, written: false }
          return Effect.andThen(written, Effect.andThen(Deferred.succeed(disk.crashed, undefined), Effect.never))
        })
    }
  }
  return disk
})

export type Disk = Effect.Success<typeof makeDisk>

/** A process that runs the journal over a disk and a host that outlive it. */
export const start = Effect.fnUntraced(function* (
  disk: Disk,
  host: ScriptedWorkflows.ScriptedWorkflows,
  schedules: ReadonlyArray<ScheduleJournal.Schedule>,
  options: ScheduleJournal.Options = {}
) {
  const scope = yield* Scope.make()
  const layer = ScheduleJournal.layer(schedules, options).pipe(
    Layer.provide([Layer.succeed(Storage.Storage, disk.storage), host.layer])
  )
  const context = yield* Layer.buildWithScope(Layer.fresh(layer), scope).pipe(
    Effect.onError(() => Scope.close(scope, Exit.void))
  )
  return { journal: Context.get(context, ScheduleJournal.ScheduleJournal), stop: Scope.close(scope, Exit.void) }
})

/** Runs an effect that the disk may cut off; whether it did. */
export const untilCrash = Effect.fnUntraced(function* <A, E>(disk: Disk, effect: Effect.Effect<A, E>) {
  const fiber = yield* Effect.forkChild(Effect.exit(effect))
  const survived = yield* Effect.raceFirst(
    Effect.as(Fiber.await(fiber), true),
    Effect.as(Deferred.await(disk.crashed), false)
  )
  yield* Fiber.interrupt(fiber)
  return !survived
})

/** The disk after a crash, as the next process finds it. */
export const revive = Effect.fnUntraced(function* (disk: Disk) {
  disk.fault = undefined
  disk.crashed = yield* Deferred.make<void>()
})

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour

/** When every test begins: long after the epoch, so that clocks can be set back. */
export const beginning = 20_000 * day

/** A disk, a host, and a process that can be ended and started again. */
export const makeWorld = Effect.fnUntraced(function* (
  schedules: ReadonlyArray<ScheduleJournal.Schedule>,
  options: ScheduleJournal.Options = {}
) {
  yield* TestClock.setTime(beginning)
  const disk = yield* makeDisk
  const host = ScriptedWorkflows.make()
  let process = yield* start(disk, host, schedules, options)
  return {
    disk,
    host,
    get journal() {
      return process.journal
    },
    /** Ends the process and starts the next one. */
    restart: Effect.fnUntraced(function* (next = schedules) {
      yield* process.stop
      yield* revive(disk)
      process = yield* start(disk, host, next, options)
    }),
    /** Lets time pass and takes one step. */
    after: (millis: number) =>
      Effect.andThen(
        TestClock.adjust(millis),
        Effect.suspend(() => process.journal.tick)
      ),
    summary: (workflowId: string) =>
      Effect.suspend(() => process.journal.list).pipe(
        Effect.flatMap((all) => Effect.fromNullishOr(all.find((one) => one.workflowId === workflowId)))
      )
  }
})
