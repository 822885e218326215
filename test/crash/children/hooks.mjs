// Has the demo run on the sources, through modules that tell what it does: `node --import ./hooks.mjs examples/demo/main.ts`.
import { registerHooks } from "node:module"

const beside = (file) => new URL(file, import.meta.url).href
const entries = { shiftboss: beside("./core.ts"), "shiftboss/node": beside("./node.ts") }

registerHooks({
  resolve: (specifier, context, next) =>
    specifier in entries ? { url: entries[specifier], shortCircuit: true } : next(specifier, context)
})
