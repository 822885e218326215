import * as Shiftboss from "shiftboss"
import * as Testing from "shiftboss/testing"

const failure = new Shiftboss.Failure.Failure({
  kind: "RateLimited",
  scope: "account",
  detail: "the account's limit is used up",
  raw: null
})

// A wrong literal must not type-check: else the declarations resolved to `any`.
// @ts-expect-error there is no such kind of failure
export const wrong: typeof failure.kind = "NoSuchKind"

export const kind: Shiftboss.Failure.FailureKind = failure.kind
export { Testing }
