/**
 * Runs turns of the real agents through the launcher and `RetryPolicy`, against a scripted server on loopback.
 *
 *     npm run conformance [-- claude codex gemini]
 *
 * Installs them into a folder outside of the package (`SHIFTBOSS_CLIS`, else one for temporary files). They run with dummy
 * keys, a home and an environment of their own, in a network namespace without any network where the machine allows it.
 * `SHIFTBOSS_CASE` runs only the cases with that in their name.
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { agents, install, type Name } from "./agents.ts"
import { withBench } from "./bench.ts"
import { casesOf } from "./cases.ts"

const isName = (name: string): name is Name => name in agents

/** A namespace of its own needs root, or a kernel that lets everybody have one. */
const namespaces = [
  ["unshare", "-n"],
  ["unshare", "-rn"]
]

/** In a new namespace it is down. */
const loopback = ["ip", "link", "set", "lo", "up"]

const inNamespace = (): number | null => {
  const found = namespaces.find(([program = "", ...flags]) => spawnSync(program, [...flags, ...loopback]).status === 0)
  if (found === undefined) return null
  const [program = "", ...flags] = found
  const script = `${loopback.join(" ")} && exec "$@"`
  const self = [process.execPath, fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  const env = { ...process.env, SHIFTBOSS_ISOLATED: "yes" }
  return spawnSync(program, [...flags, "sh", "-c", script, "sh", ...self], { stdio: "inherit", env }).status ?? 1
}

const runAll = async (names: ReadonlyArray<Name>, only: string | undefined): Promise<void> => {
  let [passed, failed] = [0, 0]
  for (const name of names) {
    for (const { name: what, run } of casesOf(agents[name])) {
      if (run === undefined || (only !== undefined && !what.includes(only))) continue
      const start = performance.now()
      try {
        await withBench(agents[name], run)
        passed++
        console.log(`ok    ${name} ${what} (${((performance.now() - start) / 1000).toFixed(1)} s)`)
      } catch (error) {
        failed++
        console.log(`FAIL  ${name} ${what}\n${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }
  console.log(`${passed} passed, ${failed} failed`)
  // A run that checked nothing has proved nothing.
  if (failed > 0 || passed === 0) process.exitCode = 1
}

const given = process.argv.slice(2)
const unknown = given.filter((name) => !isName(name))
if (unknown.length > 0) {
  console.error(`there is no agent ${unknown.join(", ")}; there are ${Object.keys(agents).join(", ")}`)
  process.exit(2)
}
const names = (given.length === 0 ? Object.keys(agents) : given).filter(isName)

if (process.env["SHIFTBOSS_ISOLATED"] === undefined) {
  install(names)
  const status = inNamespace()
  if (status === null) {
    console.log("This machine allows no network namespace: the agents could reach a network, and are only told not to.")
    await runAll(names, process.env["SHIFTBOSS_CASE"])
  } else process.exitCode = status
} else await runAll(names, process.env["SHIFTBOSS_CASE"])
