/**
 * A step of the gate, and the rule that holds for all of them: who checked nothing has failed.
 */

/** What a step looked at. A step that finds fault throws instead. */
export interface Checked {
  readonly count: number
  /** What was counted, in the plural. */
  readonly of: string
  /** What the tool itself said and a reader wants to see. */
  readonly said?: ReadonlyArray<string>
}

export interface Step {
  readonly name: string
  readonly check: () => Promise<Checked>
}

/** Runs a step, prints its line, and answers whether it passed. */
export const perform = async (step: Step): Promise<boolean> => {
  const started = performance.now()
  const report = (mark: string, text: string) => {
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    console.log(`${mark} ${step.name.padEnd(10)} ${seconds.padStart(6)} s  ${text}`)
  }
  try {
    const checked = await step.check()
    if (checked.count === 0) {
      report("✗", `checked no ${checked.of}: a check of nothing is no check`)
      return false
    }
    report("✓", `${checked.count} ${checked.of}`)
    for (const line of checked.said ?? []) {
      console.log(`    ${line}`)
    }
    return true
  } catch (error) {
    report("✗", error instanceof Error ? error.message : String(error))
    return false
  }
}

/** The number that a tool's output names; zero when it names none. */
export const countIn = (output: string, pattern: RegExp): number => Number(pattern.exec(output)?.[1] ?? 0)
