/**
 * The rule of the gate, tried on a package without a single file: a step that checked nothing has not passed.
 */
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")

/** A package with a build that builds nothing, and nothing to look at. */
const emptyPackage = (): string => {
  const folder = mkdtempSync(join(tmpdir(), "shiftboss-empty-"))
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  writeFileSync(join(folder, ".gitignore"), "node_modules\n*.json\n")
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name: "empty", version: "0.0.0", scripts: { build: "node -e 0" } })
  )
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ files: [], references: [] }))
  return folder
}

const runGate = (folder: string, ...args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: unknown; readonly said: string }>((resolve) => {
    const gate = [join(root, "scripts/gate.ts"), ...args]
    execFile(process.execPath, gate, { cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, said: stdout + stderr })
    )
  })

const complaints = {
  format: "Expected at least one target file",
  lint: "No files found to lint",
  build: "checked no modules",
  types: "The 'files' list",
  unused: "checked no files",
  tests: "No test files found",
  package: "LICENSE is missing in the package",
  bundle: 'failed to resolve import "shiftboss"'
}

describe.concurrent("the gate", () => {
  for (const [step, complaint] of Object.entries(complaints)) {
    it(`is shut when ${step} has nothing to check`, async () => {
      const folder = emptyPackage()
      try {
        const { code, said } = await runGate(folder, "--only", step)
        assert.strictEqual(code, 1, said)
        assert.include(said, complaint)
        assert.include(said, `the gate is shut: ${step}`)
      } finally {
        rmSync(folder, { recursive: true })
      }
    })
  }

  it("is shut when every step is left out", async () => {
    const { code, said } = await runGate(root, "--only", "lint", "--skip", "lint")
    assert.strictEqual(code, 1)
    assert.include(said, "every step was left out")
  })

  it("names the steps there are when asked for another", async () => {
    const { code, said } = await runGate(root, "--only", "lnit")
    assert.strictEqual(code, 2)
    assert.include(said, "no step is called lnit; there are format, lint,")
  })
})
