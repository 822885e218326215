// Refuses every module of Node itself, however it is spelled, to all that is imported after this.
import { isBuiltin, registerHooks } from "node:module"

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (isBuiltin(specifier)) {
      throw new Error(`${context.parentURL} imports ${specifier}`)
    }
    return nextResolve(specifier, context)
  }
})
