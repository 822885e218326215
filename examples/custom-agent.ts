/**
 * An agent of one's own: how it is called and read, in some fifty lines.
 *
 *     node examples/custom-agent.ts
 *
 * The agent here is a stand-in, a shell script that prints a line of JSON for each thing it does. `docs/custom-agent.md`
 * goes through it.
 */
import { fileURLToPath } from "node:url"
import { Console, Duration, Effect, Stream } from "effect"
import { AgentLauncher, Failure } from "shiftboss"
import { ProcessLauncher, Protocol } from "shiftboss/node"

// -----------------------------------------------------------------------------
// The protocol
// -----------------------------------------------------------------------------

interface State {
  readonly session: string | null
  readonly answer: string | null
  readonly error: { readonly code: number | null; readonly message: string } | null
}

const agent = (program: string): Protocol.Protocol<State> => ({
  name: "my-agent",
  output: "lines",
  inherit: ["MY_AGENT_KEY"],
  command: ({ prompt, session, model }) => ({
    program,
    arguments: [
      ...["--session", session.id, ...(session._tag === "Resume" ? ["--resume"] : [])],
      ...(model === undefined ? [] : ["--model", model])
    ],
    stdin: prompt
  }),
  initial: () => ({ session: null, answer: null, error: null }),
  read: (state, json) => {
    const text = Protocol.textAt(json, "text") ?? ""
    switch (json["event"]) {
      case "session":
        return { state: { ...state, session: text }, activity: [{ _tag: "SessionSeen", id: text }] }
      case "thinking":
        return { state, activity: [{ _tag: "Text", text }] }
      case "answer":
        return Protocol.quietly({ ...state, answer: text })
      case "error":
        return Protocol.quietly({ ...state, error: { code: Protocol.numberAt(json, "code"), message: text } })
      default:
        return Protocol.quietly(state)
    }
  },
  terminal: (state) => state.answer !== null || state.error !== null,
  ending: (state, exit) => {
    const result = Protocol.known({ text: state.answer ?? "", sessionId: state.session })
    if (state.answer !== null) return Protocol.succeeded("my-agent/answer", result)
    if (state.error === null) {
      const detail = `my-agent ${Protocol.exitText(exit)} without an answer`
      return Protocol.ended("my-agent/interrupted", Failure.make("Interrupted", detail, { raw: exit.stderr }), result)
    }
    const kind = state.error.code === 429 ? "RateLimited" : state.error.code === 503 ? "Capacity" : "Unknown"
    return Protocol.failed(
      "my-agent/error",
      Failure.make(kind, state.error.message, { raw: state.error.message }),
      result
    )
  }
})

// -----------------------------------------------------------------------------
// A run
// -----------------------------------------------------------------------------

const program = Effect.gen(function* () {
  const launcher = yield* AgentLauncher.AgentLauncher
  const id = yield* launcher.newSessionId
  const run = yield* launcher.launch(
    {
      turnId: "example",
      number: 1,
      prompt: "What is the answer?",
      session: { _tag: "New", id },
      limits: { silence: Duration.minutes(10), wallClock: Duration.hours(1) }
    },
    (identity) => Console.log("launched:", identity._tag)
  )
  yield* Stream.runForEach(run.activity, (activity) => Console.log("activity:", activity._tag))
  const ending = yield* run.ended
  yield* Console.log("ending:", ending._tag, ending.result?.text)
})

const standIn = fileURLToPath(new URL("stand-in-agent.sh", import.meta.url))

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(ProcessLauncher.layer(agent(standIn)))))
