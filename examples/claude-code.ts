/**
 * Claude Code at work in a loop: a turn in a work tree for each case, graded by a command, parked or completed.
 *
 *     node examples/claude-code.ts ./claude-work
 *
 * It needs `claude` (`npm install -g @anthropic-ai/claude-code`), logged in or with `ANTHROPIC_API_KEY`. Run it again after
 * Ctrl-C or a crash: it goes on.
 */
import { ClaudeCode } from "shiftboss/node"
import { main } from "./agents/loop.ts"

main({
  command: "claude",
  install: "npm install -g @anthropic-ai/claude-code, then log in with: claude",
  example: "examples/claude-code.ts",
  budgetUsd: 0.5,
  // Nobody is there to be asked: what is not allowed here is refused. It may run any command, so use a container when
  // the tasks come from strangers.
  layer: ClaudeCode.layer({ arguments: ["--permission-mode", "acceptEdits", "--allowedTools", "Bash"] })
})
