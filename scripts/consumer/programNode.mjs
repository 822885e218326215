import * as ShiftbossNode from "shiftboss/node"

if (typeof ShiftbossNode !== "object") {
  throw new Error("the package does not work")
}
