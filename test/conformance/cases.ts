/**
 * What comes of turns of real agents when they fail, are killed, stopped and resumed: each through `RetryPolicy`, over files.
 *
 * Where a turn waits, its host ends (`Held`), the server changes, and another host goes on from the journal: nothing here
 * depends on how long anything takes.
 */
import assert from "node:assert/strict"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { RetryRules, type Turn } from "shiftboss"
import { entryOf } from "../../src/node/internal/processTable.ts"
import type { Agent } from "./agents.ts"
import { type Bench, git, isWrittenDown, until } from "./bench.ts"
import { loop } from "./loop.ts"
import type { Step } from "./server/server.ts"

export interface Case {
  readonly name: string
  /** Absent where the agent has nothing of the kind. */
  readonly run?: ((bench: Bench) => Promise<void>) | undefined
}

export const casesOf = (agent: Agent): ReadonlyArray<Case> => [
  { name: "succeeds with a tool call that commits", run: commits },
  { name: "takes a prompt that is no argument, new and resumed", run: longPrompt },
  { name: "meets a lack of capacity, then succeeds", run: capacity },
  { name: "is held at a limit until its reset, then succeeds", run: limited },
  { name: "finds no server, then succeeds when there is one", run: agent.waitsForNetwork === true ? found : refused },
  { name: "has its stream cut, and is resumed", run: cut },
  { name: "has a wrong key, and ends with what to do", run: authentication },
  { name: "has no room for its context twice, and ends with what to do", run: context },
  { name: "is killed, and resumed with its conversation", run: killed },
  { name: "is stopped with its tools, and goes on when run again", run: stopped },
  { name: "keeps to its budget, and ends with what to do", run: agent.hasBudget === true ? budget : undefined },
  { name: "is told that its session is lost, and begins another", run: lost },
  { name: "works in the loop of its example", run: agent.example === undefined ? undefined : loop }
]

// -----------------------------------------------------------------------------
// Checks
// -----------------------------------------------------------------------------

const shown = (outcome: Turn.TurnOutcome): string => JSON.stringify(outcome, null, 2)

const succeeds = (outcome: Turn.TurnOutcome, text: string, ...rules: ReadonlyArray<string>): void => {
  assert.equal(outcome.status, "succeeded", shown(outcome))
  assert.equal(outcome.text, text)
  assert.deepEqual(rulesOf(outcome), ["first-attempt", ...rules], shown(outcome))
  assert.ok(outcome.sessionId !== null, "it told no session")
  assert.ok((outcome.result?.usage?.output ?? 0) > 0, "it told no usage")
}

const rulesOf = ({ attempts }: Turn.TurnOutcome): ReadonlyArray<string> => attempts.map(({ rule }) => rule)

const failureOf = (outcome: Turn.TurnOutcome, number: number) =>
  outcome.attempts[number - 1]?.failure ?? assert.fail(`attempt ${number} did not fail: ${shown(outcome)}`)

/** Ends as failed, with a fix for a person. */
const fails = (outcome: Turn.TurnOutcome, rule: string): void => {
  assert.deepEqual([outcome.status, outcome.rule], ["failed", rule], shown(outcome))
  assert.equal(outcome.fix?.endsWith("."), true, shown(outcome))
}

const remembers = (request: string | undefined, ...said: ReadonlyArray<string>): void => {
  for (const word of said) assert.ok(request?.includes(word), `the resumed conversation has lost ${word}`)
}

const text = (said: string): Step => ({ kind: "text", text: said })

// -----------------------------------------------------------------------------
// Cases
// -----------------------------------------------------------------------------

const commits = async (bench: Bench): Promise<void> => {
  const command = "echo hello >hello.txt && git add -A && git commit -qm 'add hello'"
  await bench.serve({ kind: "shell", command }, text("Committed."))
  succeeds(await bench.run(), "Committed.")
  assert.equal(git(bench.repository, "log", "-1", "--format=%s by %an"), "add hello by agent")
}

const longPrompt = async (bench: Bench): Promise<void> => {
  const server = await bench.serve(text("Read."))
  const first = await bench.run({ prompt: `${"a long story ".repeat(15_000)} xylophone` })
  succeeds(first, "Read.")
  remembers(server.requests.at(-1), "xylophone")
  const session = first.sessionId ?? ""
  succeeds(await bench.run({ id: "second", session, prompt: "--help is what I wanted to ask for" }), "Read.")
  remembers(server.requests.at(-1), "xylophone", "--help is what")
}

const capacity = async (bench: Bench): Promise<void> => {
  await bench.serve(bench.agent.errors.capacity)
  const held = await bench.held()
  assert.equal(held.rule, "capacity-retry-1")
  bench.later(60_000)
  await bench.serve(text("Here again."))
  const outcome = await bench.run()
  succeeds(outcome, "Here again.", "capacity-retry-1")
  assert.deepEqual([failureOf(outcome, 1).kind, failureOf(outcome, 1).scope], ["Capacity", "model"])
}

const limited = async (bench: Bench): Promise<void> => {
  const resetAt = Math.ceil(Date.now() / 60_000) * 60_000 + 7_200_000
  await bench.serve(bench.agent.errors.limit(resetAt))
  bench.tell(bench.agent.tellsReset)
  const held = await bench.held()
  const known = bench.agent.tellsReset !== undefined
  assert.equal(held.rule, known ? "limit-reset" : "limit-unknown-reset-1")
  if (known) assert.equal(held.until, resetAt)
  await bench.serve(text("Reset."))
  assert.equal((await bench.held()).until, held.until, "another host waits for another time")
  bench.later(held.until - Date.now() + 1000)
  const outcome = await bench.run()
  succeeds(outcome, "Reset.", held.rule)
  assert.equal(failureOf(outcome, 1).kind, "RateLimited")
}

const refused = async (bench: Bench): Promise<void> => {
  await bench.close()
  assert.equal((await bench.held()).rule, "network-retry-1")
  bench.later(600_000)
  await bench.serve(text("Found it."))
  const outcome = await bench.run()
  succeeds(outcome, "Found it.", "network-retry-1")
  assert.deepEqual([failureOf(outcome, 1).kind, failureOf(outcome, 1).scope], ["Network", "machine"])
}

/** An agent that asks until there is a server needs no second attempt. */
const found = async (bench: Bench): Promise<void> => {
  await bench.close()
  const outcome = await bench.run({}, (host) =>
    Effect.andThen(
      host.told("AgentRetry"),
      Effect.promise(() => bench.serve(text("Found it.")))
    )
  )
  succeeds(outcome, "Found it.")
}

const cut = async (bench: Bench): Promise<void> => {
  // After a first answer: not every agent keeps a session in which there was none.
  await bench.serve({ kind: "shell", command: "echo before the cut" }, { kind: "cut" })
  const waits = { StreamCut: RetryRules.resume("1 minute"), Network: RetryRules.resume("1 minute") }
  const held = await bench.held({ prompt: "Remember the word xylophone.", rules: { remedies: waits } })
  assert.match(held.rule, /^(stream-cut|network)-resume-1$/)
  bench.later(60_000)
  const server = await bench.serve(text("Going on."))
  const outcome = await bench.run({ prompt: "Remember the word xylophone.", rules: { remedies: waits } })
  succeeds(outcome, "Going on.", held.rule)
  assert.equal(outcome.attempts[0]?.sessionId, outcome.attempts[1]?.sessionId)
  remembers(server.requests.at(-1), "xylophone")
}

const authentication = async (bench: Bench): Promise<void> => {
  await bench.serve(bench.agent.errors.authentication)
  const outcome = await bench.run()
  fails(outcome, "auth-stop")
  assert.equal(failureOf(outcome, 1).scope, "account")
}

const context = async (bench: Bench): Promise<void> => {
  await bench.serve(bench.agent.errors.context)
  const outcome = await bench.run()
  assert.deepEqual(rulesOf(outcome), ["first-attempt", "context-overflow-fresh"], shown(outcome))
  assert.deepEqual([failureOf(outcome, 2).kind, failureOf(outcome, 2).scope], ["ContextOverflow", "session"])
  const [first, second] = outcome.attempts
  // Not every agent keeps a session in which there was no answer.
  assert.ok(first?.sessionId === null || first?.sessionId !== second?.sessionId, shown(outcome))
  fails(outcome, "context-overflow-fresh-used")
}

const killed = async (bench: Bench): Promise<void> => {
  // The word is in what the tool prints only: not in the call, which the agent may write down earlier.
  const command = "printf 'tool-number-%s-ran\\n' 42"
  const server = await bench.serve({ kind: "shell", command }, { kind: "hang" }, text("I remember."))
  const outcome = await bench.run({ prompt: "Remember the word xylophone." }, (host) =>
    Effect.gen(function* () {
      const { identity } = yield* host.journaled("AgentIdentified")
      yield* host.journaled("SessionSeen")
      yield* until("the agent asks again", () => server.requests.length === 2)
      yield* until("the tool's output is on disk", () => isWrittenDown(bench.place, "tool-number-42-ran"))
      if (identity._tag === "Process") process.kill(identity.pid, "SIGKILL")
    })
  )
  succeeds(outcome, "I remember.", "interrupted-resume-1")
  assert.equal(outcome.attempts[0]?.sessionId, outcome.attempts[1]?.sessionId)
  assert.equal(server.requests.length, 3)
  remembers(server.requests.at(-1), "xylophone", "tool-number-42-ran")
}

const stopped = async (bench: Bench): Promise<void> => {
  const pidFile = join(bench.repository, "tool.pid")
  const command = "echo $$ >tool.tmp && mv tool.tmp tool.pid && exec tail -f /dev/null"
  await bench.serve({ kind: "shell", command }, text("Never said."))
  const prompt = "Remember the word xylophone."
  const first = await bench.run({ prompt }, (host) =>
    Effect.gen(function* () {
      yield* host.journaled("ToolStarted")
      yield* until("the tool runs", () => existsSync(pidFile))
      yield* until("the prompt is on disk", () => isWrittenDown(bench.place, "xylophone"))
      yield* host.stop
    })
  )
  assert.equal(first.status, "stopped", shown(first))
  assert.equal(entryOf(Number(readFileSync(pidFile, "utf8"))), null, "the tool is alive")
  const server = await bench.serve(text("Going on."))
  succeeds(await bench.run({ prompt }), "Going on.", "resumed-after-stop")
  remembers(server.requests.at(-1), "xylophone")
}

const budget = async (bench: Bench): Promise<void> => {
  await bench.serve({ kind: "shell", command: "echo dear", tokens: 20_000 })
  const outcome = await bench.run({ budgetUsd: 0.05 })
  fails(outcome, "budget-exhausted-stop")
  assert.ok((outcome.totals.costUsd.total ?? 0) >= 0.05, shown(outcome))
  assert.equal(outcome.budgetVerified, true)
}

const lost = async (bench: Bench): Promise<void> => {
  await bench.serve(text("Anew."))
  const outcome = await bench.run({ session: "11111111-2222-4333-8444-555555555555" })
  succeeds(outcome, "Anew.", "session-lost-fresh")
}
