/**
 * A loop with a real agent: a work tree for each case, a turn in it, a command that grades it. A case that is wrong parks
 * with what the command said; an apply adds that to the house rules, which every later prompt holds.
 *
 * `examples/claude-code.ts` and `examples/codex.ts` run it.
 */
import { execFile, spawnSync } from "node:child_process"
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { join, resolve } from "node:path"
import { Console, Effect, Layer, Schema } from "effect"
import { type AgentLauncher, Case, Dispatcher, Improvements, Shiftboss } from "shiftboss"
import { FileStorage, GitWorkspace, NodeMain } from "shiftboss/node"

// -----------------------------------------------------------------------------
// Cases
// -----------------------------------------------------------------------------

interface Task extends Case.Case {
  readonly task: string
  /** A module that is run in the work tree, and throws when the task is not done as the house wants it. */
  readonly check: string
}

const tasks: ReadonlyArray<Task> = [
  {
    id: "greet",
    task: "Write greet.mjs, which exports greet(name): it returns `Hello, Ada!` for the name Ada.",
    check: `import { greet } from "./greet.mjs"; assert.equal(greet("Ada"), "Hello, Ada!")`
  },
  {
    // That the house joins words with an underscore is not in the task: the agent learns it from the check.
    id: "slug",
    task: "Write slug.mjs, which exports slug(title): the title in lower case, its words joined for use in a URL.",
    check: `import { slug } from "./slug.mjs"; assert.equal(slug("Hello World"), "hello_world")`
  }
]

const tries = 3

// -----------------------------------------------------------------------------
// The loop
// -----------------------------------------------------------------------------

const Feedback = Schema.Struct({ said: Schema.String })

/** Where everything is: the repository, the work trees, the logs and the house rules. */
const placesIn = (folder: string) => ({
  repository: join(folder, "repository"),
  worktrees: join(folder, "worktrees"),
  logs: join(folder, "logs"),
  houseRules: join(folder, "house-rules.md")
})

type Places = ReturnType<typeof placesIn>

const workload = (places: Places, budgetUsd: number | undefined) => {
  const { repository, houseRules } = places
  return {
    cases: Effect.succeed(tasks),
    improve: {
      request: Feedback,
      apply: (batch: Improvements.Batch<typeof Feedback.Type>) => learn(houseRules, batch)
    },
    train: (one: Task, seat: Dispatcher.Seat<typeof Feedback.Type>) =>
      Effect.gen(function* () {
        // Made, and not scoped to this stay on a seat: over a park or a hold the agent's work is not committed yet.
        const worktree = { repository, under: places.worktrees, name: one.id }
        for (let n = 1; n <= tries; n++) {
          const { directory, branch } = yield* GitWorkspace.makeWorktree(worktree)
          const prompt = promptOf(one, houseRules)
          const done = yield* seat.turn(`work-${n}`, { prompt, directory, budgetUsd })
          const said = yield* seat.step(`grade-${n}`, grade(directory, one))
          if (said === "right") {
            yield* seat.step("commit", commit(directory, one))
            yield* GitWorkspace.removeWorktree(worktree)
            return Case.completed({ branch, tries: n, costUsd: done.costUsd })
          }
          yield* seat.park(`feedback-${n}`, { said: `${one.id}: ${said}` })
        }
        return Case.difficult(`wrong ${tries} times; its work is in ${join(places.worktrees, one.id)}`)
      })
  }
}

const rulesIn = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "")

const promptOf = ({ task }: Task, houseRules: string): string =>
  [
    task,
    "Work in this directory only; an earlier try may be there already. Do not commit.",
    `What the checks of this house said so far:\n${rulesIn(houseRules) || "nothing yet"}`
  ].join("\n\n")

/** Idempotent by the apply's name, which a line of its own carries: it is called again after a crash. */
const learn = (houseRules: string, batch: Improvements.Batch<typeof Feedback.Type>) =>
  Effect.sync(() => {
    const mark = `<!-- ${batch.name} -->`
    const learned = batch.requests.map(({ payload }) => `- ${payload.said}\n`).join("")
    if (!rulesIn(houseRules).includes(mark)) appendFileSync(houseRules, `${learned}${mark}\n`)
    return Improvements.changed(batch.version ?? "none", batch.name, learned)
  })

/** `right`, or what the check said. */
const grade = (directory: string, { id, check }: Task) =>
  Effect.callback<string>((resume) => {
    const script = `import assert from "node:assert/strict"; ${check}`
    const options = { cwd: directory, timeout: 60_000 }
    const child = execFile(process.execPath, ["--input-type=module", "-e", script], options, (error, _, stderr) => {
      resume(Effect.succeed(error === null ? "right" : errorIn(stderr)))
    })
    return Effect.sync(() => child.kill())
  }).pipe(Effect.tap((said) => Console.log(`${id}: ${said}`)))

/** From the error to its stack, in one line. */
const errorIn = (stderr: string): string => {
  const [said = ""] = stderr.slice(Math.max(0, stderr.search(/^\w*Error/m))).split("\n    at ")
  return `wrong: ${said.replaceAll(/\s+/g, " ").trim().slice(0, 500)}`
}

/** By the host, because an agent in a sandbox may write in its directory only, and git's own is elsewhere. */
const commit = (directory: string, { id }: Task) =>
  Effect.sync(() => {
    git(directory, "add", "-A")
    // After a crash between the commit and its record there is nothing left to commit.
    if (git(directory, "status", "--porcelain") !== "") git(directory, "commit", "-q", "-m", `Do ${id}`)
  })

// -----------------------------------------------------------------------------
// The program
// -----------------------------------------------------------------------------

export interface Agent {
  /** What is typed to run it. */
  readonly command: string
  readonly install: string
  /** The example's own file. */
  readonly example: string
  readonly layer: Layer.Layer<AgentLauncher.AgentLauncher>
  /** For each turn. */
  readonly budgetUsd?: number
}

/**
 * Runs the loop in the folder that is the program's argument. Without one it says what it would do: a run costs money, and
 * makes files.
 */
export const main = ({ command, install, example, layer, budgetUsd }: Agent): void => {
  const found = spawnSync(command, ["--version"], { encoding: "utf8" })
  const isThere = found.error === undefined && found.status === 0
  const state = isThere ? `${command} is here: ${found.stdout.trim()}` : `${command} is not here: ${install}`
  const [folder] = process.argv.slice(2)
  if (folder === undefined) {
    console.log(`usage: node ${example} <folder>`)
    console.log(
      `Has ${command} do ${tasks.length} small tasks in work trees below that folder, with your account.\n${state}`
    )
    return
  }
  if (!isThere) {
    console.error(state)
    process.exitCode = 2
    return
  }
  const places = placesIn(resolve(folder))
  prepare(places.repository)
  const engine = Shiftboss.layer.pipe(Layer.provide([layer, GitWorkspace.layer, FileStorage.layer(places.logs)]))
  Dispatcher.run(workload(places, budgetUsd), { seats: 2, applyAt: 1 }).pipe(
    Effect.tap(({ completed }) => Console.table(completed.map(({ case: id, value }) => ({ case: id, ...value })))),
    Effect.tap(({ difficult, failed }) =>
      Effect.forEach([...difficult, ...failed], ({ case: id, reason }) => {
        process.exitCode = 1
        return Console.log(`${id}: ${reason}`)
      })
    ),
    Effect.provide(engine),
    NodeMain.runMain
  )
}

const git = (directory: string, ...words: ReadonlyArray<string>): string => {
  const who = ["-c", "user.name=shiftboss example", "-c", "user.email=example@localhost"]
  const { status, stdout, stderr } = spawnSync("git", [...who, ...words], { cwd: directory, encoding: "utf8" })
  if (status !== 0) throw new Error(`git ${words.join(" ")} failed in ${directory}: ${stderr}`)
  return stdout
}

/** A repository with one commit. One that was not finished when the process died is made anew. */
const prepare = (repository: string): void => {
  if (existsSync(join(repository, ".git", "refs", "heads", "main"))) return
  rmSync(join(repository, ".git"), { recursive: true, force: true })
  mkdirSync(repository, { recursive: true })
  git(repository, "init", "-q", "-b", "main")
  git(repository, "commit", "-q", "--allow-empty", "-m", "Start")
}
