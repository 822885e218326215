/**
 * The Responses API, as Codex uses it.
 */
import { type Api, breakOff, type Exchange, json, send, type Step } from "./server.ts"

const usage = (tokens: number): object => ({
  ...{ input_tokens: 100, input_tokens_details: { cached_tokens: 20 } },
  ...{ output_tokens: tokens, output_tokens_details: { reasoning_tokens: 5 }, total_tokens: 100 + tokens }
})

export const responses: Api = {
  isModelRequest: ({ method, url }) => method === "POST" && /\/responses(\?|$)/.test(url ?? ""),
  other: (_, response) => json(response, 404, { error: { message: "not served here", type: "invalid_request_error" } }),
  answer: (step, exchange) => {
    const { response, body, number } = exchange
    if (step.kind === "error") {
      const error = { type: step.type, code: step.type, message: step.message, ...step.more }
      return json(response, step.status, { error }, step.headers)
    }
    response.writeHead(200, { "content-type": "text/event-stream", "x-request-id": `req_${number}` })
    const whole = { id: `resp_${number}`, object: "response", status: "in_progress", model: body["model"], output: [] }
    event(exchange, "response.created", { response: whole })
    if (step.kind === "cut") {
      const item = { ...message(number, ""), content: [] }
      event(exchange, "response.output_item.added", { output_index: 0, item })
      const delta = { item_id: `msg_${number}`, output_index: 0, content_index: 0, delta: "I will start by" }
      event(exchange, "response.output_text.delta", delta)
      return breakOff(exchange)
    }
    event(exchange, "response.output_item.done", { output_index: 0, item: item(step, number) })
    const done = { ...whole, status: "completed", usage: usage(step.tokens ?? 25) }
    event(exchange, "response.completed", { response: done })
    response.end()
  }
}

const event = ({ response }: Exchange, type: string, data: object): void => send(response, type, { type, ...data })

const message = (number: number, text: string): object => ({
  ...{ type: "message", role: "assistant", id: `msg_${number}` },
  content: [{ type: "output_text", text, annotations: [] }]
})

const item = (step: Extract<Step, { kind: "text" | "shell" }>, number: number): object =>
  step.kind === "text"
    ? message(number, step.text)
    : {
        ...{ type: "function_call", id: `fc_${number}`, call_id: `call_${number}`, name: "exec_command" },
        arguments: JSON.stringify({ cmd: step.command })
      }
