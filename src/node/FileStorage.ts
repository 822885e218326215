/**
 * Logs as files: one `.ndjson` file each, readable with `jq`, in a folder of their own. `docs/storage-format.md` describes
 * the files. Linux and macOS, on a local disk.
 */
import { resolve } from "node:path"
import { Layer } from "effect"
import { Storage } from "shiftboss"
import { nodeDisk } from "./internal/storage/disk.ts"
import { makeFileStorage } from "./internal/storage/files.ts"

/** Both have the defaults of `Storage.EncodedOptions`. */
export type Options = Pick<Storage.EncodedOptions, "lease" | "closeWithin">

/**
 * Keeps logs in the directory, which is made when the first log is opened. It and its files are readable and writable
 * for their owner alone (0700, 0600), also when they were there before with wider rights; a directory shared with others,
 * such as /tmp, is refused.
 *
 * A holder that was killed is taken over at once, on proof that its process is gone. One on another machine, or in another
 * container, keeps its logs until its lease ends.
 */
export const layer = (directory: string, options: Options = {}): Layer.Layer<Storage.Storage> =>
  Layer.sync(Storage.Storage, () => makeFileStorage({ disk: nodeDisk, path: resolve(directory) }, options))
