/**
 * A host of scheduled runs whose answers a test decides. It outlives the journal that asks it, as a real one does.
 */
import { Effect, Layer } from "effect"
import { ScheduleJournal } from "shiftboss"

type Ending = Exclude<ScheduleJournal.Outcome, "unknown" | "running">

/**
 * How it treats a request. `silent`: it fails before it does anything. `deaf`: it does what it was asked, and the answer
 * is lost. `hanging`: it never answers.
 */
export type Manner = "accepting" | "refusing" | "silent" | "deaf" | "hanging"

const lost = Effect.fail("the answer was lost")

/** A run id is the workflow, an `@` and what tells the run from others of it. */
const workflowOf = (runId: string) => runId.slice(0, runId.lastIndexOf("@"))

export class ScriptedWorkflows {
  /** How it treats requests from now on. */
  manner: Manner = "accepting"
  /** How it treats requests about some workflows instead. */
  readonly mannerOf = new Map<string, Manner>()
  /** How runs end as soon as they are started; without it they run until `end`. */
  endsAtOnce: Ending | undefined = undefined
  readonly #submitted: Array<ScheduleJournal.Firing> = []
  readonly #outcomes = new Map<string, "running" | Ending>()
  #asked = 0

  /** Every run that reached it, also one that reached it twice: it does not hide what an idempotent host would. */
  get submitted(): ReadonlyArray<ScheduleJournal.Firing> {
    return this.#submitted
  }

  /** How often it was asked anything. */
  get asked(): number {
    return this.#asked
  }

  /** How each run that it took is doing. */
  get outcomes(): ReadonlyMap<string, "running" | Ending> {
    return this.#outcomes
  }

  /** The runs that go on. */
  get running(): ReadonlyArray<string> {
    return [...this.#outcomes].flatMap(([runId, outcome]) => (outcome === "running" ? [runId] : []))
  }

  /** Ends a run, or all that go on. */
  end(ending: Ending, runIds: ReadonlyArray<string> = this.running): void {
    for (const runId of runIds) this.#outcomes.set(runId, ending)
  }

  #answer<A>(workflowId: string, answer: (manner: Manner) => A): Effect.Effect<A, string> {
    return Effect.suspend((): Effect.Effect<A, string> => {
      this.#asked++
      const manner = this.mannerOf.get(workflowId) ?? this.manner
      if (manner === "silent") return lost
      if (manner === "hanging") return Effect.never
      const given = answer(manner)
      return manner === "deaf" ? lost : Effect.succeed(given)
    })
  }

  readonly workflows = ScheduleJournal.Workflows.of({
    submit: (firing) =>
      this.#answer(firing.workflowId, (manner): ScheduleJournal.Submitted => {
        if (manner === "refusing") return { _tag: "Refused", reason: "as scripted" }
        this.#submitted.push(firing)
        if (!this.#outcomes.has(firing.runId)) this.#outcomes.set(firing.runId, this.endsAtOnce ?? "running")
        return { _tag: "Accepted" }
      }),
    outcome: (runId) =>
      this.#answer(workflowOf(runId), (): ScheduleJournal.Outcome => this.#outcomes.get(runId) ?? "unknown")
  })

  /** It as the port. */
  readonly layer = Layer.succeed(ScheduleJournal.Workflows, this.workflows)
}

/** A host that accepts every run and lets it go on. */
export const make = () => new ScriptedWorkflows()
