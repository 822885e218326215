import project from "../../vitest.config.ts"
import { areas } from "./areas.ts"

const tests = areas[process.env["MUTATION_AREA"] ?? ""]?.tests ?? []

const area: typeof project = { ...project, test: { ...project.test, include: [...tests] } }

export default area
