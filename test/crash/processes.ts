/**
 * The processes that carry a mark in their environment, as /proc knows them: children inherit it, in whatever group or
 * session they are and whoever is their parent now.
 */
import { readdirSync, readFileSync } from "node:fs"

/** The variable of the environment that holds the mark. */
export const markName = "SHIFTBOSS_CRASH"

export interface Marked {
  readonly pid: number
  readonly command: string
}

/** Gone meanwhile, or not ours to look at. */
const readIfThere = (path: string): string => {
  try {
    return readFileSync(path, "latin1")
  } catch {
    return ""
  }
}

/** A zombie is none of them: its environment is empty. */
export const marked = (mark: string): ReadonlyArray<Marked> =>
  readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    const environment = `\0${readIfThere(`/proc/${name}/environ`)}`
    if (!environment.includes(`\0${markName}=${mark}\0`)) return []
    return [{ pid: Number(name), command: readIfThere(`/proc/${name}/cmdline`).replaceAll("\0", " ").trim() }]
  })
