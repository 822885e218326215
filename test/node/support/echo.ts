/**
 * A small agent protocol for tests: shell scripts that print lines such as `{"type":"result","text":"done"}`.
 */
import type { AgentLauncher } from "shiftboss"
import { Failure } from "shiftboss"
import { Protocol } from "shiftboss/node"

interface State {
  readonly sessionId: string | null
  readonly result: string | null
  readonly failed: boolean
}

/** Runs the prompt as a shell script. */
export const protocol: Protocol.Protocol<State> = {
  name: "echo",
  output: "lines",
  command: ({ prompt, session }) => ({ program: "/bin/sh", arguments: ["-c", prompt, "agent", session.id] }),
  initial: () => ({ sessionId: null, result: null, failed: false }),
  read: (state, json) => {
    const id = Protocol.textAt(json, "id") ?? ""
    const text = Protocol.textAt(json, "text") ?? ""
    switch (json["type"]) {
      case "session":
        return { state: { ...state, sessionId: id }, activity: [{ _tag: "SessionSeen", id }] }
      case "say":
        return { state, activity: [{ _tag: "Text", text }] }
      case "tool":
        return { state, activity: [{ _tag: "ToolStarted", id, tool: "tool" }] }
      case "retry": {
        const failure = Failure.make("Network", text, { raw: text })
        return { state, activity: [{ _tag: "AgentRetry", failure, delayMillis: null }] }
      }
      case "bug":
        throw new Error("this protocol has a bug")
      case "result":
      case "error":
        return Protocol.quietly({ ...state, result: text, failed: json["type"] === "error" })
      default:
        return Protocol.quietly(state)
    }
  },
  terminal: (state) => state.result !== null,
  ending: (state, exit) => {
    const result: AgentLauncher.AgentResult = Protocol.known({ text: state.result ?? "", sessionId: state.sessionId })
    if (state.result === null) {
      const failure = Failure.make("Interrupted", `The script ${Protocol.exitText(exit)}`, { raw: exit.stderr })
      return Protocol.ended("echo/no-result", failure, result)
    }
    return state.failed
      ? Protocol.failed("echo/error", Failure.make("Unknown", state.result, { raw: state.result }), result)
      : Protocol.succeeded("echo/result", result)
  }
}
