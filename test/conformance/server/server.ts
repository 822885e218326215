/**
 * A scripted API server on loopback: the n-th request for a model's answer gets the n-th step, the last step repeats.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** What happens to one request. */
export type Step =
  /** The model answers with a text. `tokens` are those of the answer. */
  | { readonly kind: "text"; readonly text: string; readonly tokens?: number }
  /** The model calls the tool that runs a shell command. */
  | { readonly kind: "shell"; readonly command: string; readonly tokens?: number }
  /** The body is what each API says for such an error, unless one is given. */
  | {
      readonly kind: "error"
      readonly status: number
      readonly type: string
      readonly message: string
      readonly headers?: { readonly [name: string]: string }
      readonly more?: object
    }
  /** The answer begins, then the connection breaks. */
  | { readonly kind: "cut" }
  /** Nothing is ever answered. */
  | { readonly kind: "hang" }

/** Steps in order, or what to do with each request by its body. */
export type Script = ReadonlyArray<Step> | ((request: string) => Step)

/** How one provider's API looks. */
export interface Api {
  readonly isModelRequest: (request: IncomingMessage) => boolean
  readonly answer: (step: Exclude<Step, { kind: "hang" }>, exchange: Exchange) => void
  readonly other: (request: IncomingMessage, response: ServerResponse) => void
}

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: { readonly [key: string]: unknown }
  readonly number: number
}

export interface Server {
  readonly url: string
  readonly port: number
  /** The bodies of all requests for a model's answer. */
  readonly requests: ReadonlyArray<string>
  readonly close: () => Promise<void>
}

/** Listens on loopback, at a free port unless one is given. */
export const serve = async (api: Api, script: Script, port = 0): Promise<Server> => {
  const requests: Array<string> = []
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("error", () => {})
    response.on("error", () => {})
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      if (!api.isModelRequest(request)) return api.other(request, response)
      const text = Buffer.concat(chunks).toString()
      const number = requests.push(text)
      const step = typeof script === "function" ? script(text) : script[Math.min(number, script.length) - 1]
      if (step === undefined || step.kind === "hang") return
      api.answer(step, { request, response, body: objectIn(text), number })
    })
  })
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
  const address = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}

/** A server-sent event. */
export const send = (response: ServerResponse, event: string | null, data: object): void => {
  response.write(`${event === null ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`)
}

/** Breaks the connection once what was written has gone out. */
export const breakOff = ({ request }: Exchange): void => {
  setTimeout(() => request.socket.destroy(), 100)
}

export const json = (response: ServerResponse, status: number, body: object, headers: object = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(JSON.stringify(body))
}

const objectIn = (text: string): { readonly [key: string]: unknown } => {
  const value: unknown = JSON.parse(text)
  return typeof value === "object" && value !== null ? { ...value } : {}
}
