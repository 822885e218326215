import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Case, Dispatcher, Storage } from "shiftboss"
import { Advance } from "shiftboss/testing"
import { cases, changes, completedIds, history, Missing, notes } from "./support.ts"

/** Logs in memory that take in nothing with one of these tags until they are released, nor what comes after it. */
const holdingBack = Effect.gen(function* () {
  const released = yield* Deferred.make<void>()
  const memory = Storage.makeMemory()
  const isHeldBack = (line: string, tags: ReadonlyArray<string>) => tags.some((tag) => line.includes(`"_tag":"${tag}"`))
  const layerFor = (...tags: ReadonlyArray<string>) =>
    Dispatcher.layer.pipe(
      Layer.provideMerge(
        Layer.succeed(
          Storage.Storage,
          Storage.fromEncoded(
            {
              ...memory,
              append: (log, epoch, standing, lines) =>
                Effect.andThen(
                  lines.some((line) => isHeldBack(line, tags)) ? Deferred.await(released) : Effect.void,
                  memory.append(log, epoch, standing, lines)
                )
            },
            { alive: () => Effect.succeed(false) }
          )
        )
      )
    )
  return { layerFor, release: Deferred.succeed(released, undefined) }
})

describe("a case whose end is being written", () => {
  it.effect("has given its seat on, runs until it counts, and its run does not end before", () =>
    Effect.gen(function* () {
      const { layerFor, release } = yield* holdingBack
      const { log, note } = notes()
      yield* Effect.gen(function* () {
        const dispatcher = yield* Dispatcher.Dispatcher
        const run = yield* Effect.forkChild(
          Dispatcher.run(
            { cases: cases("a", "b", "c"), train: (c) => Effect.as(note(c.id), Case.completed()) },
            { seats: 1 }
          )
        )
        yield* Advance.advance("1 hour", "10 minutes")
        assert.deepStrictEqual(log, ["a", "b", "c"])
        const { counts, run: state, seats } = yield* dispatcher.snapshot
        assert.deepStrictEqual([counts.completed, state, seats], [0, "running", [null]])
        assert.deepStrictEqual(yield* dispatcher.explain("a"), { _tag: "Running", seat: 1, step: null })
        assert.isUndefined(run.pollUnsafe())
        yield* release
        assert.deepStrictEqual(completedIds(yield* Fiber.join(run)), ["a", "b", "c"])
        assert.deepStrictEqual(
          (yield* history).map(({ _tag }) => _tag),
          ["RunStarted", "CaseCompleted", "CaseCompleted", "CaseCompleted", "RunEnded"]
        )
      }).pipe(Effect.provide(layerFor("CaseCompleted")))
    })
  )

  it.effect("is taken up again after a crash, without its steps", () =>
    Effect.gen(function* () {
      const { layerFor } = yield* holdingBack
      const { log, note } = notes()
      const run = Dispatcher.run(
        {
          cases: cases("a", "b"),
          train: (c, seat) =>
            Effect.gen(function* () {
              yield* note(c.id)
              yield* seat.step("s", note(`${c.id} s`))
              return Case.completed()
            })
        },
        { seats: 1 }
      )
      // A process that is gone with its last flush: what it was writing never comes.
      yield* Effect.forkDetach(Effect.provide(run, layerFor("CaseCompleted")))
      yield* Advance.advance("1 minute")
      assert.deepStrictEqual(log, ["a", "a s", "b", "b s"])
      const summary = yield* Effect.provide(run, layerFor())
      assert.deepStrictEqual(completedIds(summary), ["a", "b"])
      assert.deepStrictEqual(log, ["a", "a s", "b", "b s", "a", "b", "b s"])
    })
  )

  it.effect("lets no more than a thousand others begin", () =>
    Effect.gen(function* () {
      const { layerFor, release } = yield* holdingBack
      let begun = 0
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases(...Array.from({ length: 3_000 }, (_, index) => `case ${index}`)),
            train: () =>
              Effect.sync(() => {
                begun++
                return Case.completed()
              })
          },
          { seats: 3 }
        ).pipe(Effect.provide(layerFor("CaseCompleted")))
      )
      yield* Advance.advance("1 minute")
      assert.isAtLeast(begun, 1_000)
      assert.isAtMost(begun, 1_030)
      yield* release
      assert.lengthOf((yield* Fiber.join(run)).completed, 3_000)
    })
  )

  it.effect("keeps its seat while it parks: its request may be the one that an apply waits for", () =>
    Effect.gen(function* () {
      const { layerFor, release } = yield* holdingBack
      const { log, note } = notes()
      const run = yield* Effect.forkChild(
        Dispatcher.run(
          {
            cases: cases("parks", "other"),
            improve: { request: Missing, apply: (batch) => Effect.andThen(note("apply"), changes(batch)) },
            train: (c, seat) =>
              Effect.gen(function* () {
                yield* note(c.id)
                if (c.id === "parks") yield* seat.park("p", { missing: "x" })
                return Case.completed()
              })
          },
          { seats: 1, applyAt: 1 }
        ).pipe(Effect.provide(layerFor("CaseParked")))
      )
      yield* Advance.advance("1 minute")
      assert.deepStrictEqual(log, ["parks"])
      yield* release
      yield* Fiber.join(run)
      assert.deepStrictEqual(log, ["parks", "apply", "parks", "other"])
    })
  )

  it.effect("does not have the selection read again before it counts", () =>
    Effect.gen(function* () {
      const { layerFor, release } = yield* holdingBack
      let read = 0
      const selection = Effect.sync(() => {
        read++
        return [{ id: "a" }, { id: "b" }]
      })
      const run = yield* Effect.forkChild(
        Dispatcher.run({ cases: selection, train: () => Effect.succeed(Case.completed()) }, { seats: 1 }).pipe(
          Effect.provide(layerFor("CaseCompleted"))
        )
      )
      yield* Advance.advance("1 minute")
      assert.strictEqual(read, 1)
      yield* release
      yield* Fiber.join(run)
      assert.strictEqual(read, 2)
    })
  )
})
