/**
 * The example of an agent, run as a user runs it: the program in a process of its own, twice.
 */
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Bench, git } from "./bench.ts"
import type { Step } from "./server/server.ts"

const marker = "the-module-is-written"

/** The model: it writes what it is asked for, with an underscore only when the house rules say so. */
const answer = (request: string): Step => {
  if (request.includes(marker)) return { kind: "text", text: "Done." }
  const module = request.includes("greet.mjs")
    ? "export const greet = (name) => 'Hello, ' + name + '!'"
    : `export const slug = (title) => title.toLowerCase().replaceAll(' ', '${request.includes("hello_world") ? "_" : "-"}')`
  const file = request.includes("greet.mjs") ? "greet.mjs" : "slug.mjs"
  return { kind: "shell", command: `echo "${module}" >${file} && echo ${marker}` }
}

export const loop = async (bench: Bench): Promise<void> => {
  const { agent, folder, place } = bench
  assert.ok(agent.example !== undefined)
  const work = join(folder, "work")
  mkdirSync(work)
  const server = await bench.serve(answer)
  const first = await run(agent.example.file, work, agent.example.env(place))
  assert.match(first, /slug: wrong: AssertionError.*'hello_world'/)
  assert.match(first, /'greet' │ 'shiftboss\/greet' │ 1/)
  assert.match(first, /'slug' +│ 'shiftboss\/slug' +│ 2/)
  assert.match(readFileSync(join(work, "house-rules.md"), "utf8"), /hello_world/)
  assert.match(git(join(work, "repository"), "show", "shiftboss/slug:slug.mjs"), /'_'/)
  assert.equal(git(join(work, "repository"), "worktree", "list").split("\n").length, 1, "a work tree is left")
  const asked = server.requests.length
  await run(agent.example.file, work, agent.example.env(place))
  assert.equal(server.requests.length, asked, "the second run asked again")
}

const run = (example: string, folder: string, env: NodeJS.ProcessEnv): Promise<string> =>
  new Promise((done, fail) => {
    const program = fileURLToPath(new URL(`../../${example}`, import.meta.url))
    const child = spawn(process.execPath, [program, folder], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 60_000
    })
    let printed = ""
    for (const output of [child.stdout, child.stderr]) output.on("data", (chunk) => (printed += String(chunk)))
    child.on("error", fail)
    child.on("close", (code, signal) =>
      code === 0 ? done(printed) : fail(new Error(`it ended with ${signal ?? code}:\n${printed}`))
    )
  })
