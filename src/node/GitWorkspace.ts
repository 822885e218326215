/**
 * Workspaces that are git work trees: the evidence of what was done in them, what keeps them from being written, and a
 * work tree of its own for each case.
 *
 * It works through the `git` command, takes no lock itself, and looks at the work tree it is asked about: a lock of
 * another work tree of the same repository is none of its business.
 */
import { createHash } from "node:crypto"
import { lstat, mkdir, open, readdir, readFile, readlink, realpath, rm, writeFile } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { Effect, Layer, type Scope } from "effect"
import { Workspace } from "shiftboss"
import { git, gitText } from "./internal/git.ts"
import { entryOf } from "./internal/processTable.ts"

// -----------------------------------------------------------------------------
// workspace
// -----------------------------------------------------------------------------

/** What is listed at the most of either sort; the last line says how many more there are. */
const mostListed = 200

const here = (directory: string | undefined) => directory ?? process.cwd()

/** The git directory of the work tree, or of a bare repository; `null` where there is no repository. */
const repositoryAt = Effect.fnUntraced(function* (directory: string) {
  const { code, stdout, stderr } = yield* git(directory, "rev-parse", "--absolute-git-dir", "--is-inside-work-tree")
  if (code === 0) {
    const [, own = "", inside] = /^(.*)\n(true|false)\n$/s.exec(stdout) ?? []
    return { own, isBare: inside === "false" }
  }
  // Only this says that there is no repository. Anything else is an error to be told: a foreign owner, or a work tree whose
  // repository is gone.
  if (/not a git repository \(or any /.test(stderr)) return null
  return yield* new Workspace.WorkspaceError({ directory, reason: stderr.trim() })
})

const head = Effect.fn("GitWorkspace.head")(function* (asked: string | undefined) {
  const directory = here(asked)
  return (yield* repositoryAt(directory)) === null ? null : yield* headOf(directory)
})

const headOf = Effect.fnUntraced(function* (directory: string) {
  const { code, stdout } = yield* git(directory, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
  return code === 0 ? stdout.trim() : null
})

const evidence = Effect.fn("GitWorkspace.evidence")(function* (asked: string | undefined, since: string | null) {
  const directory = here(asked)
  const repository = yield* repositoryAt(directory)
  if (repository === null) return { head: null, commits: [], dirty: [] }
  const at = yield* headOf(directory)
  return {
    head: at,
    commits: at === null ? [] : yield* commits(directory, since),
    dirty: repository.isBare ? [] : yield* dirty(directory)
  }
})

/** One line a commit, newest last: all of them where there was none before. */
const commits = Effect.fnUntraced(function* (directory: string, since: string | null) {
  if (since !== null && !/^[0-9a-f]{4,64}$/.test(since)) {
    return yield* new Workspace.WorkspaceError({ directory, reason: `${JSON.stringify(since)} is no id of a commit` })
  }
  const range = since === null ? ["HEAD"] : [`${since}..HEAD`]
  const listed = yield* gitText(
    directory,
    "log",
    "--no-color",
    "--no-show-signature",
    "--encoding=UTF-8",
    `--max-count=${mostListed + 1}`,
    "--format=%h %s",
    ...range,
    "--"
  )
  const newestFirst = lines(listed).map(onOneLine)
  if (newestFirst.length <= mostListed) return newestFirst.toReversed()
  return ["… earlier ones are not listed", ...newestFirst.slice(0, mostListed).toReversed()]
})

/** Paths from the top of the work tree. Of a rename, where it is now. */
const dirty = Effect.fnUntraced(function* (directory: string) {
  const { code, stdout, stderr, cut } = yield* git(
    directory,
    ...["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"]
  )
  if (code !== 0)
    return yield* new Workspace.WorkspaceError({
      directory,
      reason: `git status failed with ${code}: ${stderr.trim()}`
    })
  const paths = stdout.split("\0").flatMap((entry) => (entry === "" ? [] : [quoted(entry.slice(3))]))
  if (paths.length <= mostListed) return paths
  const more = paths.length - mostListed
  return [...paths.slice(0, mostListed), cut ? `… and more than ${more - 1} more` : `… and ${more} more`]
})

// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g

/** What is listed is put into prompts, a line each: no name or subject may go on in a line of its own. */
const quoted = (path: string): string => (path.search(control) < 0 ? path : JSON.stringify(path))
const onOneLine = (subject: string): string => subject.replaceAll(control, " ")

const lines = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.split("\n"))

/** What git leaves behind while it is in the middle of something, and how a person gets out of it. */
const underWay: ReadonlyArray<readonly [name: string, fix: string]> = [
  ["rebase-merge", "A rebase is under way: finish it (git rebase --continue) or drop it (git rebase --abort)."],
  ["rebase-apply", "A rebase or am is under way: finish it (--continue) or drop it (--abort)."],
  ["MERGE_HEAD", "A merge is under way: commit it, or drop it (git merge --abort)."],
  ["CHERRY_PICK_HEAD", "A cherry-pick is under way: finish it (--continue) or drop it (git cherry-pick --abort)."],
  ["REVERT_HEAD", "A revert is under way: finish it (--continue) or drop it (git revert --abort)."]
]

const locked = Effect.fn("GitWorkspace.locked")(function* (asked: string | undefined) {
  const repository = yield* repositoryAt(here(asked))
  if (repository === null) return undefined
  const { own } = repository
  for (const name of ["index.lock", "HEAD.lock"]) {
    const lock = join(own, name)
    const since = yield* modified(lock)
    if (since === undefined) continue
    const holder = yield* heldBy(lock)
    const fix =
      holder === undefined
        ? `It is there since ${since}, and no process that this user can look at has it open; whether one of another user, ` +
          `container or host holds it is not known. See that no git works in this repository, then rm ${inShell(lock)}.`
        : `Process ${holder} has it open. Wait for it to end, or stop it; then remove the lock if it is still there.`
    return { lock, fix }
  }
  for (const [name, fix] of underWay) {
    const lock = join(own, name)
    if (yield* exists(lock)) return { lock, fix }
  }
  return undefined
})

const inShell = (path: string): string => `'${path.replaceAll("'", `'\\''`)}'`

const modified = (path: string) =>
  Effect.promise(() =>
    lstat(path).then(
      ({ mtime }) => mtime.toISOString(),
      () => undefined
    )
  )

const exists = (path: string) =>
  Effect.promise(() =>
    lstat(path).then(
      () => true,
      () => false
    )
  )

/** The process that has the file open, as far as this user may see; `undefined` where there is no /proc. */
const heldBy = (path: string): Effect.Effect<string | undefined> =>
  Effect.promise(async () => {
    for (const process of await readdir("/proc").catch((): Array<string> => [])) {
      if (!/^\d+$/.test(process)) continue
      const descriptors = `/proc/${process}/fd`
      for (const descriptor of await readdir(descriptors).catch((): Array<string> => [])) {
        const target = await readlink(join(descriptors, descriptor)).catch(() => undefined)
        if (target === path) return process
      }
    }
    return undefined
  })

/** Git work trees as workspaces. A directory without a repository has no head, no evidence and no lock. */
export const layer: Layer.Layer<never> = Layer.succeed(Workspace.Workspace, { head, evidence, locked })

// -----------------------------------------------------------------------------
// a work tree for a case
// -----------------------------------------------------------------------------

export interface WorktreeOptions {
  /** The repository, or any work tree of it. */
  readonly repository: string
  /** Where the work trees of all cases are. It must not be inside the repository's own work tree. */
  readonly under: string
  /** The name of this one; any text. */
  readonly name: string
  /** What its branch starts from. Default: `HEAD` of the repository. */
  readonly from?: string | undefined
  /** Default: `shiftboss/` and the directory's name. */
  readonly branch?: string | undefined
}

export interface Worktree {
  readonly directory: string
  readonly branch: string
}

/** Names are data: none leaves the directory, and two never share one. Upper case is encoded for file systems that fold it. */
const fileName = (name: string): string => {
  const file = name.replaceAll(/[^a-z0-9-]/gu, (char) => `_${char.codePointAt(0)?.toString(16)}_`) || "_"
  // No file system takes more than 255 bytes, and others are named after it.
  return file.length <= longestName
    ? file
    : `${file.slice(0, longestName - 40)}_${createHash("sha256").update(file).digest("hex")}`
}

const longestName = 200

const placed = ({ under, name, branch }: WorktreeOptions): Worktree => {
  const file = fileName(name)
  return { directory: join(resolve(under), file), branch: branch ?? `shiftboss/${file}` }
}

/**
 * The work tree of this name, made unless it is there: a call after a crash gives back what the earlier one made, with all
 * that was done in it. What a crash left half-made is made anew: nothing was done in it yet. A directory that was not made
 * here is an error, and left as it is.
 */
export const makeWorktree = Effect.fn("GitWorkspace.makeWorktree")(function* (options: WorktreeOptions) {
  const worktree = placed(options)
  return yield* exclusively(worktree.directory, made(options, worktree))
})

const made = Effect.fnUntraced(function* (options: WorktreeOptions, worktree: Worktree) {
  const { repository, from = "HEAD" } = options
  const { directory, branch } = worktree
  const progress = yield* progressOf(directory)
  const there = yield* exists(directory)
  if (progress === "made" && there) {
    yield* checkWorktree(directory)
    return worktree
  }
  if (progress === "none" && there) {
    const reason = "something that is no work tree of a case is in its place; move it away or choose another name"
    return yield* new Workspace.WorkspaceError({ directory, reason })
  }
  yield* noteProgress(directory, "under way")
  yield* discard(repository, directory)
  const { code } = yield* git(repository, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`)
  const where = code === 0 ? [directory, branch] : ["-b", branch, directory, from]
  yield* gitText(repository, "worktree", "add", "--quiet", ...where)
  yield* noteProgress(directory, "made")
  return worktree
})

/** Without its repository, git would take it for a part of the one around it, if there is any, and the agent with it. */
const checkWorktree = Effect.fnUntraced(function* (directory: string) {
  const top = yield* Effect.orElseSucceed(gitText(directory, "rev-parse", "--show-toplevel"), () => null)
  if (top !== null && top === (yield* attempted(directory, () => realpath(directory)))) return
  const reason = "its repository is gone, or its .git file; what is in it is left as it is. Move it away to begin anew"
  return yield* new Workspace.WorkspaceError({ directory, reason })
})

/**
 * Removes the work tree of this name with all in it that is not committed; its branch stays. Succeeds when there is none.
 */
export const removeWorktree = Effect.fn("GitWorkspace.removeWorktree")(function* (options: WorktreeOptions) {
  const { directory } = placed(options)
  if ((yield* progressOf(directory)) === "none") return
  yield* exclusively(directory, removed(options, directory))
})

const removed = Effect.fnUntraced(function* (options: WorktreeOptions, directory: string) {
  yield* noteProgress(directory, "under way")
  yield* discard(options.repository, directory)
  yield* attempted(directory, () => rm(progressFile(directory), { force: true }))
})

/** A work tree for as long as the scope is open. A crash leaves it, and the next call gives it back. */
export const worktree = (options: WorktreeOptions): Effect.Effect<Worktree, Workspace.WorkspaceError, Scope.Scope> =>
  Effect.acquireRelease(makeWorktree(options), () => Effect.ignore(removeWorktree(options)))

/**
 * While nobody else makes or removes this work tree: whoever finds one half-made takes it for the rest of a crash, and
 * removes it.
 */
const exclusively = <A>(
  directory: string,
  action: Effect.Effect<A, Workspace.WorkspaceError>
): Effect.Effect<A, Workspace.WorkspaceError> =>
  Effect.acquireUseRelease(
    claim(directory),
    () => action,
    () => Effect.promise(() => rm(claimFile(directory), { force: true }))
  )

const claim = (directory: string) =>
  Effect.flatMap(
    attempted(directory, async () => {
      await mkdir(dirname(directory), { recursive: true })
      const file = claimFile(directory)
      if (await isNew(file)) return null
      const [pid = "", startTime = ""] = (await readFile(file, "utf8").catch(() => "")).split(" ")
      if (entryOf(Number(pid))?.startTime === startTime) return pid
      // Left by a process that was killed meanwhile.
      await rm(file, { force: true })
      return (await isNew(file)) ? null : "of somebody who was quicker"
    }),
    (holder) =>
      holder === null
        ? Effect.void
        : new Workspace.WorkspaceError({ directory, reason: `process ${holder} is making or removing it right now` })
  )

/** Writes who this is into a file that was not there. */
const isNew = (file: string): Promise<boolean> =>
  writeFile(file, `${process.pid} ${entryOf(process.pid)?.startTime ?? ""}`, { flag: "wx" }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return false
      throw error
    }
  )

const claimFile = (directory: string) => join(dirname(directory), `.${basename(directory)}.claim`)

/** Beside the work tree and not in it, where the agent would see it, and commit it. */
const progressFile = (directory: string) => join(dirname(directory), `.${basename(directory)}.worktree`)

/** `none`: it is not ours. `under way`: a crash cut its making or its removal short. */
const progressOf = (directory: string) =>
  Effect.promise(() =>
    readFile(progressFile(directory), "utf8").then(
      (content) => (content === "made" ? "made" : "under way"),
      () => "none" as const
    )
  )

const noteProgress = (directory: string, progress: "made" | "under way") =>
  attempted(directory, async () => {
    await mkdir(dirname(directory), { recursive: true })
    const file = await open(progressFile(directory), "w")
    try {
      await file.writeFile(progress)
      await file.sync()
    } finally {
      await file.close()
    }
  })

const discard = Effect.fnUntraced(function* (repository: string, directory: string) {
  // Twice forced: a work tree that git has locked, as while it is being made, is removed too.
  yield* git(repository, "worktree", "remove", "--force", "--force", directory)
  yield* attempted(directory, () => rm(directory, { recursive: true, force: true }))
  // A repository that is gone knows of no work tree.
  if (yield* exists(repository)) yield* gitText(repository, "worktree", "prune")
})

const attempted = <A>(directory: string, action: () => Promise<A>): Effect.Effect<A, Workspace.WorkspaceError> =>
  Effect.tryPromise({
    try: action,
    catch: (cause) => new Workspace.WorkspaceError({ directory, reason: String(cause) })
  })
