/**
 * The real agents under test: where they come from, and how each is pointed at a scripted server.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
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
  /** The program that shows it in a loop, and the environment of a user who runs that. */
  readonly example?: { readonly file: string; readonly env: (place: Place) => { readonly [name: string]: string } }
}

const bin = (name: Name): string => join(cliFolder, "node_modules", ".bin", name)

/** Nothing of the machine but its programs. */
const machine = (place: Place): { readonly [name: string]: string } => ({
  ...{ HOME: place.home, PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`, TZ: "UTC" },
  // Some leave reports of errors there.
  TMPDIR: place.home,
  ...{ GIT_AUTHOR_NAME: "agent", GIT_AUTHOR_EMAIL: "agent@example.com" },
  ...{ GIT_COMMITTER_NAME: "agent", GIT_COMMITTER_EMAIL: "agent@example.com" }
})

const options = (place: Place, env: { readonly [name: string]: string }): ProcessLauncher.Options => ({
  grace: "5 seconds",
  env: { ...machine(place), ...env }
})

/** A user's environment: the agent is on the path. */
const user = (place: Place, env: { readonly [name: string]: string }): { readonly [name: string]: string } => {
  const { PATH, ...more } = machine(place)
  return { ...more, ...env, PATH: `${join(cliFolder, "node_modules", ".bin")}:${PATH}` }
}

const error = (status: number, type: string, message: string, more: object = {}): Step => ({
  kind: "error",
  ...{ status, type, message, more }
})

export const agents: { readonly [name in Name]: Agent } = {
  claude: {
    package: "@anthropic-ai/claude-code@2.1.332",
    api: anthropic,
    hasBudget: true,
    example: {
      file: "examples/claude-code.ts",
      env: (place) => user(place, { ANTHROPIC_BASE_URL: place.url, ANTHROPIC_API_KEY: "dummy-key-of-claude" })
    },
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
    example: {
      file: "examples/codex.ts",
      env: (place) => {
        const home = join(place.home, "codex")
        const provider = `name = "scripted"\nbase_url = "${place.url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"`
        const config = `model_provider = "scripted"\n[model_providers.scripted]\n${provider}\n`
        writeFileSync(join(home, "config.toml"), config)
        return user(place, { OPENAI_API_KEY: "dummy-key-of-codex", CODEX_HOME: home })
      }
    },
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

/**
 * Installs what is missing, with the registry's ordinary client: once more when that fails, because a registry may have a
 * bad moment. An agent that misbehaves is never tried again.
 */
export const install = (names: ReadonlyArray<Name>): void => {
  const missing = names.filter((name) => !isInstalled(name))
  if (missing.length === 0) return
  mkdirSync(cliFolder, { recursive: true })
  const packages = missing.map((name) => agents[name].package)
  console.log(`installing ${packages.join(", ")} into ${cliFolder}`)
  const command = ["install", "--no-fund", "--no-audit", "--prefix", cliFolder, ...packages]
  const npm = () => spawnSync("npm", command, { stdio: "inherit", timeout: 120_000 }).status === 0
  if (!npm()) {
    console.log("the install has failed; once more")
    if (!npm()) throw new Error(`${packages.join(", ")} cannot be installed: see what npm says above`)
  }
}

/** In the version that is wanted: another one may have been left by an earlier run. */
const isInstalled = (name: Name): boolean => {
  const [, program = "", version = ""] = /^(.+)@(.+)$/.exec(agents[name].package) ?? []
  const manifest = join(cliFolder, "node_modules", program, "package.json")
  if (!existsSync(bin(name)) || !existsSync(manifest)) return false
  return readFileSync(manifest, "utf8").includes(`"version": "${version}"`)
}
