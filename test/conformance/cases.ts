/**
 * What real agents must do when they are launched, fail, are killed and are resumed.
 */
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Duration, Effect, Layer, Stream } from "effect"
import { AgentLauncher } from "shiftboss"
import { membersOf } from "../../src/node/internal/processTable.ts"
import type { Agent } from "./agents.ts"
import { type Server, serve, type Step } from "./server/server.ts"

export interface Case {
  readonly name: string
  /** Absent where the agent has nothing of the kind. */
  readonly run?: ((bench: Bench) => Promise<void>) | undefined
}

// -----------------------------------------------------------------------------
// The bench
// -----------------------------------------------------------------------------

interface Given {
  readonly session?: AgentLauncher.Session
  readonly budgetUsd?: number
  readonly env?: { readonly [name: string]: string }
}

/** One agent with a home, a repository and a server of its own. */
interface Bench {
  readonly agent: Agent
  readonly repository: string
  /** Serves a script at the address that the agent knows; the one before is closed. */
  readonly serve: (...script: ReadonlyArray<Step>) => Promise<Server>
  readonly close: () => Promise<void>
  /** Launches the agent, and closes the scope of the run when the use of it is over. */
  readonly launch: <A>(
    prompt: string,
    given: Given,
    use: (run: AgentLauncher.AgentRun) => Effect.Effect<A>
  ) => Promise<A>
  /** Launches the agent and waits for its end. */
  readonly ending: (prompt: string, given?: Given) => Promise<AgentLauncher.Ending>
}

export const withBench = async (agent: Agent, use: (bench: Bench) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "conformance-"))
  const [home, repository] = [join(folder, "home"), join(folder, "repository")]
  mkdirSync(join(home, "codex"), { recursive: true })
  mkdirSync(repository)
  git(repository, "init", "-q", "-b", "main")
  git(repository, "commit", "-q", "--allow-empty", "-m", "start")
  let server = await serve(agent.api, [])
  const { port } = server
  const close = () => server.close()
  const launch: Bench["launch"] = (prompt, given, use) =>
    Effect.runPromise(
      Effect.scoped(Effect.flatMap(launched(agent, { home, url: server.url }, repository, prompt, given), use))
    )
  try {
    await use({
      ...{ agent, repository, close, launch },
      serve: async (...script) => {
        await close()
        server = await serve(agent.api, script, port)
        return server
      },
      ending: (prompt, given = {}) => launch(prompt, given, (run) => run.ended)
    })
  } finally {
    await close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

const launched = Effect.fnUntraced(function* (
  agent: Agent,
  place: { readonly home: string; readonly url: string },
  directory: string,
  prompt: string,
  given: Given
) {
  const context = yield* Layer.build(agent.layer(place, given.env))
  const launcher = Context.get(context, AgentLauncher.AgentLauncher)
  const attempt: AgentLauncher.Attempt = {
    ...{ turnId: "conformance", number: 1, prompt, directory, budgetUsd: given.budgetUsd },
    session: given.session ?? { _tag: "New", id: yield* launcher.newSessionId },
    limits: { silence: Duration.minutes(2), wallClock: Duration.minutes(3) }
  }
  return yield* Effect.orDie(launcher.launch(attempt, () => Effect.void))
})

const git = (repository: string, ...command: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "user.name=host", "-c", "user.email=host@example.com", ...command], {
    cwd: repository,
    encoding: "utf8"
  }).trim()

// -----------------------------------------------------------------------------
// Checks
// -----------------------------------------------------------------------------

const succeeds = (ending: AgentLauncher.Ending, text: string): AgentLauncher.AgentResult => {
  if (ending._tag === "Failed") assert.fail(`it failed: ${JSON.stringify(ending, null, 2)}`)
  assert.equal(ending.result.text, text)
  assert.ok(ending.result.sessionId !== null, "it told no session")
  assert.ok(ending.result.usage !== null && (ending.result.usage.output ?? 0) > 0, "it told no usage")
  return ending.result
}

const fails = (ending: AgentLauncher.Ending, ...kinds: ReadonlyArray<string>) => {
  if (ending._tag === "Succeeded") assert.fail(`it succeeded: ${JSON.stringify(ending, null, 2)}`)
  assert.ok(
    kinds.includes(ending.failure.kind),
    `it should be ${kinds.join(" or ")}: ${JSON.stringify(ending, null, 2)}`
  )
  assert.ok(!JSON.stringify(ending).includes("dummy-key-of"), "it told its key")
  return ending.failure
}

const isGone = (run: AgentLauncher.AgentRun): void => {
  if (run.identity._tag !== "Process") assert.fail("it is no process")
  assert.deepEqual(membersOf(run.identity, new Map(), false), [], "something of it is alive")
}

const sessionOf = (run: AgentLauncher.AgentRun): Effect.Effect<string> =>
  Stream.runHead(
    Stream.flatMap(run.activity, (activity) =>
      activity._tag === "SessionSeen" ? Stream.make(activity.id) : Stream.empty
    )
  ).pipe(
    Effect.flatMap((found) => (found._tag === "Some" ? Effect.succeed(found.value) : Effect.die("it told no session")))
  )

const seen = (run: AgentLauncher.AgentRun, tag: AgentLauncher.Activity["_tag"]): Effect.Effect<void> =>
  Stream.runHead(Stream.filter(run.activity, (activity) => activity._tag === tag)).pipe(
    Effect.flatMap((found) => (found._tag === "Some" ? Effect.void : Effect.die(`it told no ${tag}`)))
  )

const prompt = "Do what the scripted server says."
const text = (said: string): Step => ({ kind: "text", text: said })

// -----------------------------------------------------------------------------
// Cases
// -----------------------------------------------------------------------------

export const casesOf = (agent: Agent): ReadonlyArray<Case> => [
  { name: "succeeds with a tool call that commits", run: commits },
  { name: "takes a prompt that is no argument, new and resumed", run: longPrompt },
  { name: "meets a lack of capacity, and succeeds when launched again", run: capacity },
  { name: "meets a limit, with its reset where it is told", run: limited },
  { name: "finds no server, and succeeds when there is one", run: refused },
  { name: "has its stream cut", run: cut },
  { name: "has a wrong key", run: authentication },
  { name: "has no room for its context", run: context },
  { name: "is killed, and resumed with its conversation", run: killed },
  { name: "is stopped with its tools, and can be resumed", run: stopped },
  { name: "keeps to its budget", run: agent.hasBudget === true ? budget : undefined },
  { name: "is told that its session is lost", run: lost }
]

const commits = async (bench: Bench): Promise<void> => {
  const command = "echo hello >hello.txt && git add -A && git commit -qm 'add hello'"
  await bench.serve({ kind: "shell", command }, text("Committed."))
  succeeds(await bench.ending(prompt), "Committed.")
  assert.equal(git(bench.repository, "log", "-1", "--format=%s by %an"), "add hello by agent")
}

const longPrompt = async (bench: Bench): Promise<void> => {
  const server = await bench.serve(text("Read."))
  const { sessionId } = succeeds(await bench.ending(`${"a long story ".repeat(15_000)} xylophone`), "Read.")
  assert.ok(server.requests.at(-1)?.includes("xylophone") === true, "the end of the prompt is missing")
  const session = { _tag: "Resume", id: sessionId ?? "" } as const
  succeeds(await bench.ending("--help is what I wanted to ask for", { session }), "Read.")
  assert.ok(server.requests.at(-1)?.includes("--help is what") === true, "the second prompt is missing")
}

const capacity = async (bench: Bench): Promise<void> => {
  await bench.serve(bench.agent.errors.capacity)
  assert.equal(fails(await bench.ending(prompt), "Capacity").scope, "model")
  await bench.serve(text("Here again."))
  succeeds(await bench.ending(prompt), "Here again.")
}

const limited = async (bench: Bench): Promise<void> => {
  const resetAt = Math.ceil(Date.now() / 60_000) * 60_000 + 7_200_000
  await bench.serve(bench.agent.errors.limit(resetAt))
  const env = bench.agent.tellsReset
  const failure = fails(await bench.ending(prompt, env === undefined ? {} : { env }), "RateLimited")
  assert.equal(failure.resetAt, env === undefined ? undefined : resetAt, JSON.stringify(failure))
}

const refused = async (bench: Bench): Promise<void> => {
  await bench.close()
  if (bench.agent.waitsForNetwork === true) {
    await bench.launch(prompt, {}, (run) => Effect.andThen(seen(run, "AgentRetry"), run.stop("5 seconds")))
  } else {
    assert.equal(fails(await bench.ending(prompt), "Network").scope, "machine")
  }
  await bench.serve(text("Found it."))
  succeeds(await bench.ending(prompt), "Found it.")
}

const cut = async (bench: Bench): Promise<void> => {
  await bench.serve({ kind: "cut" })
  fails(await bench.ending(prompt), "StreamCut", "Network")
}

const authentication = async (bench: Bench): Promise<void> => {
  await bench.serve(bench.agent.errors.authentication)
  assert.equal(fails(await bench.ending(prompt), "Auth").scope, "account")
}

const context = async (bench: Bench): Promise<void> => {
  await bench.serve(bench.agent.errors.context)
  assert.equal(fails(await bench.ending(prompt), "ContextOverflow").scope, "session")
}

const killed = async (bench: Bench): Promise<void> => {
  const first = await bench.serve({ kind: "shell", command: "echo the-first-tool-ran" }, { kind: "hang" })
  const session = await bench.launch("Remember the word xylophone.", {}, (run) =>
    Effect.gen(function* () {
      const id = yield* sessionOf(run)
      while (first.requests.length < 2) yield* Effect.sleep("20 millis")
      // Agents write a session down a little later: one that is killed before that is lost.
      yield* Effect.sleep("1 second")
      if (run.identity._tag === "Process") process.kill(run.identity.pid, "SIGKILL")
      fails(yield* run.ended, "Interrupted")
      return id
    })
  )
  const server = await bench.serve(text("I remember."))
  const result = succeeds(await bench.ending("Go on.", { session: { _tag: "Resume", id: session } }), "I remember.")
  assert.equal(result.sessionId, session)
  const [request = ""] = server.requests.slice(-1)
  for (const said of ["xylophone", "the-first-tool-ran", "Go on."]) {
    assert.ok(request.includes(said), `the resumed conversation has lost ${said}`)
  }
}

const stopped = async (bench: Bench): Promise<void> => {
  await bench.serve({ kind: "shell", command: "tail -f /dev/null" }, text("Never said."))
  const session = await bench.launch("Remember the word xylophone.", {}, (run) =>
    Effect.gen(function* () {
      const id = yield* sessionOf(run)
      yield* seen(run, "ToolStarted")
      yield* Effect.sleep("500 millis")
      yield* run.stop("5 seconds")
      isGone(run)
      fails(yield* run.ended, "Stopped")
      return id
    })
  )
  const server = await bench.serve(text("Going on."))
  succeeds(await bench.ending("Go on.", { session: { _tag: "Resume", id: session } }), "Going on.")
  assert.ok(server.requests.at(-1)?.includes("xylophone") === true, "the resumed conversation has lost its beginning")
}

const budget = async (bench: Bench): Promise<void> => {
  await bench.serve({ kind: "shell", command: "echo dear", tokens: 20_000 })
  const ending = await bench.ending(prompt, { budgetUsd: 0.05 })
  fails(ending, "BudgetExhausted")
  assert.ok((ending.result?.costUsd ?? 0) >= 0.05, JSON.stringify(ending.result))
}

const lost = async (bench: Bench): Promise<void> => {
  await bench.serve(text("Never said."))
  const session = { _tag: "Resume", id: "11111111-2222-4333-8444-555555555555" } as const
  fails(await bench.ending(prompt, { session }), "SessionLost")
}
