/**
 * The Messages API, as Claude Code uses it.
 */
import { type Api, breakOff, type Exchange, json, send, type Step } from "./server.ts"

const cost = { input_tokens: 100, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

export const anthropic: Api = {
  isModelRequest: ({ method, url }) => method === "POST" && /^\/v1\/messages(\?|$)/.test(url ?? ""),
  other: (_, response) =>
    json(response, 404, { type: "error", error: { type: "not_found_error", message: "not served here" } }),
  answer: (step, exchange) => {
    const { response, body } = exchange
    if (step.kind === "error") {
      const error = { type: step.type, message: step.message, ...step.more }
      return json(response, step.status, { type: "error", error, request_id: "req" }, step.headers)
    }
    // After a broken stream it asks once more for an answer in one piece.
    if (body["stream"] !== true && step.kind === "cut") return exchange.request.socket.destroy()
    begin(exchange)
    if (step.kind === "cut") {
      block(exchange, { type: "text", text: "" }, { type: "text_delta", text: "I will start by" })
      return breakOff(exchange)
    }
    content(exchange, step)
    send(response, "message_delta", {
      type: "message_delta",
      delta: { stop_reason: step.kind === "shell" ? "tool_use" : "end_turn", stop_sequence: null },
      usage: { output_tokens: step.tokens ?? 25 }
    })
    send(response, "message_stop", { type: "message_stop" })
    response.end()
  }
}

const begin = ({ response, body, number }: Exchange): void => {
  response.writeHead(200, { "content-type": "text/event-stream", "request-id": `req_${number}` })
  send(response, "message_start", {
    type: "message_start",
    message: {
      ...{ id: `msg_${number}`, type: "message", role: "assistant", model: body["model"], content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage: { ...cost, output_tokens: 1 } }
    }
  })
}

const content = (exchange: Exchange, step: Extract<Step, { kind: "text" | "shell" }>): void => {
  if (step.kind === "text") block(exchange, { type: "text", text: "" }, { type: "text_delta", text: step.text })
  else {
    const input = JSON.stringify({ command: step.command, description: "run it" })
    const id = `toolu_${exchange.number}`
    block(
      exchange,
      { type: "tool_use", id, name: "Bash", input: {} },
      { type: "input_json_delta", partial_json: input }
    )
  }
  send(exchange.response, "content_block_stop", { type: "content_block_stop", index: 0 })
}

const block = ({ response }: Exchange, start: object, delta: object): void => {
  send(response, "content_block_start", { type: "content_block_start", index: 0, content_block: start })
  send(response, "content_block_delta", { type: "content_block_delta", index: 0, delta })
}
