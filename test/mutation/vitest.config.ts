import { defineConfig } from "vitest/config"
import project from "../../vitest.config.ts"
import { areas } from "./areas.ts"

const tests = areas[process.env["MUTATION_AREA"] ?? ""]?.tests ?? []

export default defineConfig({ ...project, test: { ...project.test, include: [...tests] } })
