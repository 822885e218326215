import project from "../../vitest.config.ts"
import { areas } from "./areas.ts"

const tests = areas[process.env["MUTATION_AREA"] ?? ""]?.tests ?? []

export default { ...project, test: { ...project.test, include: [...tests] } }
