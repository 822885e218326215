/**
 * What the demo leaves outside of its process: its logs, its rules and the commits of its applies.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { Effect, Layer, Stream } from "effect"
import { Dispatcher, type DispatcherEvent, Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { marked } from "./processes.ts"

const logsIn = (state: string) => join(state, "log")

/** All logs by their names, read as any program reads them. */
export const readLogs = (state: string): Promise<ReadonlyMap<string, ReadonlyArray<Storage.Json>>> =>
  Effect.gen(function* () {
    const storage = yield* Storage.Storage
    const names = yield* Stream.runCollect(storage.list())
    const logs = new Map<string, ReadonlyArray<Storage.Json>>()
    for (const name of names) logs.set(name, yield* Stream.runCollect(storage.read(name)))
    return logs
  }).pipe(Effect.provide(FileStorage.layer(logsIn(state))), Effect.runPromise)

/** The events of the dispatcher, decoded and folded: this fails when its log does not replay. */
export const replay = (state: string): Promise<ReadonlyArray<DispatcherEvent.DispatcherEvent>> =>
  Effect.gen(function* () {
    const dispatcher = yield* Dispatcher.Dispatcher
    yield* dispatcher.snapshot
    return (yield* Stream.runCollect(dispatcher.history())).map((entry) => entry.event)
  }).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provide(FileStorage.layer(logsIn(state))))), Effect.runPromise)

/** Files beside the logs that nobody needs once the demo has ended: of a crash that came in the middle of something. */
export const leftovers = (state: string): ReadonlyArray<string> =>
  readdirSync(logsIn(state)).filter((name) => name.endsWith(".tmp") || name.endsWith(".lock"))

/** The subjects of the commits, oldest first; none when there is no repository yet. */
export const commits = (state: string): ReadonlyArray<string> => {
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", ["--git-dir", join(state, "rules", ".git"), ...args], { encoding: "utf8", stdio: "pipe" })
  if (!existsSync(join(state, "rules", ".git"))) return []
  try {
    git("rev-parse", "--verify", "HEAD")
  } catch {
    return []
  }
  return git("log", "--reverse", "--format=%s").trim().split("\n")
}

/** What came of it: the rules, and what each case ended with. */
export const resultOf = (state: string, events: ReadonlyArray<DispatcherEvent.DispatcherEvent>): string => {
  const ends = events.flatMap((event) => {
    if (event._tag === "CaseCompleted") return [`${event.case} ${JSON.stringify(event.value ?? null)}`]
    return event._tag === "CaseDifficult" ? [`${event.case} difficult`] : []
  })
  return [...ends.toSorted(), readFileSync(join(state, "rules", "rules.txt"), "utf8")].join("\n")
}

const longestLeaving = 10_000
const lookEvery = 20

/** How long the marked processes took to be gone, in milliseconds; those that are not gone by then, otherwise. */
export const quiet = async (mark: string): Promise<number | ReadonlyArray<string>> => {
  const since = performance.now()
  for (;;) {
    const left = marked(mark)
    const waited = performance.now() - since
    if (left.length === 0) return waited
    if (waited > longestLeaving) return left.map(({ pid, command }) => `process ${pid} was left behind: ${command}`)
    await setTimeout(lookEvery)
  }
}
