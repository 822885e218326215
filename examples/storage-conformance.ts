/**
 * Whether a storage of one's own keeps the contract, without a test framework. This one forgets to look at the epoch when
 * it appends, so that a holder that was taken over writes on: the suite finds it.
 *
 *     node examples/storage-conformance.ts
 */
import { Cause, Console, Effect, Exit } from "effect"
import { Storage } from "shiftboss"
import { storageConformance } from "shiftboss/testing"

const sound: Effect.Effect<Storage.Encoded> = Effect.sync(Storage.makeMemory)

const careless: Effect.Effect<Storage.Encoded> = Effect.map(sound, (store) => {
  const epochs = new Map<string, number>()
  return {
    ...store,
    acquire: (log, holder, options) =>
      Effect.tap(store.acquire(log, holder, options), (answer) =>
        Effect.sync(() => answer._tag === "Acquired" && epochs.set(log, answer.epoch))
      ),
    append: (log, _epoch, standing, lines) => store.append(log, epochs.get(log) ?? 0, standing, lines)
  }
})

const suite = Effect.fnUntraced(function* (name: string, encoded: Effect.Effect<Storage.Encoded>) {
  const cases = storageConformance({ encoded })
  let broken = 0
  for (const { name, run } of cases) {
    const exit = yield* Effect.exit(run)
    if (Exit.isSuccess(exit)) continue
    broken++
    yield* Console.log(`  broken: ${name}\n    ${String(Cause.squash(exit.cause))}`)
  }
  yield* Console.log(`${name}: ${cases.length - broken} of ${cases.length} rules kept`)
})

await Effect.runPromise(Effect.andThen(suite("a sound storage", sound), suite("a careless storage", careless)))
