/**
 * Which processes there are, which of them belong to an attempt, and proof of who one is.
 *
 * A pid alone proves nothing: it is used again. With the time its process started, the boot of the machine and the pid
 * namespace it names one process for ever.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, readlinkSync } from "node:fs"

/** One process that is alive. */
export interface Entry {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
  /** In whatever unit the system gives: only ever compared. */
  readonly startTime: string
}

/** Who a process is. */
export interface Root {
  readonly pid: number
  readonly startTime: string
}

/** In the environment of an attempt's processes, so that those are found that have left its group and lost their parent. */
export const marker = "SHIFTBOSS_AGENT"

/** The value of the marker of an attempt. */
export const markOf = (root: Root): string => `${root.pid}-${root.startTime}`.replace(/[^\w-]/g, "-")

/** All processes that are alive. A zombie is not: it only waits to be asked how it ended. */
export const table = (): ReadonlyArray<Entry> => (process.platform === "linux" ? linux() : portable())

/** One process, or null when it is gone. */
export const entryOf = (pid: number): Entry | null =>
  process.platform === "linux" ? linuxEntry(pid) : (table().find((entry) => entry.pid === pid) ?? null)

/** Names this boot of this machine, and the pid namespace whose numbers are meant. */
export const bootId = (): string => {
  if (process.platform === "linux") {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}/${readlinkSync("/proc/self/ns/pid")}`
  }
  return execFileSync("sysctl", ["-n", "kern.bootsessionuuid"], { encoding: "utf8" }).trim()
}

/**
 * The processes of an attempt: its root, those of its session and group, all that descend from them or from `known`
 * ones, and those that carry its mark. `watched`: the root is a child that this process has not lost sight of.
 */
export const membersOf = (root: Root, known: ReadonlyMap<number, string>, watched: boolean): ReadonlyArray<Entry> => {
  const all = table()
  const leader = all.find((entry) => entry.pid === root.pid)
  // While a session or group lives its number is not given to another process. So when a stranger has the pid, the
  // session of the root is gone; and when nobody has it, only the mark tells the root's session from a stranger's,
  // unless there was no time for a stranger to come and go.
  const stranger = leader !== undefined && leader.startTime !== root.startTime
  const mark = markOf(root)
  const found = new Map<number, Entry>()
  for (const entry of all) {
    const own = entry.startTime === (entry.pid === root.pid ? root.startTime : known.get(entry.pid))
    const near = !stranger && (entry.session === root.pid || entry.group === root.pid)
    if (own || (near && (leader !== undefined || watched)) || isMarked(entry.pid, mark)) found.set(entry.pid, entry)
  }
  let before = -1
  while (found.size > before) {
    before = found.size
    for (const entry of all) if (found.has(entry.parent)) found.set(entry.pid, entry)
  }
  found.delete(process.pid)
  return [...found.values()]
}

// -----------------------------------------------------------------------------
// Internal
// -----------------------------------------------------------------------------

const linux = (): ReadonlyArray<Entry> =>
  readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (linuxEntry(Number(name)) ?? []) : []))

const linuxEntry = (pid: number): Entry | null => {
  const stat = readIfThere(`/proc/${pid}/stat`)
  if (stat === null) return null
  // The name of the program stands in brackets and may itself hold brackets and spaces (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const [state, parent, group, session] = fields
  const startTime = fields[19]
  if (startTime === undefined || state === "Z" || state === "X") return null
  return { pid, parent: Number(parent), group: Number(group), session: Number(session), startTime }
}

/** Without /proc, as on macOS: there is no session and no environment to be seen, so groups and parents must do. */
export const portable = (): ReadonlyArray<Entry> =>
  execFileSync("ps", ["-Ao", "pid=,ppid=,pgid=,stat=,lstart="], {
    encoding: "utf8",
    env: { ...process.env, LC_ALL: "C" }
  })
    .split("\n")
    .flatMap((line) => {
      const fields = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+?)\s*$/.exec(line)
      if (fields === null || fields[4]?.startsWith("Z")) return []
      const [, pid, parent, group, , startTime] = fields
      return [
        {
          pid: Number(pid),
          parent: Number(parent),
          group: Number(group),
          session: Number(group),
          startTime: startTime ?? ""
        }
      ]
    })

const isMarked = (pid: number, mark: string): boolean => {
  if (process.platform !== "linux") return false
  const environment = readIfThere(`/proc/${pid}/environ`)
  return environment !== null && `\0${environment}`.includes(`\0${marker}=${mark}\0`)
}

const goneOrClosed = ["ENOENT", "ESRCH", "EACCES", "EPERM"]

/**
 * Null when it is gone, or not ours to look at. Anything else, such as too many open files, throws: a process that could
 * not be looked at is not one that has ended.
 */
const readIfThere = (path: string): string | null => {
  try {
    return readFileSync(path, "latin1")
  } catch (error) {
    if (error instanceof Error && "code" in error && goneOrClosed.includes(String(error.code))) return null
    throw error
  }
}
