/**
 * Logs of a dispatcher as earlier runs leave them, and runs on them.
 */
import { createReadStream } from "node:fs"
import { open } from "node:fs/promises"
import { Effect, Layer, Stream } from "effect"
import { Case, Dispatcher, DispatcherEvent, Storage } from "shiftboss"

type Event = DispatcherEvent.DispatcherEvent

export const ids = (prefix: string, count: number): ReadonlyArray<Case.Case> =>
  Array.from({ length: count }, (_, index) => ({ id: `${prefix}-${index}` }))

/** Cases that have run and graded a step each, and wait for an apply. */
export const parked = function* (count: number): Generator<Event> {
  for (const { id } of ids("parked", count)) {
    const of = { at: 1_700_000_000_000, case: id, rev: 1 }
    yield {
      _tag: "StepEnded",
      ...of,
      step: "answer-1",
      result: { text: `an answer of usual length to ${id}`, right: false }
    }
    yield {
      _tag: "StepEnded",
      ...of,
      step: "grade-1",
      result: { right: false, missing: "a rule for this kind of case" }
    }
    yield { _tag: "CaseParked", ...of, name: "p", request: `${id}/1/p`, payload: { missing: "a rule for this" } }
  }
}

export const held = function* (count: number): Generator<Event> {
  for (const { id } of ids("held", count)) {
    yield { _tag: "CaseHeld", at: 1_700_000_000_000, case: id, rev: 1, name: "h", until: 9_000_000_000_000 }
  }
}

export const done = function* (count: number): Generator<Event> {
  for (const { id } of ids("case", count)) {
    const of = { at: 1_700_000_000_000, case: id, rev: 1 }
    yield { _tag: "StepEnded", ...of, step: "s" }
    yield { _tag: "CaseCompleted", ...of }
  }
}

/** A step that does nothing, and the case is over. */
export const noOp = (_: Case.Case, seat: Dispatcher.Seat) => Effect.as(seat.step("s", Effect.void), Case.completed())

/** Appends the events to the dispatcher's log. */
export const write = (storage: Storage.Storage["Service"], events: Iterable<Event>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const log = Storage.typed(yield* storage.open("dispatch"), {
        entry: DispatcherEvent.DispatcherEvent,
        version: DispatcherEvent.version
      })
      yield* Stream.runForEachArray(Stream.rechunk(Stream.fromIterable(events), 10_000), (some) => log.append(some))
    })
  )

/** A storage in memory of its own, with a log of these events. */
export const prepared = Effect.fnUntraced(function* (events: Iterable<Event>) {
  const encoded = Storage.makeMemory()
  const storage = Storage.fromEncoded(encoded, { shared: false, alive: () => Effect.succeed(false) })
  yield* write(storage, events)
  // Read once, so that what reading makes of the store's strings is not taken for what a run keeps.
  yield* Stream.runDrain(storage.read("dispatch"))
  return { encoded, storage }
})

export const on = <A, E>(storage: Storage.Storage["Service"], program: Effect.Effect<A, E, Dispatcher.Dispatcher>) =>
  Effect.provide(program, Dispatcher.layer.pipe(Layer.provide(Layer.succeed(Storage.Storage, storage))))

/** Milliseconds that each of so many flushes of one line takes, with nothing around it. */
export const bareFlush = async (path: string, flushes: number): Promise<number> => {
  const file = await open(path, "w")
  const from = performance.now()
  for (let n = 0; n < flushes; n++) {
    await file.write("x".repeat(120), n * 120)
    await file.datasync()
  }
  const taken = performance.now() - from
  await file.close()
  return taken / flushes
}

/** Reads the file as cheaply as Node can: chunks, cut at newlines, each line parsed. */
export const bareRead = (file: string): Promise<number> =>
  new Promise((resolve, reject) => {
    let rest = ""
    let sum = 0
    createReadStream(file, { encoding: "utf8", highWaterMark: 256 * 1024 })
      .on("data", (chunk) => {
        const lines = (rest + chunk).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) if (JSON.parse(line).seq !== undefined) sum++
      })
      .on("end", () => resolve(sum))
      .on("error", reject)
  })
