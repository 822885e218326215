/**
 * What many schedules cost. After a build:
 *
 *     node test/bench/schedule.bench.ts [slots]
 *
 * Prints the time of a tick with nothing due and with some due, the memory of a schedule, and how long a start takes
 * after a million slots (or as many as were asked for).
 */
import { Context, Effect, Exit, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal, Storage } from "shiftboss"
import { ScriptedWorkflows } from "shiftboss/testing"
import { count as shown, heap, table } from "./measure.ts"

const minute = 60_000

/** A log that costs nothing but its entries, so that the journal is measured and not a storage. */
const makeArrays = () => {
  const logs = new Map<string, Array<Storage.Json>>()
  const entriesOf = (name: string) => logs.get(name) ?? logs.set(name, []).get(name) ?? []
  const storage = Storage.Storage.of({
    shared: false,
    open: (name) =>
      Effect.succeed({
        name,
        replay: Stream.suspend(() => Stream.fromArray(entriesOf(name))),
        append: (entries) => Effect.sync(() => void entriesOf(name).push(...entries)),
        replace: (entries) => Effect.sync(() => void logs.set(name, [...entries]))
      }),
    read: (name) => Stream.suspend(() => Stream.fromArray(entriesOf(name))),
    list: () => Stream.fromIterable(logs.keys()),
    remove: (name) => Effect.sync(() => void logs.delete(name))
  })
  return { storage, entriesOf }
}

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const begin = performance.now()
    const value = yield* effect
    return { value, millis: performance.now() - begin }
  })

const open = Effect.fnUntraced(function* (
  storage: Storage.Storage["Service"],
  host: ScriptedWorkflows.ScriptedWorkflows,
  schedules: ReadonlyArray<ScheduleJournal.Schedule>
) {
  const scope = yield* Scope.make()
  const layer = ScheduleJournal.layer(schedules).pipe(
    Layer.provide([Layer.succeed(Storage.Storage, storage), host.layer])
  )
  const context = yield* Layer.buildWithScope(Layer.fresh(layer), scope)
  return { journal: Context.get(context, ScheduleJournal.ScheduleJournal), close: Scope.close(scope, Exit.void) }
})

const rows: Array<ReadonlyArray<string>> = []
const print = (what: string, value: string) => void rows.push([what, value])
const micros = (millis: number) => `${(millis * 1000).toFixed(1)} µs`

/** `due` of the schedules come due in the first minute, the others a day later. */
const many = (count: number, due: number): ReadonlyArray<ScheduleJournal.Schedule> =>
  Array.from({ length: count }, (_, i) => ({ workflowId: `workflow-${i}`, everySeconds: i < due ? 60 : 86_400 }))

const ticks = Effect.fnUntraced(function* (count: number, due: number) {
  yield* TestClock.setTime(1000 * 86_400_000)
  const host = ScriptedWorkflows.make()
  host.endsAtOnce = "succeeded"
  const schedules = many(count, due)
  const { storage } = makeArrays()
  const before = heap()
  const started = yield* timed(open(storage, host, schedules))
  const { journal, close } = started.value
  const bytes = (heap() - before) / count
  const idle = yield* timed(Effect.repeat(journal.tick, { times: 9999 }))
  print(`${shown(count)} schedules: a tick with nothing due`, micros(idle.millis / 10_000))
  if (due > 0) {
    yield* TestClock.adjust(minute)
    const busy = yield* timed(journal.tick)
    print(`${shown(count)} schedules: a tick with ${shown(due)} due, for each of them`, micros(busy.millis / due))
  } else {
    print(`${shown(count)} schedules: the first start, all of it`, `${started.millis.toFixed(0)} ms`)
    print(`${shown(count)} schedules: memory of each, its entry in the log included`, `${bytes.toFixed(0)} bytes`)
  }
  yield* close
})

const longLife = Effect.fnUntraced(function* (slots: number) {
  const count = 500
  yield* TestClock.setTime(1000 * 86_400_000)
  const host = ScriptedWorkflows.make()
  host.endsAtOnce = "succeeded"
  const schedules = many(count, count)
  const { storage, entriesOf } = makeArrays()
  const first = yield* open(storage, host, schedules)
  const rounds = Math.ceil(slots / count)
  const lived = yield* timed(
    Effect.repeat(Effect.andThen(TestClock.adjust(minute), first.journal.tick), { times: rounds - 1 })
  )
  yield* first.close
  print(`${shown(rounds * count)} slots run, for each of them`, micros(lived.millis / (rounds * count)))
  print(
    `${shown(rounds * count)} slots: entries in the log of ${count} schedules`,
    String(entriesOf("schedules").length)
  )
  const again = yield* timed(open(storage, host, schedules))
  print(`${shown(rounds * count)} slots: a start`, `${again.millis.toFixed(0)} ms`)
  const total = (yield* again.value.journal.list).reduce((sum, { lastSlot }) => sum + lastSlot, 0)
  print("… and the slots it knows of", String(total))
  yield* again.value.close
})

await Effect.gen(function* () {
  for (const count of [10, 1000, 100_000]) yield* ticks(count, 0)
  for (const due of [10, 100, 1000, 10_000]) yield* ticks(100_000, due)
  yield* longLife(Number(process.argv[2] ?? 1_000_000))
}).pipe(Effect.provide(TestClock.layer()), Effect.runPromise)
table("Schedules, on a log that costs nothing but its entries", ["", "measured"], rows)
