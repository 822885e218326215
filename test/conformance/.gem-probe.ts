import { serve } from "./server/server.ts"
import { gemini } from "./server/gemini.ts"
import { spawn, execSync } from "node:child_process"
import fs from "node:fs"
const home = "/tmp/brk/ghome"; fs.rmSync(home, { recursive: true, force: true }); fs.mkdirSync(home + "/.gemini", { recursive: true }); fs.mkdirSync(home + "/repo"); execSync("git init -q", { cwd: home + "/repo" })
fs.writeFileSync(home + "/.gemini/settings.json", JSON.stringify({ general: { maxAttempts: 1 }, security: { auth: { selectedType: "gemini-api-key" } } }))
const mode = process.argv[2]
const steps: any = { limit: [{ kind: "error", status: 429, type: "RESOURCE_EXHAUSTED", message: "Resource has been exhausted (e.g. check quota)." }], cut: [{ kind: "cut" }], toolerr: [{ kind: "shell", command: "echo tool-number-$((40 + 2))-ran" }, { kind: "error", status: 429, type: "RESOURCE_EXHAUSTED", message: "Resource has been exhausted (e.g. check quota)." }], toolcut: [{ kind: "shell", command: "echo tool-number-$((40 + 2))-ran" }, { kind: "cut" }], ok: [{ kind: "text", text: "fine" }], tool: [{ kind: "shell", command: "echo tool-number-$((40 + 2))-ran" }, { kind: "hang" }] }
const server = await serve(gemini, steps[mode!])
const env = { HOME: home, PATH: process.env.PATH, TMPDIR: home, GEMINI_API_KEY: "dummy", GOOGLE_GEMINI_BASE_URL: server.url, GEMINI_CLI_TRUST_WORKSPACE: "true", GEMINI_TELEMETRY_ENABLED: "false", GEMINI_CLI_NO_RELAUNCH: "true" }
const run = (args: string[], label: string) => new Promise<void>((done) => {
  const t = Date.now()
  const c = spawn("/tmp/shiftboss-clis/node_modules/.bin/gemini", [...args, "--approval-mode", "yolo", "-m", "gemini-2.5-pro"], { cwd: home + "/repo", env: env as any, stdio: ["ignore", "pipe", "pipe"] })
  c.stdout.on("data", (d) => console.log(label, "OUT", String(d).slice(0, 300))); c.stderr.on("data", (d) => console.log(label, "ERR", String(d).slice(0, 300)))
  c.on("exit", (code, sig) => { console.log(label, "exit", code, sig, Date.now() - t, "ms"); done() })
  if (mode === "tool" && label === "first") setTimeout(() => { console.log(execSync("find . -newer .gemini/settings.json -type f | grep -v /repo/.git | head -30; grep -rl 'tool-number-42' . | head", { cwd: home, encoding: "utf8" })); c.kill("SIGKILL") }, 16000)
})
const id = "11111111-2222-4333-8444-555555555555"
await run(["-o", "stream-json", "--session-id", id, "-p", "remember xylophone"], "first")
console.log(execSync("find . -path ./repo/.git -prune -o -type f -print | head -30; for f in $(find . -name '*.json*' -path '*chats*'); do echo \"== $f\"; head -c 1500 $f; done", { cwd: home, encoding: "utf8" }))
await run(["-o", "stream-json", "--resume", id, "-p", "go on"], "second")
await server.close(); process.exit(0)
