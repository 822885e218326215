/**
 * The contract of `Storage` as a list of cases. They need no test framework: each is an effect that fails when its rule is
 * broken, to be run by whatever runs tests.
 */
import { Effect, type Scope } from "effect"
import { Storage } from "shiftboss"
import type { Case } from "./internal/conformance.ts"
import { portCases } from "./internal/storage/portCases.ts"
import { seamCases } from "./internal/storage/seamCases.ts"

export type { Case } from "./internal/conformance.ts"

/** What the suite is run against. It is made anew, and empty, for each case. */
export type Subject =
  | { readonly storage: Effect.Effect<Storage.Storage["Service"], unknown, Scope.Scope> }
  /** An adapter's seam: has the cases of a storage and those of what an adapter itself has to do. */
  | { readonly encoded: Effect.Effect<Storage.Encoded, unknown, Scope.Scope> }

/**
 * The cases for a storage, or for the seam of one.
 *
 * ```ts
 * for (const { name, run } of storageConformance({ encoded: Effect.sync(() => makeMine(emptyFolder())) })) {
 *   test(name, () => Effect.runPromise(run))
 * }
 * ```
 */
export const storageConformance = (subject: Subject): ReadonlyArray<Case> => {
  if ("storage" in subject) {
    return portCases.map(({ name, run }) => ({ name, run: Effect.scoped(Effect.flatMap(subject.storage, run)) }))
  }
  const storage = Effect.map(subject.encoded, (encoded) => Storage.fromEncoded(encoded))
  return [
    ...storageConformance({ storage }),
    ...seamCases.map(({ name, run }) => ({ name, run: Effect.scoped(Effect.flatMap(subject.encoded, run)) }))
  ]
}
