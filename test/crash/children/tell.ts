/**
 * Tells the harness what happens in this process, as lines into a pipe that the harness holds: what was told outlives the
 * process, whatever becomes of its log.
 */
import { writeSync } from "node:fs"
import type { Told } from "../told.ts"

const pipe = 3

/** Returns once the line is in the pipe: what comes after it has not begun. */
export const tell = (told: Told): void => {
  const line = Buffer.from(`${JSON.stringify(told)}\n`)
  for (let at = 0; at < line.length;) at += writeSync(pipe, line, at)
}
