/**
 * The port for the place an agent works in: what was done there, and whether it can be worked on.
 */
import { Context, Effect, Schema } from "effect"

/** The workspace could not be looked at. */
export class WorkspaceError extends Schema.TaggedError<WorkspaceError>()("WorkspaceError", {
  directory: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `could not look at the workspace ${this.directory}: ${this.reason}`
  }
}

/** What was done since a commit. */
export const Evidence = Schema.Struct({
  head: Schema.NullOr(Schema.String),
  /** One line a commit, newest last. */
  commits: Schema.Array(Schema.String),
  /** Paths of files with changes that are not committed, untracked ones included; a line each, as commits are. */
  dirty: Schema.Array(Schema.String)
})
export type Evidence = typeof Evidence.Type

/** Why the workspace cannot be written, and what to do about it. */
export interface Locked {
  readonly lock: string
  readonly fix: string
}

export interface WorkspaceShape {
  /** The commit it stands on; `null` without a repository or commit. */
  readonly head: (directory: string | undefined) => Effect.Effect<string | null, WorkspaceError>
  readonly evidence: (directory: string | undefined, since: string | null) => Effect.Effect<Evidence, WorkspaceError>
  /** `undefined` when nothing stands in the way of a write. */
  readonly locked: (directory: string | undefined) => Effect.Effect<Locked | undefined, WorkspaceError>
}

/** A reference, not a service: a host without a repository provides nothing and gets no evidence. */
export const Workspace: Context.Reference<WorkspaceShape> = Context.Reference<WorkspaceShape>(
  "shiftboss/core/Workspace",
  {
    defaultValue: () => ({
      head: () => Effect.succeed(null),
      evidence: () => Effect.succeed({ head: null, commits: [], dirty: [] }),
      locked: () => Effect.succeed(undefined)
    })
  }
)
