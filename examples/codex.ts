/**
 * Codex at work in a loop: a turn in a work tree for each case, graded by a command, parked or completed.
 *
 *     node examples/codex.ts ./codex-work
 *
 * It needs `codex` (`npm install -g @openai/codex`), logged in or with `CODEX_API_KEY`. Run it again after Ctrl-C or a
 * crash: it goes on.
 */
import { Codex } from "shiftboss/node"
import { main } from "./agents/loop.ts"

main({
  command: "codex",
  install: "npm install -g @openai/codex, then log in with: codex login",
  example: "examples/codex.ts",
  // Codex keeps to no budget itself. Its sandbox lets it write in its work tree only, and reach no network.
  layer: Codex.layer({ arguments: ["--sandbox", "workspace-write"] })
})
