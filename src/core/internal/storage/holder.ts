/**
 * Becoming the holder of a log, and judging the one that is.
 */
import { Clock, DateTime, Effect, Fiber, Option, Schema, Scope } from "effect"
import type { Lock } from "../../Storage.ts"
import { LogHeld, type StorageError } from "../../StorageError.ts"
import { guarded, type Operation, type Store } from "./store.ts"

const HolderRecord = Schema.fromJsonString(
  Schema.Struct({
    id: Schema.String,
    host: Schema.String,
    process: Schema.String,
    since: Schema.Number,
    leaseMillis: Schema.Number,
    proof: Schema.optional(Schema.Json)
  })
)
type HolderRecord = typeof HolderRecord.Type

const encodeHolder = Schema.encodeSync(HolderRecord)
const decodeHolder = Schema.decodeOption(HolderRecord)

/** A log that is held. The epoch can rise while it is being opened, see `raise`. */
export interface Hold {
  readonly id: string
  readonly holder: string
  epoch: number
}

type Judgement = "alive" | "unproven" | "proven dead" | "lease ended"

/**
 * Age never breaks the lock of a process that can be seen to live, and a lease only counts where no proof can be had.
 */
const judge = Effect.fnUntraced(function* (store: Store, lock: Lock, now: number): Effect.fn.Return<Judgement> {
  const record = decodeHolder(lock.holder)
  if (Option.isSome(record)) {
    const { id } = record.value
    // One of ours that is not live is an acquisition whose answer was lost: nobody in this process works with it.
    if (store.isOwn(id)) return store.live.has(id) ? "alive" : "proven dead"
    const alive = yield* store.alive(record.value)
    if (alive !== undefined) return alive ? "alive" : "proven dead"
  }
  return now >= leaseEnd(store, lock, record) ? "lease ended" : "unproven"
})

const leaseEnd = (store: Store, lock: Lock, record: Option.Option<HolderRecord>): number =>
  lock.renewedAt +
  Option.match(record, {
    onNone: () => store.leaseMillis,
    onSome: ({ leaseMillis }) => leaseMillis
  })

const held = (store: Store, log: string, lock: Lock, judgement: Judgement = "unproven"): LogHeld => {
  const record = decodeHolder(lock.holder)
  const { host, process, since } = Option.getOrElse(record, () => ({
    host: "an unknown host",
    process: "an unknown process",
    since: lock.renewedAt
  }))
  if (judgement === "alive") {
    return new LogHeld({
      log,
      host,
      process,
      since,
      remedy: "It is at work: stop it, or wait for it to end."
    })
  }
  const free = DateTime.formatIso(DateTime.makeUnsafe(leaseEnd(store, lock, record)))
  const byHand =
    lock.where === undefined ? "" : `, or once you have removed ${lock.where} after making sure that it is gone`
  const remedy = `Whether it still lives cannot be told from here. Unless it is heard of again, the log is free at ${free}${byHand}.`
  return new LogHeld({ log, host, process, since, remedy })
}

const tryAcquire = Effect.fnUntraced(function* (store: Store, operation: Operation, log: string, holder: string) {
  const guard = guarded(store, operation, log)
  const now = yield* Clock.currentTimeMillis
  const first = yield* guard(store.encoded.acquire(log, holder, { now }))
  if (first._tag === "Acquired") return first.epoch
  const judgement = yield* judge(store, first.lock, now)
  if (judgement === "alive" || judgement === "unproven") return yield* held(store, log, first.lock, judgement)
  const dead = { lock: first.lock, proven: judgement === "proven dead" }
  const second = yield* guard(store.encoded.acquire(log, holder, { now, dead }))
  if (second._tag === "Acquired") return second.epoch
  // Two found the same dead holder, and the other one was first.
  return yield* held(store, log, second.lock)
})

const acquire = Effect.fnUntraced(function* (store: Store, operation: Operation, log: string) {
  const identity = yield* store.identity
  const since = yield* Clock.currentTimeMillis
  const id = store.newId(identity)
  const holder = encodeHolder({ ...identity, id, since, leaseMillis: store.leaseMillis })
  store.live.add(id)
  return yield* tryAcquire(store, operation, log, holder).pipe(
    Effect.map((epoch): Hold => ({ id, holder, epoch })),
    Effect.tapCause(() => Effect.sync(() => store.live.delete(id)))
  )
})

const release = (store: Store, log: string, hold: Hold) =>
  // Only now: the epoch may have risen since this was planned.
  Effect.suspend(() => guarded(store, "release", log)(store.encoded.release(log, hold.epoch))).pipe(
    // A lock that could not be marked as released is still free to whoever finds this holder gone.
    Effect.catch((error) => Effect.logWarning(error.message)),
    Effect.ensuring(Effect.sync(() => store.live.delete(hold.id)))
  )

/**
 * Holds the log until the scope closes. The acquisition runs in a fiber of its own, because interrupting a call to the
 * store half-way would leave a lock that nobody knows of: whoever waits for it is interrupted at once, and what it still
 * brings is given back.
 *
 * `settle` runs before the lock is given up. It may wait for writes under way, without a bound: a store that hangs keeps
 * its lock, so that no successor writes beside them. Closing the scope waits for all that only as long as `closeWithin`.
 */
export const hold = Effect.fnUntraced(function* (
  store: Store,
  operation: Operation,
  log: string,
  settle: Effect.Effect<void>
): Effect.fn.Return<Hold, StorageError | LogHeld, Scope.Scope> {
  const scope = yield* Effect.scope
  const giveUp = (hold: Hold) => Effect.andThen(settle, release(store, log, hold))
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const acquiring = yield* Effect.forkDetach(acquire(store, operation, log))
      const held = yield* restore(Fiber.join(acquiring)).pipe(
        Effect.onInterrupt(() =>
          Effect.forkDetach(Effect.flatMap(Fiber.join(acquiring), (hold) => release(store, log, hold)))
        )
      )
      yield* Scope.addFinalizer(scope, within(store.closeMillis, giveUp(held)))
      return held
    })
  )
})

/** Waits for the effect at most that long; it goes on by itself. */
const within = (millis: number, effect: Effect.Effect<void>) =>
  Effect.flatMap(Effect.forkDetach(effect), (fiber) =>
    Effect.interruptible(Fiber.await(fiber)).pipe(Effect.timeoutOption(millis), Effect.asVoid)
  )

/** Renews the hold every third of its lease, until the store says that it is lost. */
export const keep = (store: Store, log: string, hold: Hold, onLost: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* Effect.sleep(store.leaseMillis / 3)
    const now = yield* Clock.currentTimeMillis
    // A renewal that failed says nothing about the hold: the next one, or the next append, will.
    return yield* Effect.catchCause(store.encoded.renew(log, hold.epoch, now), () => Effect.succeed(true))
  }).pipe(Effect.repeat({ while: (holds) => holds }), Effect.andThen(onLost))

/**
 * Trades the hold for a later one until its epoch is above this one: the records remember epochs that the locks have
 * forgotten, because somebody removed them. One at a time, since a store may rely on epochs that follow each other.
 */
export const raise = Effect.fnUntraced(function* (store: Store, log: string, hold: Hold, above: number) {
  const guard = guarded(store, "open", log)
  while (hold.epoch <= above) {
    yield* guard(store.encoded.release(log, hold.epoch))
    const now = yield* Clock.currentTimeMillis
    const taken = yield* guard(store.encoded.acquire(log, hold.holder, { now }))
    if (taken._tag === "Held") return yield* held(store, log, taken.lock)
    hold.epoch = taken.epoch
  }
})
