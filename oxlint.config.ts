import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { defineConfig, type OxlintConfig } from "oxlint"

// -----------------------------------------------------------------------------
// what the layers may not touch
// -----------------------------------------------------------------------------

const effectSource = join(dirname(fileURLToPath(import.meta.resolve("effect/package.json"))), "src")

/** Whether the header of a module of `effect` promises that it stays as it is within a major version. */
const isStable = (file: string) =>
  readFileSync(join(effectSource, file), "utf8").split("*/", 1)[0]?.includes("@stability stable") === true

/** Read from the installed `effect`, so that an upgrade cannot leave the list behind. */
const unstable = {
  name: "effect",
  importNames: readdirSync(effectSource)
    .filter((file) => file.endsWith(".ts") && file !== "index.ts" && !isStable(file))
    .map((file) => file.slice(0, -".ts".length)),
  message: "Only Effect modules marked stable: the others may change in any minor version."
}

const ambient =
  "Date performance crypto console process fetch require Buffer navigator globalThis global self window " +
  "setTimeout setInterval setImmediate clearTimeout clearInterval clearImmediate queueMicrotask " +
  "AbortController MessageChannel Worker EventTarget WeakRef FinalizationRegistry"

const runners = ["runCallback", "runFork", "runPromise", "runPromiseExit", "runSync", "runSyncExit"]

/** Holds for what runs in any JavaScript runtime and under a virtual clock. */
const ambientFree: OxlintConfig["rules"] = {
  "eslint/no-restricted-globals": [
    "error",
    ...ambient
      .split(" ")
      .map((name) => ({ name, message: "Ask a port or an Effect service: hosts and tests replace those." }))
  ],
  "eslint/no-restricted-properties": [
    "error",
    { object: "Math", property: "random", message: "Ask Effect's Random: a run is repeated from its seed." },
    ...runners
      .flatMap((property) => [property, `${property}With`])
      .map((property) => ({ object: "Effect", property, message: "Only a host runs effects: return the effect." }))
  ]
}

const forbid = (group: ReadonlyArray<string>, message: string) => ({ group: [...group], message })

/** Layers above the core see it as a host does, by its name: what it does not export stays its own. */
const aboveCore = [
  forbid(["**/core/**"], 'Import the core as "shiftboss".'),
  forbid(["shiftboss/**"], "Inside a layer import the module itself; other layers are none of its business.")
]

const platform = [
  forbid(["node:*", "fs", "path", "os", "crypto", "timers", "process", "child_process"], "Node belongs into src/node."),
  forbid(["@effect/**"], "Platform packages belong into the adapters.")
]

// -----------------------------------------------------------------------------
// the rules
// -----------------------------------------------------------------------------

export default defineConfig({
  plugins: ["eslint", "typescript", "unicorn", "oxc", "import", "vitest"],
  categories: { correctness: "error", suspicious: "error" },
  ignorePatterns: ["dist", "test/fixtures/**", "test/corpus/**"],
  rules: {
    "typescript/no-explicit-any": "error",
    "typescript/consistent-type-imports": ["error", { fixStyle: "inline-type-imports" }],
    "typescript/ban-ts-comment": [
      "error",
      { "ts-expect-error": "allow-with-description", "ts-ignore": true, "ts-nocheck": true }
    ],
    "eslint/eqeqeq": "error",
    "eslint/no-var": "error",
    "eslint/prefer-const": "error",
    // Against the grain of Effect code: `_tag`, a namespace beside its class of the same name, generators without a yield.
    "eslint/no-underscore-dangle": "off",
    "eslint/no-shadow": "off",
    "eslint/require-yield": "off",
    // Matters of taste.
    "unicorn/consistent-function-scoping": "off",
    "unicorn/no-array-sort": "off",
    "unicorn/no-array-reverse": "off",
    "unicorn/no-new-array": "off",
    "unicorn/no-useless-spread": "off",
    "unicorn/require-module-specifiers": "off"
  },
  overrides: [
    {
      files: ["src/**/*.ts"],
      rules: {
        "eslint/max-lines": ["error", 400],
        "eslint/max-lines-per-function": ["error", 70]
      }
    },
    { files: ["src/core/**/*.ts", "src/testing/**/*.ts"], rules: ambientFree },
    {
      files: ["src/core/**/*.ts"],
      rules: {
        "eslint/no-restricted-imports": [
          "error",
          {
            paths: [unstable],
            patterns: [
              ...platform,
              forbid(["shiftboss", "shiftboss/**"], "Inside the core import the module itself."),
              forbid(["effect/**"], 'Import stable modules from "effect".'),
              forbid(["**/node/**", "**/testing/**", "**/sql/**", "**/cluster/**"], "The core knows no other layer.")
            ]
          }
        ]
      }
    },
    {
      files: ["src/testing/**/*.ts"],
      rules: {
        "eslint/no-restricted-imports": [
          "error",
          {
            paths: [unstable],
            patterns: [
              ...platform,
              ...aboveCore,
              // The index of `effect/testing` loads node:assert.
              forbid(
                ["effect/**", "!effect/testing/", "!effect/testing/TestClock"],
                'Import stable modules from "effect", and the clock from "effect/testing/TestClock".'
              ),
              forbid(["**/node/**", "**/sql/**", "**/cluster/**"], "The testing kit knows the core only.")
            ]
          }
        ]
      }
    },
    {
      files: ["src/node/**/*.ts"],
      rules: {
        "eslint/no-restricted-imports": [
          "error",
          {
            patterns: [
              ...aboveCore,
              forbid(["**/testing/**", "!effect/testing"], "The testing kit stays out of production.")
            ]
          }
        ]
      }
    }
  ]
})
