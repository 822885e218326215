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

export class ScriptedWorkflows {
  /** How it treats requests from now on. */
  manner: Manner = "accepting"
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

  /** The runs that go on. */
  get running(): ReadonlyArray<string> {
    return [...this.#outcomes].flatMap(([runId, outcome]) => (outcome === "running" ? [runId] : []))
  }

  /** Ends a run, or all that go on. */
  end(ending: Ending, runIds: ReadonlyArray<string> = this.running): void {
    for (const runId of runIds) this.#outcomes.set(runId, ending)
  }

  #answer<A>(answer: () => A): Effect.Effect<A, string> {
    return Effect.suspend((): Effect.Effect<A, string> => {
      this.#asked++
      if (this.manner === "silent") return lost
      if (this.manner === "hanging") return Effect.never
      const given = answer()
      return this.manner === "deaf" ? lost : Effect.succeed(given)
    })
  }

  readonly workflows = ScheduleJournal.Workflows.of({
    submit: (firing) =>
      this.#answer((): ScheduleJournal.Submitted => {
        if (this.manner === "refusing") return { _tag: "Refused", reason: "as scripted" }
        this.#submitted.push(firing)
        if (!this.#outcomes.has(firing.runId)) this.#outcomes.set(firing.runId, this.endsAtOnce ?? "running")
        return { _tag: "Accepted" }
      }),
    outcome: (runId) => this.#answer((): ScheduleJournal.Outcome => this.#outcomes.get(runId) ?? "unknown")
  })

  /** It as the port. */
  readonly layer = Layer.succeed(ScheduleJournal.Workflows, this.workflows)
}

/** A host that accepts every run and lets it go on. */
export const make = () => new ScriptedWorkflows()
