/**
 * What `fromEncoded` knows once and every log over it shares.
 */
import { Clock, Duration, Effect, Random } from "effect"
import type { Encoded, EncodedOptions, Identity } from "../../Storage.ts"
import { StorageError } from "../../StorageError.ts"

export type Operation = StorageError["operation"]

export interface Store {
  readonly encoded: Encoded
  readonly shared: boolean
  readonly identity: Effect.Effect<Identity>
  readonly alive: NonNullable<EncodedOptions["alive"]>
  readonly remedy: NonNullable<EncodedOptions["remedy"]>
  readonly leaseMillis: number
  readonly closeMillis: number
  /** An id for a new holder, never drawn before. */
  readonly newId: (identity: Identity) => string
  /** Whether this store drew the id. */
  readonly isOwn: (id: string) => boolean
  /** The ids of the holders that this store made and that have not ended. */
  readonly live: Set<string>
}

const remedies: { readonly [operation in Operation]: string } = {
  open: "Mend that, then open it again",
  append: "Mend that, then append again: until it succeeds nothing of it counts",
  replace: "Mend that, then replace again: until it succeeds the former content stands",
  replay: "Mend that, then replay again",
  read: "Mend that, then read again",
  list: "Mend that, then list again",
  remove: "Mend that, then remove it again",
  release: "Another holder can take the log once this one is gone"
}

export const fail = (store: Pick<Store, "remedy">, operation: Operation, log: string, cause: unknown): StorageError =>
  new StorageError({
    operation,
    log,
    cause,
    remedy: `${store.remedy(operation, cause) ?? remedies[operation]}.`
  })

/** Why nothing more is written: its holder has let go of the log. */
export const scopeEnded = (): Error => new Error("the scope it was opened in has ended")

/** The types rule it out, and JSON.stringify answers undefined for it. */
export const notJson = (): TypeError =>
  new TypeError("an entry of a log has to be JSON, but one is undefined or a function")

/**
 * Makes every way an adapter can go wrong a StorageError. A defect too: a driver that throws must not end the fiber that
 * other appends wait for.
 */
export const guarded =
  (store: Store, operation: Operation, log: string) =>
  <A>(effect: Effect.Effect<A, unknown>): Effect.Effect<A, StorageError> =>
    effect.pipe(
      Effect.catchDefect((defect) => Effect.fail(defect)),
      Effect.mapError((cause) => fail(store, operation, log, cause))
    )

const positiveMillis = (option: string, input: Duration.Input): number => {
  const millis = Duration.toMillis(Duration.fromInputUnsafe(input))
  if (Number.isFinite(millis) && millis > 0) return millis
  throw new RangeError(`${option} has to be a positive, finite duration, but is ${millis} ms`)
}

/** Told apart by more than chance, for a program that seeds its random numbers draws the same ones in every store. */
let stores = 0

const defaultIdentity = Effect.gen(function* () {
  const now = yield* Clock.currentTimeMillis
  const random = yield* Random.nextIntBetween(0, 2 ** 48)
  const id = `${now.toString(36)}-${random.toString(36)}-${(++stores).toString(36)}`
  return { id, host: "an unknown host", process: "an unknown process" }
})

export const makeStore = (encoded: Encoded, options: EncodedOptions): Store => {
  let holders = 0
  let own: Identity | undefined
  const drawIdentity = Effect.tap(options.identity ?? defaultIdentity, (identity) =>
    Effect.sync(() => {
      own = identity
    })
  )
  return {
    encoded,
    shared: options.shared ?? true,
    identity: Effect.suspend(() => (own === undefined ? drawIdentity : Effect.succeed(own))),
    newId: (identity) => `${identity.id}/${++holders}`,
    isOwn: (id) => own !== undefined && id.startsWith(`${own.id}/`),
    live: new Set(),
    alive: options.alive ?? (() => Effect.succeed(undefined)),
    remedy: options.remedy ?? (() => undefined),
    leaseMillis: positiveMillis("lease", options.lease ?? "30 seconds"),
    closeMillis: positiveMillis("closeWithin", options.closeWithin ?? "5 seconds")
  }
}
