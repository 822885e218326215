/**
 * The scenario of logs alone: writers on two hosts that contend for one log, on a disk on which everything goes wrong.
 */
import assert from "node:assert/strict"
import { Effect, Exit, Stream } from "effect"
import { Storage } from "shiftboss"
import { Simulation } from "shiftboss/testing"
import { type Mutant, persistently, Room } from "./lives.ts"

export const marks = [
  "torn end cut off",
  "crash in recovery",
  "log lost in mid-run",
  "log closed by the disk",
  "append failed and a later one went through",
  "log taken over at the end of its lease",
  "log taken over on proof of death"
] as const

const log = "work/log"

/** Appends until it has had enough, or the log is lost. */
const write = Effect.fnUntraced(function* (life: number) {
  const storage = yield* Storage.Storage
  const opened = yield* storage.open(log)
  const most = (yield* Simulation.chance("brief", 0.3)) ? 2 : 12
  const writer = Effect.fnUntraced(function* (number: number) {
    let hasFailed = false
    for (let n = yield* Simulation.pick("appends", most); n >= 0; n--) {
      const size = (yield* Simulation.chance("many", 0.2)) ? 12 : 1 + (yield* Simulation.pick("group", 3))
      const entries: Array<Storage.Json> = []
      for (let entry = 0; entry < size; entry++) {
        entries.push(`${life}.${number}.${n}.${entry} ${"x".repeat(yield* Simulation.pick("length", 300))}`)
      }
      const replaces = yield* Simulation.chance("replace", 0.15)
      const exit = yield* Effect.exit(replaces ? opened.replace(entries) : opened.append(entries))
      if (Exit.isFailure(exit)) {
        hasFailed = true
        const text = String(exit.cause)
        if (text.includes("LogFenced")) return
        if (text.includes("nor copied afterwards")) return yield* Simulation.mark("log closed by the disk")
      } else if (hasFailed) yield* Simulation.mark("append failed and a later one went through")
      yield* Effect.sleep(yield* Simulation.pick("rest", 20_000))
    }
  })
  yield* Effect.all([writer(1), writer(2)], { concurrency: "unbounded", discard: true })
}, Effect.scoped)

/** One short entry, behind whatever is there. */
const one = Effect.gen(function* () {
  const storage = yield* Storage.Storage
  const opened = yield* storage.open(log)
  yield* opened.append(["short"])
}).pipe(Effect.scoped)

const read = Effect.gen(function* () {
  const storage = yield* Storage.Storage
  return yield* Stream.runCollect(storage.read(log))
})

const contender = (room: Room) =>
  Effect.gen(function* () {
    yield* Effect.sleep((yield* Simulation.pick("later", 120)) * 1000)
    const host = (yield* Simulation.chance("elsewhere", 0.5)) ? "another host" : "this host"
    const isPatient = yield* Simulation.chance("patient", 0.5)
    const life = yield* room.start(host, (id) => (isPatient ? persistently(write(id)) : write(id)))
    return yield* room.attend(life, "2 minutes")
  })

/** Logs through faults, then in quiet. */
export const logs = (mutant: Mutant = {}) =>
  Effect.gen(function* () {
    const room = new Room(yield* Simulation.Simulator, mutant)
    for (let round = 1 + (yield* Simulation.pick("rounds", 6)); round > 0; round--) {
      const contenders = (yield* Simulation.chance("contended", 0.5)) ? 2 : 1
      yield* Effect.all(
        Array.from({ length: contenders }, () => contender(room)),
        { concurrency: "unbounded" }
      )
    }
    room.calm()
    const life = yield* room.start("this host", (id) => persistently(Effect.all([one, read, write(id), read])))
    const exit = yield* room.attend(life, "3 hours")
    assert.ok(exit !== undefined && Exit.isSuccess(exit), `in quiet the log is written to: ${String(exit)}`)
    assert.deepStrictEqual(room.logs.broken, [])
  })
