// Lets a child process run the sources as they are: `node --import ./from-source.mjs program.ts`.
import { registerHooks } from "node:module"

const entry = (name) => new URL(`../../../src/${name}/index.ts`, import.meta.url).href
const entries = { shiftboss: entry("core"), "shiftboss/node": entry("node"), "shiftboss/testing": entry("testing") }

registerHooks({
  resolve: (specifier, context, next) =>
    specifier in entries ? { url: entries[specifier], shortCircuit: true } : next(specifier, context)
})
