/**
 * The Gemini API, as Gemini CLI uses it with a key.
 */
import { type Api, breakOff, json, send } from "./server.ts"

const chunk = (parts: ReadonlyArray<object>, more: object = {}, beside: object = {}): object => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
  ...{ modelVersion: "gemini-scripted", responseId: "resp" },
  ...beside
})

export const gemini: Api = {
  isModelRequest: ({ method, url }) => method === "POST" && /:(streamGenerateContent|generateContent)/.test(url ?? ""),
  other: ({ url }, response) =>
    url?.includes(":countTokens") === true
      ? json(response, 200, { totalTokens: 100 })
      : json(response, 404, { error: { code: 404, message: "not served here", status: "NOT_FOUND" } }),
  answer: (step, exchange) => {
    const { request, response, number } = exchange
    if (step.kind === "error") {
      const error = { code: step.status, message: step.message, status: step.type, ...step.more }
      return json(response, step.status, { error }, step.headers)
    }
    if (request.url?.includes(":streamGenerateContent") !== true) {
      return json(response, 200, chunk([{ text: "" }], { finishReason: "STOP" }))
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    if (step.kind === "cut") {
      send(response, null, chunk([{ text: "I will start by" }]))
      return breakOff(exchange)
    }
    const args = { command: step.kind === "shell" ? step.command : "", description: "run it" }
    const part =
      step.kind === "text"
        ? { text: step.text }
        : { functionCall: { id: `call_${number}`, name: "run_shell_command", args } }
    const tokens = step.tokens ?? 25
    const usageMetadata = {
      ...{ promptTokenCount: 100, candidatesTokenCount: tokens, totalTokenCount: 100 + tokens },
      cachedContentTokenCount: 20
    }
    send(response, null, chunk([part], { finishReason: "STOP" }, { usageMetadata }))
    response.end()
  }
}
