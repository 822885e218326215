/**
 * What has to be true of steps and applies, however often the demo was killed.
 */
import { Schema } from "effect"
import { DispatcherEvent } from "shiftboss"
import type { StepName, Told } from "./told.ts"

type Event = DispatcherEvent.DispatcherEvent

export interface Marks {
  /** What is wrong with what was told, if anything. */
  readonly hear: (told: Told) => string | undefined
  /** What is wrong with the events in the log and the commits beside it. */
  readonly check: (events: ReadonlyArray<Event>, commits: ReadonlyArray<string>) => ReadonlyArray<string>
}

/** Names what a recheck does once, until its try has ended and the next begins. */
const tryName = (id: string, apply: string, arm: string) => `${id}, recheck ${apply} ${arm}`

const nameOf = ({ case: id, rev, step, recheck }: StepName) =>
  recheck === undefined ? `${step} of ${id}, rev ${rev}` : `${step} of ${tryName(id, recheck.apply, recheck.arm)}`

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

interface Steps {
  /** Steps of cases that have ended. */
  readonly ended: Set<string>
  /** Those of each try that has not. */
  readonly tries: Map<string, Set<string>>
  readonly repeated: Array<string>
}

const addStep = (steps: Steps, event: Event): void => {
  const add = (to: Set<string>, name: string) => {
    if (to.has(name)) steps.repeated.push(`${name} ended twice`)
    to.add(name)
  }
  if (event._tag === "StepEnded") add(steps.ended, nameOf(event))
  if (event._tag === "RecheckStepEnded") {
    const name = tryName(event.case, event.apply, event.arm)
    const of = steps.tries.get(name) ?? new Set()
    steps.tries.set(name, of)
    add(of, `${event.step} of ${name}`)
  }
  if (event._tag === "TryEnded") steps.tries.delete(tryName(event.case, event.apply, event.arm))
}

const stepsIn = (events: ReadonlyArray<Event>): Steps => {
  const steps: Steps = { ended: new Set(), tries: new Map(), repeated: [] }
  for (const event of events) addStep(steps, event)
  return steps
}

const isDone = ({ ended, tries }: Steps, name: StepName): boolean => {
  const { recheck } = name
  const of = recheck === undefined ? ended : tries.get(tryName(name.case, recheck.apply, recheck.arm))
  return of?.has(nameOf(name)) === true
}

const isEvent = Schema.is(Schema.Struct({ value: DispatcherEvent.DispatcherEvent }))

export const makeMarks = (): Marks => {
  let steps = stepsIn([])
  let applies = new Set<string>()
  return {
    hear: (told) => {
      if (told._tag === "Attempted") {
        // A try that ends makes way for the next one, which takes the same steps.
        for (const entry of told.entries)
          if (isEvent(entry) && entry.value._tag === "TryEnded") addStep(steps, entry.value)
      }
      if (told._tag === "StepBegun" && isDone(steps, told)) return `${nameOf(told)} had ended and ran again`
      if (told._tag === "ApplyBegun" && applies.has(told.apply))
        return `apply ${told.apply} had ended and was called again`
      return undefined
    },
    check: (events, commits) => {
      steps = stepsIn(events)
      applies = new Set(appliesOf(events).ended)
      return [...steps.repeated, ...checkApplies(events, commits)]
    }
  }
}
