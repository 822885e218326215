/**
 * The system that is tuned: a rules file in a Git repository. An apply is one commit, named after it.
 */
import { Context, Effect, FileSystem, Layer, Path, Schedule } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { run } from "./program.ts"
import { formatRules, parseRules, type Rule } from "./rules.ts"

/** A commit and what it changed. */
export interface Edit {
  readonly from: string
  readonly to: string
  readonly patch: string
}

export class Rulebook extends Context.Service<Rulebook>()("demo/Rulebook", {
  make: Effect.fn("Rulebook.make")(function* (directory: string) {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const file = path.join(directory, "rules.txt")

    const git = (...args: ReadonlyArray<string>) =>
      run("git", ["-C", directory, ...settings, ...args], environment(directory)).pipe(
        Effect.map((printed) => printed.trim()),
        Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, spawner)
      )

    const commit = Effect.fnUntraced(function* (message: string, rules: ReadonlyArray<Rule>) {
      yield* files.writeFileString(file, formatRules(rules))
      yield* git("add", "rules.txt")
      yield* git("commit", "--quiet", "--allow-empty", "--message", message)
    })

    const edit = Effect.fnUntraced(function* (to: string) {
      const from = yield* git("rev-parse", "--short", `${to}^`)
      return { from, to, patch: yield* git("show", "--format=", to) } satisfies Edit
    })

    yield* files.makeDirectory(directory, { recursive: true })
    yield* git("init", "--quiet")
    yield* lockGone(path.join(directory, ".git", "index.lock"))
    const isNew = yield* Effect.match(git("rev-parse", "HEAD"), { onFailure: () => true, onSuccess: () => false })
    if (isNew) yield* commit("No rules yet", [])

    return {
      /** What the agent reads. */
      file,
      version: git("rev-parse", "--short", "HEAD"),
      /** The rules of that version, in a file of their own that is whole when it is there: others may be reading it. */
      at: Effect.fnUntraced(function* (version: string) {
        const kept = path.join(directory, ".git", `rules-${version}.txt`)
        if (yield* files.exists(kept)) return kept
        const draft = yield* files.makeTempFileScoped({ directory: path.join(directory, ".git") })
        yield* files.writeFileString(draft, (yield* git("show", `${version}:rules.txt`)) + "\n")
        yield* files.rename(draft, kept)
        return kept
      }, Effect.scoped),
      /** The committed rules, whatever an edit that was cut off left in the file. */
      rules: Effect.map(git("show", "HEAD:rules.txt"), parseRules),
      /** The edit that the apply made, when it was made. */
      find: Effect.fnUntraced(function* (apply: string) {
        const commits = (yield* git("log", "--format=%h %s")).split("\n")
        const found = commits.find((line) => line.includes(` apply ${apply}: `))
        return found === undefined ? undefined : yield* edit(found.slice(0, found.indexOf(" ")))
      }),
      /** Makes these the rules, as one commit. */
      write: Effect.fnUntraced(function* (apply: string, summary: string, rules: ReadonlyArray<Rule>) {
        yield* commit(`apply ${apply}: ${summary}`, rules)
        return yield* edit(yield* git("rev-parse", "--short", "HEAD"))
      })
    }
  })
}) {
  static readonly layer = (directory: string) => Layer.effect(Rulebook, Rulebook.make(directory))
}

/** The commits are the demo's own: nobody's name, signature or hooks go into them. */
const settings = [
  "user.name=demo",
  "user.email=demo@localhost",
  "commit.gpgSign=false",
  "core.hooksPath=/dev/null"
].flatMap((setting) => ["-c", setting])

/** Started from a hook, the environment would name the repository of that hook. */
const environment = (directory: string) => ({
  GIT_DIR: `${directory}/.git`,
  GIT_WORK_TREE: directory,
  GIT_INDEX_FILE: `${directory}/.git/index`,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1"
})

/**
 * A program that was killed leaves its `git commit` behind: it may be about to end. One that takes longer than any commit
 * here was killed too, and left its lock.
 */
const lockGone = Effect.fnUntraced(function* (lock: string) {
  const files = yield* FileSystem.FileSystem
  const there = files.exists(lock)
  const left = yield* Effect.repeat(there, { while: (is) => is, schedule: Schedule.spaced("100 millis"), times: 20 })
  if (left) yield* files.remove(lock, { force: true })
})
