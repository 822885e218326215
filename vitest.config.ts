import { defineConfig } from "vitest/config"

const source = (entry: string) => new URL(`./src/${entry}/index.ts`, import.meta.url).pathname

export default defineConfig({
  resolve: {
    alias: [
      { find: /^shiftboss$/, replacement: source("core") },
      { find: /^shiftboss\/node$/, replacement: source("node") },
      { find: /^shiftboss\/testing$/, replacement: source("testing") }
    ]
  },
  test: { include: ["test/**/*.test.ts", "examples/**/*.test.ts"], testTimeout: 30_000 }
})
