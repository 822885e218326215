import * as Shiftboss from "shiftboss"
import * as Testing from "shiftboss/testing"

const failure = new Shiftboss.Failure.Failure({ kind: "Network", scope: "machine", detail: "no route", raw: null })
if (failure.kind !== "Network" || typeof Testing !== "object") {
  throw new Error("the package does not work")
}
