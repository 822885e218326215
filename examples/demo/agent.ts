/**
 * The agent: a program of its own that reads the rules file and answers one case. Here it is a plain parser; in its
 * place you would start a model with the rules in its prompt.
 *
 *     node agent.ts --rules FILE --pace MILLIS TEXT      prints {"utc": …, "rule": …, "because": …}
 */
import { readFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { parseArgs } from "node:util"
import { parseRules, read } from "./rules.ts"

// Whoever started it holds the other end: when that process is killed, nobody waits for an answer any more.
process.stdin.resume().on("end", () => process.exit(1))

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rules: { type: "string" }, pace: { type: "string", default: "0" } }
})
if (values.rules === undefined || positionals[0] === undefined) throw new Error("usage: agent.ts --rules FILE TEXT")

const rules = parseRules(readFileSync(values.rules, "utf8"))
await setTimeout(Number(values.pace))
process.stdout.write(JSON.stringify(read(rules, positionals[0])) + "\n", () => process.exit(0))
