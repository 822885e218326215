/**
 * Runs every program in `examples/`, so that what is shown works. A program shows something and ends well;
 * files that end in `.test.ts` are run by the test runner instead.
 */
import { globSync } from "node:fs"
import { attempt, root } from "./gate/command.ts"
import { perform } from "./gate/step.ts"

const programs = globSync("examples/*.ts", { cwd: root })
  .filter((file) => !file.endsWith(".test.ts"))
  .toSorted()

if (programs.length === 0) {
  console.error("there is no program in examples/: nothing was checked")
  process.exitCode = 1
}

for (const program of programs) {
  const passed = await perform({
    name: program,
    check: async () => {
      const { ok, output, stdout } = await attempt("node", [program])
      if (!ok) {
        throw new Error(`failed:\n${output}`)
      }
      return { count: stdout.split("\n").filter((line) => line.trim() !== "").length, of: "lines printed" }
    }
  })
  if (!passed) {
    process.exitCode = 1
  }
}
