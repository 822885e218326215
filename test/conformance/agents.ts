/**
 * The real agents under test: where they come from, and how each is pointed at a scripted server.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { Layer } from "effect"
import type { AgentLauncher } from "shiftboss"
import { ClaudeCode, Codex, Gemini, type ProcessLauncher } from "shiftboss/node"
import { anthropic } from "./server/anthropic.ts"
import { gemini } from "./server/gemini.ts"
import { responses } from "./server/responses.ts"
import type { Api, Step } from "./server/server.ts"

/** Outside of the package: what is installed there is nobody's dependency. */
const cliFolder = process.env["SHIFTBOSS_CLIS"] ?? join(tmpdir(), "shiftboss-clis")

export type Name = "claude" | "codex" | "gemini"

/** Where the agent finds what. */
export interface Place {
  readonly home: string
  readonly url: string
}

export interface Agent {
  readonly package: string
  readonly api: Api
  readonly layer: (place: Place, env?: { readonly [name: string]: string }) => Layer.Layer<AgentLauncher.AgentLauncher>
  /** What the server says for each kind of failure. */
  readonly errors: {
    readonly capacity: Step
    readonly authentication: Step
    readonly context: Step
    readonly limit: (resetAt: number) => Step
  }
  /** It cannot make an end of a refused connection by itself. */
  readonly waitsForNetwork?: true
  readonly tellsReset?: { readonly [name: string]: string }
  readonly hasBudget?: true
}

const bin = (name: Name): string => join(cliFolder, "node_modules", ".bin", name)

/** Nothing of the machine but its programs. */
const options = (place: Place, env: { readonly [name: string]: string }): ProcessLauncher.Options => ({
  grace: "5 seconds",
  env: {
    ...{ HOME: place.home, PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`, TZ: "UTC" },
    ...{ GIT_AUTHOR_NAME: "agent", GIT_AUTHOR_EMAIL: "agent@example.com" },
    ...{ GIT_COMMITTER_NAME: "agent", GIT_COMMITTER_EMAIL: "agent@example.com" },
    ...env
  }
})

const error = (status: number, type: string, message: string, more: object = {}): Step => ({
  kind: "error",
  ...{ status, type, message, more }
})

export const agents: { readonly [name in Name]: Agent } = {
  claude: {
    package: "@anthropic-ai/claude-code@2.1.332",
    api: anthropic,
    hasBudget: true,
    // It names a reset only to one who is signed in; this token was made up.
    tellsReset: { ANTHROPIC_API_KEY: "", CLAUDE_CODE_OAUTH_TOKEN: "sk-ant-oat01-made-up-for-these-tests" },
    layer: (place, env) =>
      ClaudeCode.layer({
        command: bin("claude"),
        arguments: ["--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
        ...options(place, {
          ...{ ANTHROPIC_BASE_URL: place.url, ANTHROPIC_API_KEY: "dummy-key-of-claude", CLAUDE_CODE_MAX_RETRIES: "0" },
          ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1" },
          ...env
        })
      }),
    errors: {
      capacity: error(529, "overloaded_error", "Overloaded"),
      authentication: error(401, "authentication_error", "invalid x-api-key"),
      context: error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
      limit: (resetAt) => ({
        ...{ kind: "error", status: 429, type: "rate_limit_error", message: "You have reached your limit" },
        headers: {
          "anthropic-ratelimit-unified-status": "rejected",
          "anthropic-ratelimit-unified-reset": String(resetAt / 1000),
          "anthropic-ratelimit-unified-representative-claim": "five_hour",
          "anthropic-ratelimit-unified-5h-status": "rejected",
          "anthropic-ratelimit-unified-5h-reset": String(resetAt / 1000),
          "anthropic-ratelimit-unified-5h-utilization": "1"
        }
      })
    }
  },
  codex: {
    package: "@openai/codex@0.171.0",
    api: responses,
    waitsForNetwork: true,
    tellsReset: {},
    layer: (place, env) =>
      Codex.layer({
        command: bin("codex"),
        arguments: [
          "--dangerously-bypass-approvals-and-sandbox",
          ...["-c", "model_provider=scripted"],
          ...[
            "-c",
            `model_providers.scripted={name="scripted",base_url="${place.url}/v1",env_key="SCRIPTED_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}`
          ]
        ],
        ...options(place, { SCRIPTED_KEY: "dummy-key-of-codex", CODEX_HOME: join(place.home, "codex"), ...env })
      }),
    errors: {
      capacity: error(503, "server_is_overloaded", "The server is overloaded"),
      authentication: error(401, "invalid_api_key", "Incorrect API key provided: dummy-key-of-codex"),
      context: error(400, "context_length_exceeded", "Your input exceeds the context window of this model."),
      limit: (resetAt) => ({
        ...{ kind: "error", status: 429, type: "usage_limit_reached", message: "The usage limit has been reached" },
        more: { resets_at: resetAt / 1000, plan_type: "pro" },
        headers: {
          "x-codex-primary-used-percent": "100",
          "x-codex-primary-window-minutes": "300",
          "x-codex-primary-reset-at": String(resetAt / 1000)
        }
      })
    }
  },
  gemini: {
    package: "@google/gemini-cli@0.61.0",
    api: gemini,
    layer: (place, env) => {
      mkdirSync(join(place.home, ".gemini"), { recursive: true })
      const settings = { general: { maxAttempts: 1 }, security: { auth: { selectedType: "gemini-api-key" } } }
      writeFileSync(join(place.home, ".gemini", "settings.json"), JSON.stringify(settings))
      return Gemini.layer({
        command: bin("gemini"),
        arguments: ["--approval-mode", "yolo"],
        model: "gemini-2.5-pro",
        ...options(place, {
          ...{ GEMINI_API_KEY: "dummy-key-of-gemini", GOOGLE_GEMINI_BASE_URL: place.url },
          ...{ GEMINI_CLI_TRUST_WORKSPACE: "true", GEMINI_TELEMETRY_ENABLED: "false" },
          ...env
        })
      })
    },
    errors: {
      capacity: error(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
      authentication: error(401, "UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
      context: error(
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed."
      ),
      limit: () => error(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")
    }
  }
}

/** Installs what is missing, with the registry's ordinary client. */
export const install = (names: ReadonlyArray<Name>): void => {
  const missing = names.filter((name) => !existsSync(bin(name)))
  if (missing.length === 0) return
  mkdirSync(cliFolder, { recursive: true })
  const packages = missing.map((name) => agents[name].package)
  console.log(`installing ${packages.join(", ")} into ${cliFolder}`)
  execFileSync("npm", ["install", "--no-fund", "--no-audit", "--prefix", cliFolder, ...packages], { stdio: "inherit" })
}
