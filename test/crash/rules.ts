/**
 * What has to be true of steps and applies, however often the demo was killed.
 */
import type { DispatcherEvent } from "shiftboss"
import type { Told } from "./told.ts"

type Event = DispatcherEvent.DispatcherEvent

export interface Marks {
  /** What is wrong with what was told, if anything. */
  readonly hear: (told: Told) => string | undefined
  /** What is wrong with the events in the log and the commits beside it. */
  readonly check: (events: ReadonlyArray<Event>, commits: ReadonlyArray<string>) => ReadonlyArray<string>
}

interface Done {
  /** Steps that the log says have ended. */
  readonly steps: Set<string>
  readonly applies: Set<string>
}

interface StepName {
  readonly case: string
  readonly rev: number
  readonly step: string
}
const stepName = ({ case: id, rev, step }: StepName) => `${step} of ${id}, rev ${rev}`

const repeated = (what: string, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  [...new Set(names.filter((name, index) => names.indexOf(name) !== index))].map((name) => `${name} ${what} twice`)

const appliesOf = (events: ReadonlyArray<Event>) => {
  const begun = events.flatMap((event) => (event._tag === "ApplyStarted" ? [event.apply] : []))
  const ended = events.flatMap((event) => (event._tag === "ApplyEnded" ? [event] : []))
  const changed = ended.filter((event) => event.applied._tag === "Changed").map((event) => event.apply)
  return { begun, ended: ended.map((event) => event.apply), changed }
}

const checkApplies = (events: ReadonlyArray<Event>, commits: ReadonlyArray<string>): ReadonlyArray<string> => {
  const { begun, ended, changed } = appliesOf(events)
  const made = commits.flatMap((subject) => /^apply (\S+):/.exec(subject)?.[1] ?? [])
  // The last one may have been made, and its end not been journaled.
  const expected = made.length > changed.length ? made.slice(0, -1) : made
  return [
    ...repeated("was begun under one name", begun),
    ...repeated("has ended", ended),
    ...repeated("was made", made),
    ...ended.filter((name) => !begun.includes(name)).map((name) => `apply ${name} ended and was never begun`),
    ...made.filter((name) => !begun.includes(name)).map((name) => `apply ${name} was made and never begun`),
    ...(expected.join() === changed.join()
      ? []
      : [`the log says that ${changed.join(", ")} changed the rules, but the commits are of ${made.join(", ")}`])
  ]
}

export const makeMarks = (): Marks => {
  const done: Done = { steps: new Set(), applies: new Set() }
  return {
    hear: (told) => {
      if (told._tag === "StepBegun" && done.steps.has(stepName(told)))
        return `${stepName(told)} had ended and ran again`
      if (told._tag === "ApplyBegun" && done.applies.has(told.apply))
        return `apply ${told.apply} had ended and was called again`
      return undefined
    },
    check: (events, commits) => {
      const steps = events.flatMap((event) => (event._tag === "StepEnded" ? [stepName(event)] : []))
      for (const step of steps) done.steps.add(step)
      for (const apply of appliesOf(events).ended) done.applies.add(apply)
      return [...repeated("ended", steps), ...checkApplies(events, commits)]
    }
  }
}
