import * as ShiftbossNode from "shiftboss/node"

export { ShiftbossNode }
