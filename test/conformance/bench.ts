/**
 * One real agent with a home, a repository, a journal and a scripted server of its own, and hosts that run turns on them.
 */
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Clock, Effect, Layer, Schedule, Stream } from "effect"
import { AgentLauncher, RetryPolicy, Storage, type Turn } from "shiftboss"
import { FileStorage, GitWorkspace } from "shiftboss/node"
import { membersOf } from "../../src/node/internal/processTable.ts"
import type { Agent, Place } from "./agents.ts"
import { type Server, serve, type Step } from "./server/server.ts"

/** What a case changes of the turn. */
export type Asked = Partial<Turn.Turn>

type Environment = { readonly [name: string]: string }

export interface Bench {
  readonly agent: Agent
  readonly folder: string
  readonly repository: string
  readonly place: Place
  /** Serves a script at the address that the agent knows, in place of the one before. */
  readonly serve: (...script: ReadonlyArray<Step> | [(request: string) => Step]) => Promise<Server>
  readonly close: () => Promise<void>
  /** The turn "conformance", run to its end by a host of its own that goes on with what is in the journal. */
  readonly run: (asked?: Asked, meanwhile?: (host: Host) => Effect.Effect<unknown>) => Promise<Turn.TurnOutcome>
  /** The same by a host that does not wait: it ends where a wait begins. */
  readonly held: (asked?: Asked) => Promise<RetryPolicy.Held>
  /** The hosts after this live so much later. */
  readonly later: (millis: number) => void
  /** What the agents are told besides, from now on. */
  readonly tell: (env: Environment | undefined) => void
}

type EventOf<Tag extends Turn.Event["_tag"]> = Extract<Turn.Event, { readonly _tag: Tag }>

/** A host while its turn runs. */
export interface Host {
  /** The first such event in the journal, when it is there. */
  readonly journaled: <Tag extends Turn.Event["_tag"]>(tag: Tag) => Effect.Effect<EventOf<Tag>>
  /** Waits until the agent has told of such an activity. */
  readonly told: (tag: AgentLauncher.Activity["_tag"]) => Effect.Effect<void>
  readonly stop: Effect.Effect<void>
}

const isStep = (given: Step | ((request: string) => Step)): given is Step => typeof given !== "function"

export const withBench = async (agent: Agent, use: (bench: Bench) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "conformance-"))
  const [home, repository] = [join(folder, "home"), join(folder, "repository")]
  mkdirSync(join(home, "codex"), { recursive: true })
  mkdirSync(repository)
  git(repository, "init", "-q", "-b", "main")
  git(repository, "commit", "-q", "--allow-empty", "-m", "start")
  let server = await serve(agent.api, [])
  const { port } = server
  let [shift, env]: [number, Environment | undefined] = [0, undefined]
  const place = { home, url: server.url }
  const host = (asked: Asked, meanwhile: (host: Host) => Effect.Effect<unknown>) =>
    hosted({ agent: agent.layer(place, env), folder, shift }, turnOf(repository, asked), meanwhile).pipe(
      // Interrupted it stops its agent: nothing is left behind by a case that hangs.
      Effect.timeoutOrElse({
        duration: "60 seconds",
        orElse: () => Effect.die(new Error("it is not over in a minute"))
      })
    )
  try {
    await use({
      ...{ agent, folder, repository, place },
      close: () => server.close(),
      serve: async (...script) => {
        await server.close()
        const [only] = script
        server = await serve(agent.api, typeof only === "function" ? only : script.filter(isStep), port)
        return server
      },
      run: (asked = {}, meanwhile = () => Effect.void) => Effect.runPromise(host(asked, meanwhile)),
      held: async (asked = {}) => {
        const rules = { ...asked.rules, inlineWait: 0 }
        const error = await Effect.runPromise(Effect.flip(host({ ...asked, rules }, () => Effect.void)))
        return error._tag === "Held" ? error : assert.fail(error.message)
      },
      later: (millis) => void (shift += millis),
      tell: (more) => void (env = more)
    })
    leftNothing(folder)
  } finally {
    await server.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

export const git = (repository: string, ...command: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "user.name=host", "-c", "user.email=host@example.com", ...command], {
    cwd: repository,
    encoding: "utf8"
  }).trim()

/** Waits until something outside of this process has come about. */
export const until = (what: string, holds: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (!holds()) yield* Effect.sleep("20 millis")
  }).pipe(Effect.timeoutOrElse({ duration: "40 seconds", orElse: () => Effect.die(new Error(`not in time: ${what}`)) }))

/** Whether a conversation with this in it is on the agent's disk: one that is killed before that has lost it. */
export const isWrittenDown = ({ home }: Place, text: string): boolean =>
  globSync("**/*.{json,jsonl}", { cwd: home, exclude: ["**/node_modules"] })
    .concat(globSync(".*/**/*.{json,jsonl}", { cwd: home }))
    .some((file) => existsSync(join(home, file)) && readFileSync(join(home, file), "utf8").includes(text))

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const turnOf = (directory: string, asked: Asked): Turn.Turn => ({
  ...{ id: "conformance", prompt: "Do what the scripted server says.", directory, ...asked },
  rules: { grace: "5 seconds", resetBuffer: 0, resetJitter: 0, ...asked.rules }
})

/** A host of its own: it opens the journal, runs the turn, and is gone. */
const hosted = Effect.fnUntraced(function* (
  given: { readonly agent: Layer.Layer<AgentLauncher.AgentLauncher>; readonly folder: string; readonly shift: number },
  turn: Turn.Turn,
  meanwhile: (host: Host) => Effect.Effect<unknown>
) {
  const told = new Set<string>()
  const layer = RetryPolicy.layer.pipe(
    Layer.provide([Layer.provide(overheard(told), given.agent), GitWorkspace.layer]),
    Layer.provideMerge(FileStorage.layer(join(given.folder, "logs")))
  )
  const program = Effect.gen(function* () {
    const storage = yield* Storage.Storage
    const policy = yield* RetryPolicy.RetryPolicy
    const events = Stream.runCollect(storage.read("turns")).pipe(
      Effect.map((entries) => entries.map((entry) => (entry as unknown as { readonly value: Turn.Event }).value)),
      Effect.orDie
    )
    const host: Host = {
      journaled: <Tag extends Turn.Event["_tag"]>(tag: Tag) =>
        Effect.repeat(
          Effect.map(events, (all) => all.find((event): event is EventOf<Tag> => event._tag === tag)),
          { until: (event) => event !== undefined, schedule: Schedule.spaced("20 millis") }
        ).pipe(Effect.flatMap(Effect.fromNullishOr), Effect.orDie),
      told: (tag) => until(`the agent tells ${tag}`, () => told.has(tag)),
      stop: policy.stop(turn.id)
    }
    const [outcome] = yield* Effect.all([policy.run(turn), meanwhile(host)], { concurrency: 2 })
    return outcome
  })
  const clock = later(yield* Clock.Clock, given.shift)
  return yield* program.pipe(Effect.provide(layer, { local: true }), Effect.provideService(Clock.Clock, clock))
})

/** A clock that shows a later time and runs as fast. */
const later = (clock: Clock.Clock, millis: number): Clock.Clock => {
  const nanos = BigInt(millis) * 1_000_000n
  return {
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + millis,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis),
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + nanos,
    currentTimeNanos: Effect.map(clock.currentTimeNanos, (now) => now + nanos),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
}

/** The launcher, and what its agents told meanwhile. */
const overheard = (told: Set<string>) =>
  Layer.effect(
    AgentLauncher.AgentLauncher,
    Effect.map(AgentLauncher.AgentLauncher, (launcher) =>
      AgentLauncher.AgentLauncher.of({
        ...launcher,
        launch: (attempt, onIdentity) =>
          Effect.map(launcher.launch(attempt, onIdentity), (run) => ({
            ...run,
            activity: Stream.tap(run.activity, ({ _tag }) => Effect.sync(() => told.add(_tag)))
          }))
      })
    )
  )

/** No agent of the journal is alive, and none has told a key to it. */
const leftNothing = (folder: string): void => {
  const logs = globSync("**/logs/**/*.ndjson", { cwd: folder }).map((file) => readFileSync(join(folder, file), "utf8"))
  const journal = logs.join("\n")
  assert.ok(!journal.includes("dummy-key-of"), "the agent's key is in the journal")
  const identities = [...journal.matchAll(/"identity":(\{"_tag":"Process"[^}]*\})/g)]
  assert.ok(identities.length > 0, "no agent is in the journal")
  for (const [, identity = ""] of identities) {
    assert.deepEqual(membersOf(JSON.parse(identity), new Map(), false), [], "something of an agent is alive")
  }
}
