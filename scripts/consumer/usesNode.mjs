import { existsSync } from "node:fs"

console.log(existsSync("."))
